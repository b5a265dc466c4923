"""Attention from the beginning: a dictionary, similarity, three words by hand, eight heads, masks and padding."""

import math
from collections.abc import Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from heed.lab.charts import Table, table_rows
from heed.lab.experiments import attention_panels, by_hand

from heed.lab.experiments.attention_results import (  # isort: skip
    DICTIONARY, DIM, HALFWAY, HEADS, KEYS, LENGTHS, OTHERS, TEMPERATURES, U, WIDTH,
    AttentionLab, LookUp, Masks, Padding, Similarity, ThreeWords,
)  # fmt: skip
from heed.lab.experiments.by_hand import WORDS, Matrix
from heed.lab.language import tr
from heed.models.transformer import Transformer, TransformerConfig
from heed.nn import masks, scores
from heed.nn.attention import Attention, mix, record


def measure(seed: int = 0) -> AttentionLab:
    """Everything in float64; only the eight heads and the padded model have weights drawn by `seed`."""
    torch.manual_seed(seed)
    words = _three_words()
    heads, heads_difference = _heads()
    return AttentionLab(
        seed, _look_up(), [_similarity(v) for v in OTHERS], words, heads, heads_difference,
        _masks(words.scaled), _padding(),
    )  # fmt: skip


def _tensor(values: Sequence) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def _look_up() -> LookUp:
    values = _tensor([[year] for year in DICTIONARY.values()])
    queries = _tensor([KEYS[0], KEYS[3], HALFWAY])
    rows, found = [], []
    for temperature in TEMPERATURES:
        value, weights = mix(queries @ _tensor(KEYS).mT / temperature, values)
        rows.append(weights[0].tolist())
        found.append(value[:, 0].tolist())
    alpha, delta, halfway = (list(own) for own in zip(*found, strict=True))
    return LookUp(list(TEMPERATURES), rows, alpha, delta, halfway)


def _similarity(v: tuple[float, float]) -> Similarity:
    """The dot product by Heed's own score; the angle comes from atan2 and is independent of dot products."""
    dot = scores.Dot()(_tensor([[U]]), _tensor([[v]])).item()
    angle = math.atan2(v[1], v[0]) - math.atan2(U[1], U[0])
    sizes = by_hand.length(U) * by_hand.length(v)
    return Similarity(
        v, by_hand.distance(U, v), dot / sizes, dot, sizes * math.cos(angle), U[0] * v[0] + U[1] * v[1]
    )  # fmt: skip


