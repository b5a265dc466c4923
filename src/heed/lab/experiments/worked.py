"""The worked numbers of the lecture notes: as printed there, and as computed with Heed's modules."""

import math
from dataclasses import dataclass, fields
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.data.masking import Masking
from heed.lab.experiments import cells, chain_rule, costs, jacobians, norms, norms_notes, positions, scaling
from heed.models.bart import Bart, BartConfig
from heed.models.pegasus import Pegasus, PegasusConfig
from heed.models.transformer import PRESETS, Transformer, TransformerConfig
from heed.nn import masks
from heed.nn.attention import Attention, attend, mix
from heed.nn.positions import Learned, Sinusoidal
from heed.nn.recurrent import RNN, State
from heed.nn.transformer import MLP, PreNorm
from heed.training.config import TrainingConfig, make_schedule

WORDS, FOLLOWING = 5, 6  # 투빅아, 나는 너를 많이 사랑해 / <s> tobigs, i love you so
ICE = [1.9e-4, 6.6e-5, 3.0e-3, 1.7e-5]  # P(k | ice) for k = solid, gas, water, fashion, as printed
STEAM = [2.2e-5, 7.8e-4, 2.2e-3, 1.8e-5]
YEARS = {"alpha": 2023.0, "beta": 2017.0, "gamma": 2015.0, "delta": 2010.0}


@dataclass(frozen=True)
class Claim:
    """A number in the notes (or derived from their formula), its precision, and Heed's."""

    key: str
    notes: float
    tolerance: float
    heed: float

    @property
    def deviation(self) -> float:
        return self.heed - self.notes

    @property
    def agrees(self) -> bool:
        return abs(self.deviation) <= self.tolerance


def printed(key: str, number: str, heed: float) -> Claim:
    """A number as the notes print it: exact to half a unit of its last digit."""
    digits, _, exponent = number.lower().partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return Claim(key, float(number), 0.5 * unit * (1 + 1e-6), heed)


def follows(key: str, notes: float, heed: float, tolerance: float = 1e-9) -> Claim:
    """A number that the notes do not print, but that follows from them."""
    return Claim(key, notes, tolerance, heed)


def claims(dim: int, heads: int, tokens: int, seed: int) -> list[Claim]:
    """All of them, in the order of the notes; `dim`, `heads` and `tokens` are for the random scores of equation (6)."""
    parts = (
        _introduction,
        _chapter_four,
        _normalization,
        _order_and_masks,
        partial(_week_two, dim, heads, tokens),
        _recurrence,
        _overview,
        _encoder,
        _decoder_and_variants,
    )
    found: list[Claim] = []
    for part in parts:
        torch.manual_seed(seed)  # for each, so that a new number changes no other
        found += part()
    return found


def _introduction() -> list[Claim]:
    """000: a dictionary as attention with scores so far apart that one key gets everything; the parts of a Transformer."""
    keys, values = torch.eye(len(YEARS), dtype=torch.float64), torch.tensor([[year] for year in YEARS.values()])
    found = dict(zip(YEARS, mix(1000 * keys, values.double())[0][:, 0].tolist(), strict=True))
    x = torch.randn(1, WORDS, 8, dtype=torch.float64, requires_grad=True)
    y = MLP(8, 16, F.relu).double()(x)
    seen = torch.autograd.grad(y[0, 2].sum(), x)[0][0].abs().sum(1).count_nonzero().item()
    return [
        printed("alpha", "2023", found["alpha"]),
        printed("delta", "2010", found["delta"]),
        follows("mlp", WORDS, seen),
    ]


def _chapter_four() -> list[Claim]:
    """001: heads, and the path through a convolution."""
    layer, n = costs.LAYERS["convolution"], 9
    path = costs.layers_until_connected(lambda: layer.build(4), n, 4)
    attention = Attention(4, 8, head_dim=3)
    return [
        printed("concat", "24", attention.out.in_features),
        printed("mixed", "4", attention(torch.randn(1, 2, 4)).shape[-1]),
        follows("path", math.log(n, costs.KERNEL), path),
    ]


def _normalization() -> list[Claim]:
    """001: the word of the notes, normalized; y = 3x + 1 and y = 2x + 3."""
    keys = ("mean", "deviation", "first", "second", "scaled", "other-word", "line-mean", "line-variance")
    numbers = norms_notes.compare(norms.WORD)
    return [printed(key, f"{one.notes:g}", one.heed) for key, one in zip(keys, numbers, strict=True)]


