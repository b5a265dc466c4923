"""Why positions: without them a Transformer sees a bag of words; what that costs, measured by training with and
without.
"""

import math
from collections.abc import Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from heed.lab.charts import Table
from heed.lab.experiments import order_panels

from heed.lab.experiments.order_results import (  # isort: skip
    DIRECTIONS, POSITIONS, SENTENCE, Example, Order, Outputs, Score, Sum, ToyRow, direction_names, position_names,
)  # fmt: skip
from heed.lab.experiments.role_sentences import RolePair, role_pairs
from heed.lab.experiments.small_translators import train_translator
from heed.lab.language import tr
from heed.models.transformer import Transformer, TransformerConfig
from heed.nn.positions import sinusoids

DIM = 32  # of the models that are drawn, not of those that are trained
TOY = {"I": (3.0, -2.0, 4.0), "go": (-1.0, 5.0, 2.0), "home": (2.0, 1.0, -4.0)}  # the first is that of the notes
LARGE = 1000.0


def measure(seed: int = 0, steps: int = 150) -> Order:
    """Outputs for two orders, the notes' toy example, embeddings with positions, and BLEU of six trained
    translators.
    """
    if steps < 1:
        raise ValueError(f"steps is {steps}; it must be at least 1")
    outputs = _outputs(seed)
    total = _sum(seed)
    scores, examples = _trained(seed, steps)
    return Order(seed, steps, outputs, _toy(), total, scores, examples)


def _model(positions: str, seed: int) -> Transformer:
    """A small Transformer with random weights, the same ones for all positions."""
    torch.manual_seed(seed)
    sizes = {"dim": DIM, "heads": 4, "hidden": 64, "encoder_layers": 2, "decoder_layers": 2, "max_length": 16}
    model = Transformer(TransformerConfig(16, **sizes, norm="pre")).double().eval().requires_grad_(False)
    for weight in model.parameters():
        if weight.dim() > 1:  # larger than initial ones, so that words matter to each other
            nn.init.normal_(weight, std=0.3)
    other = Transformer(TransformerConfig(16, **sizes, norm="pre", positions=positions)).double().eval()
    other.load_state_dict(model.state_dict())
    return other.requires_grad_(False)


def _outputs(seed: int) -> Outputs:
    """The encoder's output for "I go home" and "home go I", and how much one differs from the other word by word."""
    first = torch.tensor([[4, 5, 6]])
    found, differences = {}, {}
    for positions in ("none", "sinusoidal"):
        model = _model(positions, seed)
        states = [model.encode(ids)[0] for ids in (first, first.flip(1))]
        found[positions] = [own.tolist() for own in states]
        differences[positions] = (states[0] - states[1].flip(0)).abs().max().item()
    model = _model("none", seed)
    memory = model.encode(first)
    # the last word of the target in one order and in the other: the same word has to come last, so two are exchanged
    last = [model.decode(torch.tensor([ids]), memory)[0, -1] for ids in ([2, 7, 8, 9], [2, 8, 7, 9])]
    decoder = (last[0] - last[1]).abs().max().item()
    return Outputs(found["none"], found["sinusoidal"], differences["none"], differences["sinusoidal"], decoder)


def _toy() -> list[ToyRow]:
    """The word vectors of the toy example at the first and last position, for each kind of positions."""
    waves = sinusoids(3, 3).double()
    ways = {
        "none": torch.zeros(3, 3, dtype=torch.float64),
        "1000": LARGE * torch.eye(3, dtype=torch.float64),  # the first word in the first dimension, and so on
        "sinusoid": waves,
    }
    word, other = (torch.tensor(TOY[name], dtype=torch.float64) for name in ("I", "home"))
    return [
        ToyRow(name, (word + p[0]).tolist(), (word + p[2]).tolist(), _cosine(word + p[0], word + p[2]), _cosine(word + p[0], other + p[0]))
        for name, p in ways.items()
    ]  # fmt: skip


def _cosine(one: Tensor, other: Tensor) -> float:
    return nn.functional.cosine_similarity(one, other, dim=0).item()


def _sum(seed: int) -> Sum:
    """The input of the first layer for the sentence of the notes, with initial embeddings."""
    torch.manual_seed(seed)
    model = Transformer(TransformerConfig(16, dim=DIM, heads=4, hidden=64, encoder_layers=1, decoder_layers=1)).eval()
    ids, length = torch.arange(4, 4 + len(SENTENCE))[None], len(SENTENCE)
    with torch.no_grad():
        embedding, position = model.tokens(ids)[0] * math.sqrt(DIM), model.positions(0, length)
        total = model._embed(model.tokens, ids, position, None)[0]
    return Sum(list(SENTENCE), embedding.tolist(), position.tolist(), total.tolist())