def build(head_matrices: Sequence[Matrix], w_o: Matrix, heads: int) -> Attention:
    """Heed's attention with given matrices. They are x W, and torch's Linear computes x Wᵀ: so they are transposed."""
    made = Attention(len(w_o[0]), heads, head_dim=len(w_o) // heads, bias=False).double().requires_grad_(False)
    for part, matrix in zip((made.q, made.k, made.v, made.out), (*head_matrices, w_o), strict=True):
        part.weight.copy_(_tensor(matrix).mT)
    return made


def _three_words() -> ThreeWords:
    x = by_hand.X
    q, k, v = (by_hand.product(x, w) for w in (by_hand.W_Q, by_hand.W_K, by_hand.W_V))
    scaled, weights, mixed = by_hand.attend(q, k, v)
    output = by_hand.product(mixed, by_hand.W_O)
    made = build((by_hand.W_Q, by_hand.W_K, by_hand.W_V), by_hand.W_O, heads=1)
    with record(made) as maps:
        recorded = made(_tensor([x]))
    pairs = [(made.q(_tensor(x)), q), (made.k(_tensor(x)), k), (made.v(_tensor(x)), v), (maps[0][0, 0], weights)]
    pairs += [(recorded[0], output), (made(_tensor([x]))[0], output)]
    plain, untransposed = by_hand.scores(q, k), by_hand.product(q, k)
    return ThreeWords(q, k, v, plain, untransposed, scaled, weights, mixed, output, _largest(pairs))


def _largest(pairs: Sequence[tuple[Tensor, Matrix]]) -> float:
    return max((ours - _tensor(own)).abs().max().item() for ours, own in pairs)


def _heads() -> tuple[list[Matrix], float]:
    """Eight heads of width 3 over three words of width 4, head by head and by heed.nn.attention."""
    drawn = [torch.randn(DIM, HEADS * WIDTH, dtype=torch.float64) for _ in range(3)]
    w_o = torch.randn(HEADS * WIDTH, DIM, dtype=torch.float64)
    projections = [tuple(own[:, i : i + WIDTH].tolist() for own in drawn) for i in range(0, HEADS * WIDTH, WIDTH)]
    weights, output = by_hand.heads(by_hand.X, projections, w_o.tolist())
    made = build([own.tolist() for own in drawn], w_o.tolist(), HEADS)
    with record(made) as maps:
        recorded = made(_tensor([by_hand.X]))
    pairs = [(made(_tensor([by_hand.X]))[0], output), (recorded[0], output)]
    return weights, _largest([*pairs, *zip(maps[0][0], weights, strict=True)])


def _masks(scaled: Matrix) -> Masks:
    unmasked = [by_hand.softmax(row) for row in scaled]
    zeroed, after = by_hand.mask_after(unmasked)
    past = masks.build(masks.causal(), len(scaled), len(scaled), torch.device("cpu"))
    before = mix(_tensor(scaled), _tensor(by_hand.X), past)[1]
    return Masks(unmasked, zeroed, after, before.tolist(), _largest([(before, after)]))


@torch.no_grad()
def _padding() -> Padding:
    """A Transformer reads 투빅아, 나는 너를 많이 사랑해 with more and more padding; its logits are compared with those without."""
    config = TransformerConfig(20, None, 32, 4, 64, encoder_layers=2, decoder_layers=2, max_length=LENGTHS[-1])
    model = Transformer(config).double().eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.3)
    source, target = torch.tensor([[4, 5, 6, 7, 8]]), torch.tensor([[2, 9, 10, 11, 12, 13]])
    alone = model(source, target)
    masked, unmasked = [], []
    for length in LENGTHS:
        padded = nn.functional.pad(source, (0, length - source.shape[1]))
        valid = masks.from_lengths(torch.tensor([source.shape[1]]), length)
        masked.append((model(padded, target, valid) - alone).abs().max().item())
        unmasked.append((model(padded, target) - alone).abs().max().item())
    return Padding(list(LENGTHS), masked, unmasked)


def summary(result: AttentionLab) -> str:
    """The result in one sentence."""
    return tr(
        "At temperature {cold:g} the soft lookup of alpha returns {value:.2f}, like the dictionary; three words by hand differ from heed.nn.attention "
        "by at most {words:.0e}, eight heads of width three by {heads:.0e}, the two ways to mask from each other by {masks:.0e}, and padding to "
        "{length} changes the logits by {padding:.0e}.",
        cold=result.look_up.temperatures[-1],
        value=result.look_up.alpha[-1],
        words=result.words.difference,
        heads=result.heads_difference,
        masks=result.masks.difference,
        length=result.padding.lengths[-1],
        padding=max(result.padding.masked),
    )


def tables(result: AttentionLab) -> list[Table]:
    """The dictionary, the measures of similarity, three words, eight heads, masks and padding."""
    return [_look_up_table(result), _similarity_table(result), *_word_tables(result), *_last_tables(result)]


def _look_up_table(result: AttentionLab) -> Table:
    own = result.look_up
    title = tr("A soft dictionary lookup: softmax(query · key / temperature), and the weighted average of the values")
    columns = [tr("temperature"), *DICTIONARY, tr("alpha gives"), tr("delta gives"), tr("between the first two")]
    rows = {
        f"{temperature:g}": (*own.weights[i], own.alpha[i], own.delta[i], own.halfway[i])
        for i, temperature in enumerate(own.temperatures)
    }
    shown = [[name, *(f"{value:.4f}" for value in row[:4]), *(f"{value:.2f}" for value in row[4:])] for name, row in rows.items()]  # fmt: skip
    hard = [tr("dictionary"), "1", "0", "0", "0", str(DICTIONARY["alpha"]), str(DICTIONARY["delta"]), "KeyError"]
    return Table(title, columns, [*shown, hard])