def _order_and_masks() -> list[Claim]:
    """001: order without positions, the toy position, the first learning rate, and the two ways to mask."""
    x, attention = torch.randn(1, 3, 8, dtype=torch.float64), Attention(8, 2).double().requires_grad_(False)
    forwards, backwards = attention(x), attention(x.flip(1)).flip(1)
    places = Learned(1, 3)
    places.places.weight.data[:] = torch.tensor([[1000.0, 0.0, 0.0]])
    moved = torch.tensor([3.0, -2.0, 4.0]) + places(0, 1)[0]
    rate = make_schedule(TrainingConfig(), 512)
    peak = max(rate(step) for step in range(1, 2 * TrainingConfig().warmup))
    scores, value = torch.randn(6, 6, dtype=torch.float64), torch.randn(6, 3, dtype=torch.float64)
    allowed = masks.build(masks.causal(), 6, 6)
    after = mix(scores, value)[1] * allowed
    after = after / after.sum(-1, keepdim=True)
    return [
        follows("order", 0.0, (forwards - backwards).abs().max().item(), 1e-12),
        printed("toy", "1003", moved[0].item()),
        follows("rate", 1.0, rate(1) / peak),
        follows("masking", 0.0, (after - mix(scores, value, allowed)[1]).abs().max().item(), 1e-12),
    ]


def _week_two(dim: int, heads: int, tokens: int) -> list[Claim]:
    """002: what is kept of seq2seq, the shapes of Q, K, V and O, and the scores of equation (6) with √d and with √d_h."""
    kinds = {name for name, _ in Transformer(_small()).named_children()}
    hidden, base = PRESETS["base"]["hidden"], Attention(512, 8, bias=False)
    seen: list[Tensor] = []

    def keep_scores(query: Tensor, key: Tensor, value: Tensor, **masks) -> Tensor:
        seen.append(query @ key.mT)
        return attend(query, key, value, **masks)

    attention = Attention(dim, heads, bias=False, kernel=keep_scores)
    for matrix in (attention.q, attention.k):
        nn.init.normal_(matrix.weight, std=dim**-0.5)
    with torch.no_grad():
        attention(torch.randn(1, tokens, dim))
    variance = seen[0].double().var().item()
    return [
        follows("seq2seq", 0, len(kinds & {"encoder", "decoder"})),
        follows("shape-q", hidden, base.q.out_features),
        follows("shape-o", hidden, base.out.out_features),
        follows("scores", variance / dim, variance / attention.width),
    ]


def _small(**settings) -> TransformerConfig:
    return TransformerConfig(vocab_size=16, dim=8, heads=2, hidden=16, max_length=16, dropout=0.0, **settings)


def _recurrence() -> list[Claim]:
    """003, unit 1: ratios of co-occurrence, the chain rule, and the gradient of a recurrent network."""
    ratios = [ice / steam for ice, steam in zip(ICE, STEAM, strict=True)]
    names, given = ("solid", "gas", "water", "fashion"), ("8.9", "8.5e-2", "1.36", "0.96")
    right = chain_rule.by_autograd(chain_rule.T)
    net, words = RNN(4, 4).double().requires_grad_(False), torch.randn(5, 4, dtype=torch.float64)
    product, exact = jacobians.by_product(net, words)[-1], jacobians.of_recurrent(net, words)[-1]
    total, immediate, autograd = error_sums()
    return [
        *(printed(name, *pair) for name, *pair in zip(names, given, ratios, strict=True)),
        follows("chain-middle", chain_rule.by_middle_line(chain_rule.T), right),
        follows("chain-last", chain_rule.by_rule(chain_rule.T), right),
        follows("jacobian-entries", 4 * 4 * 4, exact.numel()),
        follows("jacobian-product", 0.0, (product - exact).abs().max().item(), 1e-12),
        follows("jacobian-layout", 0.0, (product.mT - exact).abs().max().item(), 1e-12),
        follows("error-sum", total, autograd),
        follows("error-parts", immediate, autograd),
        *(follows(name, 0.0, difference, 1e-12) for name, difference in cells.of_recurrent().items()),
    ]


def error_sums() -> tuple[float, float, float]:
    """∂E_3/∂W_11 as a sum over k: with the whole derivative of each h_k, with h_(k-1) held fixed; and by autograd."""
    net, words = RNN(2, 2).double(), torch.randn(3, 1, 2, dtype=torch.float64)
    weight, states = net.layers[0].weight_hh_l0, [torch.randn(1, 2, dtype=torch.float64)]
    for word in words:
        states.append(net.step(word, State([(states[-1],)]))[0])
    fixed = [net.step(word, State([(h.detach(),)]))[0] for word, h in zip(words, states, strict=False)]
    error = states[-1].square().sum()
    grads = torch.autograd.grad(error, [weight, *states[1:]], retain_graph=True)
    sums = []
    for each in (states[1:], fixed):
        sums.append(
            sum(
                torch.autograd.grad(h, weight, grad, retain_graph=True)[0]
                for h, grad in zip(each, grads[1:], strict=True)
            )
        )
    total, immediate = (part[0, 0].item() for part in sums)
    return total, immediate, grads[0][0, 0].item()


