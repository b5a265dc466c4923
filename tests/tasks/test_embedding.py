"""Contrastive training: the loss by its definition, texts that are no negatives, and tables with negatives."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from heed.data.text_pairs import CollatePairs, PairBatch, pair_table
from heed.models import MODELS
from heed.runs import recipe as recipes
from heed.tasks.contrastive_loss import ContrastiveLoss
from heed.tasks.embedding import EmbeddingSettings, EmbeddingValidation, read_scored
from heed.vocabularies.sentencepiece import SubwordsConfig
from heed.vocabularies.text_parts import SEPARATOR, TextParts
from heed.vocabularies.vocabulary import SpecialTokens
from heed.vocabularies.words import learn

SPECIAL = SpecialTokens(0, 1, 2, 3, before=(2,), delimiter=(3,))
SOURCES, TARGETS = [[10, 11], [12], [13, 14, 15]], [[20], [21, 22, 23], [24]]


def model():
    torch.manual_seed(0)
    system = MODELS["bert"]
    made = system.model(system.config(vocab_size=40, dim=16, heads=2, hidden=24, layers=1, head="none"))
    return made.double().eval()


def batch(sources=SOURCES, targets=TARGETS, columns=2) -> PairBatch:
    return CollatePairs(columns)(sources, targets, (SPECIAL, SPECIAL))


def vector(own, ids):
    return own.encode_text(torch.tensor([[2, *ids, 3]])).mean(dim=1)[0].detach()


def test_the_loss_is_that_of_the_right_text_among_all_by_scaled_cosines():
    own, scale = model(), 7.0
    one, other = ([vector(own, ids) for ids in side] for side in (SOURCES, TARGETS))
    cosines = [[float(scale * F.cosine_similarity(a, b, dim=0)) for b in other] for a in one]
    forward = sum(math.log(sum(map(math.exp, row))) - row[i] for i, row in enumerate(cosines))
    columns = list(zip(*cosines, strict=True))
    backward = sum(math.log(sum(map(math.exp, row))) - row[i] for i, row in enumerate(columns))
    loss = ContrastiveLoss("mean", scale, both_directions=False)(own, batch())
    assert loss.count == 3 and loss.total.item() == pytest.approx(forward, abs=1e-10)
    both = ContrastiveLoss("mean", scale)(own, batch())
    assert both.total.item() == pytest.approx((forward + backward) / 2, abs=1e-10)
    both.total.backward()
    assert own.tokens.weight.grad.abs().sum() > 0


def test_hard_negatives_are_further_candidates():
    own, scale, negatives = model(), 5.0, [[30], [31, 32], [33]]
    joined = [[*target, 3, *negative] for target, negative in zip(TARGETS, negatives, strict=True)]
    one, other = [vector(own, ids) for ids in SOURCES], [vector(own, ids) for ids in [*TARGETS, *negatives]]
    cosines = [[float(scale * F.cosine_similarity(a, b, dim=0)) for b in other] for a in one]
    expected = sum(math.log(sum(map(math.exp, row))) - row[i] for i, row in enumerate(cosines))
    found = ContrastiveLoss("mean", scale, both_directions=False)(own, batch(targets=joined, columns=3))
    assert found.count == 3 and found.total.item() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("sources", "targets"),
    [
        ([[10], [11], [12]], [[20], [20], [22]]),  # two have the same second text
        ([[10], [10], [12]], [[20], [21], [22]]),  # two second texts of one first text
        ([[10], [20], [12]], [[20], [21], [22]]),  # a first text is a second one too
    ],
)
def test_texts_that_are_the_same_are_no_negatives(sources, targets):
    own, whole = model(), ContrastiveLoss("mean", 9.0, both_directions=False)
    both = batch(sources, targets)
    alone = [batch([sources[i], sources[2]], [targets[i], targets[2]]) for i in (0, 1)]
    vectors = [vector(own, ids) for ids in [*sources, *targets]]
    last = F.cosine_similarity(vectors[2], torch.stack(vectors[3:]), dim=1) * 9.0
    pairs = [whole(own, each).total.item() for each in alone]
    single = [float(-(F.cosine_similarity(vectors[2], torch.stack([vectors[3 + i], vectors[5]]), dim=1) * 9.0).log_softmax(0)[1]) for i in (0, 1)]  # fmt: skip
    expected = sum(pairs) - sum(single) + float(-last.log_softmax(0)[2])
    if sources[1] == targets[0]:  # there it is the second one alone that loses a negative
        first = F.cosine_similarity(vectors[0], torch.stack(vectors[3:]), dim=1) * 9.0
        expected += float(-first.log_softmax(0)[0]) - (pairs[0] - single[0])
    assert whole(own, both).total.item() == pytest.approx(expected, abs=1e-9)


def test_a_batch_of_nothing_has_no_loss():
    assert batch([], []).tokens.shape[0] == 0


def test_a_table_has_two_texts_and_any_number_of_negatives(tmp_path):
    path = tmp_path / "triples.tsv"
    path.write_text("a\tb\tc\td\n", "utf-8")
    (line,) = pair_table(path, [1, 2, 4])
    assert (line.source, line.target, line.location) == ("a", f"b{SEPARATOR}d", "triples.tsv:1")
    (tmp_path / "list.jsonl").write_text('{"one": "a", "other": ["b"]}\n', "utf-8")
    with pytest.raises(
        ValueError, match=r"list\.jsonl, line 1 has a list, \['b'\], which only multiple choice supports"
    ):
        list(pair_table(tmp_path / "list.jsonl", ["one", "other"]))


class Fixed:
    """An embedder of known vectors."""

    def __init__(self, vectors):
        self.vectors = vectors

    def embed(self, texts, **options):
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)

    def similarity(self, one, other, **options):
        return np.array([self.vectors[a] @ self.vectors[b] for a, b in zip(one, other, strict=True)])


def test_validation_ranks_and_correlates(tmp_path):
    from heed.data.readers import Line

    angles = {"a": 0.0, "b": 0.2, "c": 1.0, "A": 0.1, "B": 0.9, "C": 1.2}
    vectors = {text: np.array([math.cos(x), math.sin(x)]) for text, x in angles.items()}
    scored = tmp_path / "scored.tsv"
    scored.write_text("a\tA\t5\na\tB\t2\na\tC\t1\n", "utf-8")
    lines = [Line(text, f"{text.upper()}{SEPARATOR}negative", "x:1") for text in "abc"]
    words = TextParts(learn(["a b c A B C"], SubwordsConfig(kind="words", least=1)))
    made = EmbeddingValidation(
        lines,
        lambda _: Fixed(vectors),
        ContrastiveLoss("mean", 20.0),
        read_scored([str(scored)], [1, 2, 3]),
        words,
        budget=100,
        samples=3,
    )
    found = made.run(torch.nn.Linear(1, 1))
    # A is nearest to a and to b, whose own B is second; c is nearest to B, whose own C is second
    assert found.scores["recall@1"] == pytest.approx(100 / 3) and found.scores["mrr"] == pytest.approx(200 / 3)
    assert found.scores["spearman"] == pytest.approx(100.0) and found.scores["loss"] > 0
    assert found.samples == [("a", "A", "A"), ("b", "B", "A"), ("c", "C", "B")]
    made.other[1] = "B C A"
    special = len(words.special.before) + 1
    assert [made.too_long(room + special) for room in (0, 1, 2, 3)] == [3, 1, 1, 0]


def test_a_score_that_is_no_number_is_refused_with_its_line(tmp_path):
    path = tmp_path / "sts.tsv"
    path.write_text("a\tb\t1\na\tb\thigh\n", "utf-8")
    with pytest.raises(ValueError, match=r"sts\.tsv, line 2: .*high.*; a line must have two texts and a number"):
        read_scored([str(path)], [1, 2, 3])


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ({"scale": 0.0}, "task.scale is 0.0; it must be above 0"),
        ({"scored_columns": [1, 2]}, r"task.scored_columns is \[1, 2\]; it must be three columns"),
        ({"pooling": "last"}, "task.pooling: 'last' is none of 'mean', 'cls', 'max'"),
        ({"scored": ["none.tsv"]}, "task.scored: none.tsv: no such file"),
    ],
)
def test_settings_that_mean_nothing_are_refused(task, said):
    data = {"source": ["a.txt"], "target": ["b.txt"]}
    with pytest.raises(ValueError, match=said):
        recipes.parse({"model": {"name": "bert"}, "task": {"name": "embedding", **task}, "data": data})


def test_the_metric_that_needs_scores_is_refused_without():
    values = {"model": {"name": "bert"}, "task": {"name": "embedding"}, "training": {"metric": "spearman"}}
    with pytest.raises(ValueError, match=r"training\.metric is 'spearman', but there are no scored pairs"):
        recipes.parse({**values, "data": {"source": ["a.txt"], "target": ["b.txt"]}})
    assert EmbeddingSettings().scored == []