def _similarity_table(result: AttentionLab) -> Table:
    columns = ["v", tr("Euclidean distance"), tr("cosine"), tr("dot product"), "|u||v| cos θ", "x1x2 + y1y2"]
    names = [f"({own.vector[0]:g}, {own.vector[1]:g})" for own in result.similarities]
    values = [(own.distance, own.cosine, own.dot, own.by_angle, own.by_coordinates) for own in result.similarities]
    return Table(tr("u = (2, 1) and five vectors v"), columns, table_rows(dict(zip(names, values, strict=True)), ".4f"))


def _word_tables(result: AttentionLab) -> list[Table]:
    own = result.words
    integers = [
        [word, *(f"({', '.join(f'{value:g}' for value in matrix[i])})" for matrix in (by_hand.X, own.q, own.k, own.v, own.scores))]
        for i, word in enumerate(WORDS)
    ]  # fmt: skip
    columns = ["", "x", "q = x W_Q", "k = x W_K", "v = x W_V", "q Kᵀ"]
    weights = table_rows(dict(zip(WORDS, own.weights, strict=True)), ".16f")
    output = table_rows(dict(zip(WORDS, own.output, strict=True)), ".12f")
    transposed = [
        [
            f"{word} · {other}",
            f"{own.scores[i][j]:g}",
            f"{by_hand.dot(own.q[i], own.k[j]):g}",
            f"{own.untransposed[i][j]:g}",
        ]
        for i, word in enumerate(WORDS)
        for j, other in enumerate(WORDS)
    ]
    return [
        Table(tr("Three words by hand: one head of width 3"), columns, integers),
        Table(
            tr("Why K is transposed: words are rows in both Q and K, and a product multiplies rows by columns"),
            [tr("query · key"), tr("entry of Q Kᵀ"), "q · k", tr("entry of Q K")],
            transposed,
        ),
        Table(tr("Their weights, softmax(q Kᵀ / √3)"), ["", *WORDS], weights),
        Table(tr("Their outputs, weights · V · W_O"), ["", "1", "2", "3", "4"], output),
    ]


def _last_tables(result: AttentionLab) -> list[Table]:
    shapes = [
        ["X", f"3×{DIM}", tr("three words of width {dim}", dim=DIM)],
        ["W_Q, W_K, W_V", f"{DIM}×{HEADS * WIDTH}", tr("{heads} heads of width {width}", heads=HEADS, width=WIDTH)],
        ["concat", f"3×{HEADS * WIDTH}", f"{HEADS} · {WIDTH} = {HEADS * WIDTH}"],
        ["W_O", f"{HEADS * WIDTH}×{DIM}", f"Attention({DIM}, {HEADS}, head_dim={WIDTH})"],
    ]
    own = result.masks
    stages = {
        tr("softmax"): own.weights,
        tr("later words 0"): own.zeroed,
        tr("rows divided by their sum"): own.after,
        tr("masked before softmax"): own.before,
    }
    masked = [
        [f"{word}: {stage}", *(f"{value:.8f}" for value in weights[i])]
        for i, word in enumerate(WORDS)
        for stage, weights in stages.items()
    ]
    padding = zip(result.padding.lengths, result.padding.masked, result.padding.unmasked, strict=True)
    return [
        Table(tr("Eight heads of width three"), [tr("matrix"), tr("shape"), ""], shapes),
        Table(tr("Two ways to mask"), ["", *WORDS], masked),
        Table(
            tr("Five words with padding: the largest change in a logit"),
            [tr("length"), tr("padding masked"), tr("no mask")],
            [[str(length), f"{masked:.1e}", f"{unmasked:.2f}"] for length, masked, unmasked in padding],
        ),
    ]


def figure(result: AttentionLab) -> Figure:
    """The lookup, the similarity measures, the three words, the eight heads, the masks and the padding."""
    return attention_panels.draw(result)