def _overview() -> list[Claim]:
    """003, unit 3: layers, and the distances of ten positions."""
    model, waves = Transformer(_small()), Sinusoidal(10, 10)(0, 10).double()
    table, ours = torch.tensor(positions.NOTES, dtype=torch.float64), positions.distances(waves)
    equal = ((table - ours).abs() <= 0.0005).sum().item() - len(table)
    found = positions.measure(10, 10)
    spread = waves.norm(dim=1).max() - waves.norm(dim=1).min()
    encoder, decoder = model.encoder.layers, model.decoder.layers
    return [
        printed("encoder-layers", "6", len(encoder)),
        printed("decoder-layers", "6", len(decoder)),
        printed("encoder-sublayers", "2", len(encoder[0].sublayers())),
        printed("decoder-sublayers", "3", len(decoder[0].sublayers())),
        follows("norm-spread", 0.0, spread.item(), 1e-6),
        follows("rises", 9, found.rises_until),
        follows("index", 9, waves.shape[1] // 2 - 1),
        printed("distance", "1.275", ours[0, 1].item()),
        printed("greatest", "3.659", ours.max().item()),
        follows("cells", 90, equal),
    ]


def _encoder() -> list[Claim]:
    """003, unit 4: heads, the two softmaxes, residuals, and the scale and shift of layer norm."""
    base = PRESETS["base"]
    hot, mild = (scaling.attention_weights(torch.tensor(row, dtype=torch.float64)) for row in scaling.NOTES_SCORES)
    residual = PreNorm(nn.Linear(1, 1, bias=False), nn.Identity()).double()
    residual.body.weight.data.fill_(0.5)
    x = torch.ones(1, 1, dtype=torch.float64, requires_grad=True)
    second = residual(residual(x))
    (slope,) = torch.autograd.grad(residual(x).sum(), x)
    norm = nn.LayerNorm(base["dim"])
    return [
        printed("head-width", "64", Attention(base["dim"], base["heads"]).width),
        printed("heads", "8", base["heads"]),
        printed("hot-first", "1", hot[0].item()),
        printed("hot-second", "1.9287498479639e-22", hot[1].item()),
        printed("mild-first", "0.98670329104227", mild[0].item()),
        printed("mild-second", "0.006648354478866", mild[1].item()),
        follows("residual-slope", 1 + 3 * 0.5, slope.item()),
        follows("residual-second", 1.5 + 0.5, second.item()),
        follows("layer-norm", 0.0, cells.of_layer_norm(), 1e-12),
        follows("norm-parameters", 2 * WORDS, sum(weight.numel() for weight in norm.parameters())),
    ]


def _decoder_and_variants() -> list[Claim]:
    """003, units 5 and 6: the keys of cross attention, BERT's shares, BART compared with Pegasus."""
    model = Transformer(_small())
    with torch.no_grad():
        cross = model.trace(torch.ones(1, WORDS, dtype=torch.long), torch.ones(1, FOLLOWING, dtype=torch.long))
    shares = {field.name: field.default for field in fields(Masking)}
    return [
        follows("cross-keys", FOLLOWING, cross.maps["cross"][0].shape[-1]),
        printed("bert-share", "0.15", shares["share"]),
        printed("bert-masked", "0.8", shares["masked"]),
        printed("bert-random", "0.1", shares["random"]),
        printed("bert-kept", "0.1", 1 - shares["masked"] - shares["random"]),
        follows("bart-pegasus", 0, sum(a != b for a, b in zip(*architectures(), strict=True))),
    ]


def architectures() -> tuple[list[str], list[str]]:
    """Norm placement, positions and default activation of BART and Pegasus."""
    found = []
    for model_class, config_class in ((Bart, BartConfig), (Pegasus, PegasusConfig)):
        sizes = {"dim": 8, "heads": 2, "hidden": 8, "encoder_layers": 1, "decoder_layers": 1, "max_length": 8}
        config = config_class(vocab_size=8, **sizes)
        model = model_class(config)
        part = model.encoder.layers[0].attention
        found.append([type(part).__name__, type(model.positions).__name__, config.activation])
    return found[0], found[1]