def _trained(seed: int, steps: int) -> tuple[list[Score], list[Example]]:
    """BLEU of translators in both directions by kind of positions. The Korean of one is plain, that of the other
    both.
    """
    plain, polite = role_pairs("plain"), role_pairs("polite")
    tasks = {
        "en": ([_pair(own, 1) for own in plain["train"]], {"en-ko": plain["test"]}),
        "ko": (
            [_pair(own, 0) for own in (*plain["train"], *polite["train"])],
            {"ko-en plain": plain["test"], "ko-en polite": polite["test"]},
        ),
    }
    scores, said = [], {}
    for source, (pairs, tests) in tasks.items():
        side = 1 if source == "en" else 0
        for positions in POSITIONS:
            translator = train_translator(pairs, positions, steps, seed)
            for name, test in tests.items():
                found = dict(zip([own[side] for own in test], translator.translate([own[side] for own in test]), strict=True))  # fmt: skip
                scores.append(_score(name, positions, test, side, found))
                said[name, positions] = found
    scores.sort(key=lambda own: DIRECTIONS.index(own.direction))  # stable: positions stay in their order
    examples = []
    for name, test in (("en-ko", plain["test"]), ("ko-en plain", plain["test"]), ("ko-en polite", polite["test"])):
        side, pair = 1 if name == "en-ko" else 0, test[0]
        for own in (pair, RolePair(*pair[2:], *pair[:2])):
            outputs = {positions: said[name, positions][own[side]] for positions in POSITIONS}
            examples.append(Example(name, own[side], own[1 - side].lower(), outputs))
    return scores, examples


def _pair(own: RolePair, side: int) -> tuple[str, str]:
    return own[side], own[1 - side]


def _score(name: str, positions: str, test: Sequence[RolePair], side: int, found: dict[str, str]) -> Score:
    from sacrebleu.metrics import BLEU

    ours, expected = [found[own[side]] for own in test], [own[1 - side].lower() for own in test]
    bleu = BLEU().corpus_score(ours, [expected]).score
    right = sum(one == other for one, other in zip(ours, expected, strict=True)) / len(test)
    as_twin = sum(found[own[side]] == found[own[side + 2]] for own in test) / len(test)
    return Score(name, positions, bleu, right, as_twin, len(test))


def summary(result: Order) -> str:
    """The result in one sentence."""
    right = {(own.direction, own.positions): own.bleu for own in result.scores}
    return tr(
        'Without positions "I go home" and "home go I" have the same outputs to within {none:.0e}, with sinusoids they differ by {waves:.1f}; BLEU for '
        "who feels what about whom, with sinusoids, learned positions and none: from English {a:.1f}, {b:.1f}, {c:.1f}; from plain Korean {d:.1f}, "
        "{e:.1f}, {f:.1f}; from polite Korean {g:.1f}, {h:.1f}, {i:.1f}.",
        none=result.outputs.none_difference,
        waves=result.outputs.waves_difference,
        **dict(zip("abcdefghi", [right[d, p] for d in DIRECTIONS for p in POSITIONS], strict=True)),
    )


def tables(result: Order) -> list[Table]:
    """Outputs for two orders, the toy example, and the scores of the trained models, with examples."""
    own = result.outputs
    outputs = [
        [tr("encoder, no positions"), f"{own.none_difference:.1e}"],
        [tr("encoder, sinusoids"), f"{own.waves_difference:.2f}"],
        [tr("decoder, no positions, two earlier words swapped"), f"{own.decoder_difference:.2f}"],
    ]
    ways = {"none": tr("the word alone"), "1000": tr("1000 added to dimension k"), "sinusoid": tr("sinusoids")}
    toy = [
        [ways[row.way], _vector(row.first), _vector(row.last), f"{row.same_word:.4f}", f"{row.same_place:.4f}"]
        for row in result.toy
    ]
    names, kinds = direction_names(), position_names()
    scores = [
        [names[one.direction], kinds[one.positions], f"{one.bleu:.1f}", f"{one.right:.1%}", f"{one.as_twin:.1%}"]
        for one in result.scores
    ]
    examples = [[one.source, one.expected, one.outputs["none"]] for one in result.examples]
    return [
        Table(tr('"I go home" and "home go I": the largest difference in a state'), ["", tr("difference")], outputs),
        Table(
            tr("The toy example of the notes: I = (3, −2, 4)"),
            ["", tr("I, first"), tr("I, last"), tr("cosine of the two"), tr("I and home, both first")],
            toy,
        ),
        Table(
            tr("Trained for {steps} steps: who feels what about whom", steps=result.steps),
            [tr("direction"), tr("positions"), "BLEU", tr("correct"), tr("the same for both orders")],
            scores,
        ),
        Table(tr("Twins"), [tr("source"), tr("reference"), tr("translated without positions")], examples),
    ]


def _vector(values: Sequence[float]) -> str:
    return "(" + ", ".join(f"{round(value, 2):g}" for value in values) + ")"


def figure(result: Order) -> Figure:
    """The outputs for two orders, x + position, the toy example, and BLEU."""
    return order_panels.draw(result)
