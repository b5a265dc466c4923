"""Taggers and question-answering models of every encoder: what transformers says, windows, and probabilities."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from heed.convert import huggingface
from heed.data.answers import WindowSizes
from heed.loading import load
from heed.products.answerer import Answerer
from heed.products.tagger import Tagger, mark
from heed.vocabularies.labels import Labels
from tests.convert.encoders import draw, package

SYSTEMS = ("bert", "electra", "albert", "roberta", "bigbird")
NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
TEXTS = [
    "the dog, (who) sees a red-house.",
    "she never finds the street, 나는 책을.",
    "x",
    "the street finds she (the dog)",
]
CONTEXT = "the dog sees a red house, 나는 책을 읽어요. she never finds the street. " * 3
QUESTIONS = ["who sees a house?", "나는?", "never"]


def clear(own):
    """Weights with which tokens differ: norms as they begin, so that what is predicted is not the same everywhere."""
    for name, weight in own.model.named_parameters():
        if "norm" in name:
            nn.init.constant_(weight, float(name.endswith("weight")))
        elif name.startswith("head."):
            spread = 0.0 if name.endswith("bias") else 1.0
            nn.init.normal_(weight, std=spread, generator=torch.Generator().manual_seed(4))
    return own


def tagging_package(system):
    own = clear(package(system, "tokens"))
    own.model.head["tokens"].out.bias -= own.model.classify_tokens(draw(4, 20)).mean(dim=(0, 1))  # no label is likelier
    return own._replace(processors={"text": own.processors["text"], "labels": Labels(NAMES)}, task="tagging")


@pytest.mark.parametrize("system", SYSTEMS)
def test_entities_are_those_of_transformers_pipeline(system, tmp_path):
    huggingface.write(tagging_package(system), tmp_path / "out")
    tagger = load(tmp_path / "out", "cpu", verb="tag")
    whole = system in ("bert", "electra")  # the pipeline knows the words of WordPiece alone
    for strategy in ("simple", *(["first"] if whole else [])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pipe = transformers.pipeline(
                "token-classification", str(tmp_path / "out"), aggregation_strategy=strategy, device="cpu"
            )
            theirs = [pipe(text) for text in TEXTS]
        ours = tagger.tag(TEXTS, pieces=strategy == "simple")
        assert len({own.type for one in ours for own in one.entities}) == 2
        for text, own, other in zip(TEXTS, ours, theirs, strict=True):
            found = [(one.type, one.text) for one in own.entities]
            assert found == [(one["entity_group"], text[one["start"] : one["end"]].strip()) for one in other]
            for one, their in zip(own.entities, other, strict=True):
                assert one.probability == pytest.approx(float(their["score"]), abs=1e-5)


@pytest.mark.parametrize("system", SYSTEMS)
def test_words_that_are_given_have_the_label_of_their_first_piece(system):
    own = tagging_package(system)
    tagger = Tagger(own.model, own.processors["text"], NAMES)
    words = ["the", "\u200b", "dog", "책을", "street."]
    [found] = tagger.tag_words([words])
    [pieces] = tagger.vocabulary.encode_aligned([" ".join(words)])
    logits = tagger.logits([pieces.ids])[0][0]
    first = [
        next((i for i, (start, _) in enumerate(pieces.spans) if word.start <= start < word.end), None)
        for word in found.words
    ]
    assert [word.text for word in found.words] == words
    labels = ["O" if place is None else NAMES[int(logits[place].argmax())] for place in first]
    assert found.labels == labels and found.unread == first.count(None)
    assert tagger.tag_words([]) == [] and tagger.tag([""])[0].words == []


def test_a_long_text_is_read_in_windows_and_loses_no_word():
    own = tagging_package("bert")
    whole = Tagger(own.model, own.processors["text"], NAMES)
    short = Tagger(own.model, own.processors["text"], NAMES, max_length=12, stride=4)
    text = TEXTS[0]
    one, other = whole.tag([text])[0], short.tag([text])[0]
    assert (one.windows, other.windows) == (1, 3)
    assert [word.text for word in one.words] == [word.text for word in other.words]
    ids = whole.vocabulary.encode([text])[0]
    room = 12 - 2
    beginning = whole.logits([ids[:room]])[0][0]
    torch.testing.assert_close(short.logits([ids])[0][0][:6], beginning[:6], rtol=0, atol=1e-4)  # its better half
    batch = short.tag([text, "x", TEXTS[1]])
    assert batch[0].labels == other.labels and batch[0].text == text
    assert mark("Ann and Bo", [(0, 3, "PER"), (8, 10, "PER")]) == "[PER Ann] and [PER Bo]"


def answering_package(system):
    return clear(package(system, "answer"))._replace(task="question-answering")


def reference(folder, question, context, sizes, longest):
    """All answers by their definition from transformers' tokenizer and logits: the best score of each span, and of none."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(folder).eval()
    inputs = tokenizer(
        question, context, truncation="only_second", max_length=sizes.max_length, stride=sizes.stride, padding=True,
        return_overflowing_tokens=True, return_offsets_mapping=True, return_tensors="pt",
    )  # fmt: skip
    inputs.pop("overflow_to_sample_mapping")
    offsets = inputs.pop("offset_mapping").tolist()
    with torch.inference_mode():
        found = model(**inputs)
    spans, none = {}, []
    for row, own in enumerate(offsets):
        start, end = (logits[row].double() for logits in (found.start_logits, found.end_logits))
        none.append(float(start[0] + end[0]))
        places = [i for i, part in enumerate(inputs.sequence_ids(row)) if part == 1]
        for first in places:
            for last in places[places.index(first) :][:longest]:
                key = (own[first][0], own[last][1])
                spans[key] = max(spans.get(key, -np.inf), float(start[first] + end[last]))
    return spans, min(none), len(offsets)


@pytest.mark.parametrize("system", SYSTEMS)
def test_answers_are_those_of_transformers_logits_in_its_windows(system, tmp_path):
    huggingface.write(answering_package(system), tmp_path / "out")
    sizes = WindowSizes(60, 12, 20)
    opened = load(tmp_path / "out", "cpu", verb="answer")
    product = Answerer(opened.model, opened.vocabulary, sizes, max_answer=5)
    always = product.answer([(question, CONTEXT) for question in QUESTIONS], n=3)
    maybe = product.answer([(question, CONTEXT) for question in QUESTIONS], n=3, threshold=0.0)
    for question, found, other in zip(QUESTIONS, always, maybe, strict=True):
        spans, none, windows = reference(tmp_path / "out", question, CONTEXT, sizes, 5)
        texts = {}
        for (start, end), score in spans.items():
            text = CONTEXT[start:end]
            left = start + len(text) - len(text.lstrip())
            key = (left, left + len(text.strip()))
            texts[key] = max(texts.get(key, -np.inf), score)
        best = sorted((key for key in texts if key[0] < key[1]), key=lambda key: -texts[key])[:3]
        assert found.windows == windows > 1
        assert [(one.start, one.end) for one in found.best] == best
        assert [one.score for one in found.best] == pytest.approx([texts[key] for key in best], abs=1e-4)
        assert all(one.text == CONTEXT[one.start : one.end] for one in found.best)
        assert found.difference == pytest.approx(none - texts[best[0]], abs=1e-4)
        assert (other.text == "") == (found.difference > 0)
        assert sum(one.probability for one in found.best) < 1 + 1e-9


def test_fewer_answers_are_the_first_of_more():
    own = answering_package("bert")
    product = Answerer(own.model, own.processors["text"], WindowSizes(60, 12, 20), max_answer=5)
    pairs = [(question, CONTEXT) for question in QUESTIONS]
    for threshold in (None, -100.0, 0.0, 100.0):
        many = product.answer(pairs, n=30, threshold=threshold)
        assert all(len(one.best) > 7 for one in many)
        for n in (1, 2, 7):
            few = product.answer(pairs, n=n, threshold=threshold)
            assert [(one.best, one.difference) for one in few] == [(one.best[:n], one.difference) for one in many]


def test_probabilities_are_over_all_answers():
    own = answering_package("bert")
    product = Answerer(own.model, own.processors["text"], max_answer=4)
    pair = ("who?", "the dog sees a red house")
    for threshold in (None, 0.0, 1e9, -1e9):
        [found] = product.answer([pair], n=1000, threshold=threshold)
        assert sum(one.probability for one in found.best) == pytest.approx(1)
        assert (found.best[0].text == "") == (threshold is not None and found.difference > threshold)
        scores = [one.score for one in found.best if one.text]
        assert scores == sorted(scores, reverse=True)
    [one], [other] = product.answer([pair]), product.answer([pair, ("why?", CONTEXT)])[:1]
    assert (one.text, one.windows) == (other.text, 1)
    [nothing] = product.answer([("who?", "")])
    assert nothing.text == "" and nothing.best == []


LONG = ". ".join(
    [*["she never finds the street"] * 60, "the dog sees a red house", *["she never finds the street"] * 60]
)
MIDDLE = ("dog", "house")  # the first and the last word of the answer, which is in the middle


class ScoresOfTokens(nn.Module):
    """Each token is scored by itself, whatever is around it: the answer is from the first of MIDDLE to the second."""

    def __init__(self, vocabulary, positions):
        super().__init__()
        self.config, self.none = SimpleNamespace(max_length=positions), nn.Parameter(torch.zeros(()))
        self.ends = [vocabulary.encode([word])[0] for word in MIDDLE]

    def find_answer(self, tokens, valid=None, segments=None):
        assert tokens.shape[1] <= self.config.max_length
        best = [torch.isin(tokens, torch.tensor(ids)) for ids in self.ends]
        return torch.stack(best, dim=-1).float() - 1 + self.none


def scores_of_tokens(positions):
    text = package("bigbird", "answer").processors["text"]
    return ScoresOfTokens(text, positions), text


def test_an_answer_in_the_middle_of_a_long_context_is_found_in_one_window_and_in_several():
    own, text = scores_of_tokens(4096)
    one = Answerer(own, text, WindowSizes(4096))
    several = Answerer(own, text, WindowSizes(384))
    [whole], [parts] = (each.answer([("who sees a house?", LONG)]) for each in (one, several))
    assert whole.windows == 1 and parts.windows > 3 and whole.text == "dog sees a red house"
    assert LONG[whole.best[0].start : whole.best[0].end] == whole.text
    assert (parts.best[0].start, parts.best[0].score) == (whole.best[0].start, whole.best[0].score)
    several.use_windows(4096)
    assert several.answer([("who sees a house?", LONG)]) == [whole]


def test_windows_that_share_enough_find_what_one_window_finds():
    own, text = scores_of_tokens(4096)
    product, pair = Answerer(own, text, WindowSizes(4096)), ("who?", LONG)
    [whole] = product.answer([pair])
    [read] = product.inputs([pair])
    first, last = read.answer(whole.best[0].start, whole.best[0].end)
    around = len(read.ids((0, 0), text.special)) + len(text.special.before) + 1
    product.use_windows(first + 2 + around, 0)  # a window ends within the answer
    assert product.inputs([pair])[0].windows[0] == (0, first + 2) and first + 2 <= last
    assert product.answer([pair])[0].text != whole.text
    product.use_windows(stride=last + 1 - first)
    [found] = product.answer([pair])
    assert found.windows > 1 and (found.text, found.best[0].score) == (whole.text, whole.best[0].score)


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ({"window": 15}, "window is 15; it must be at least 16, and at most 600, the positions of the model"),
        ({"window": 601}, "window is 601; it must be at least 16, and at most 600, the positions of the model"),
        ({"window": 400, "stride": 201}, "stride is 201; it must be at least 0, and at most 200, half of a window"),
        ({"stride": -1}, "stride is -1; it must be at least 0, and at most 192, half of a window"),
    ],
)
def test_windows_that_cannot_be_are_refused(sizes, says):
    product = Answerer(*scores_of_tokens(600))
    with pytest.raises(ValueError, match=says):
        product.use_windows(**sizes)
    assert product.sizes == WindowSizes()


@pytest.mark.parametrize(("system", "window"), [("bert", 384), ("bigbird", 600)])
def test_a_model_of_transformers_made_for_long_texts_reads_as_much_as_it_can_at_once(system, window, tmp_path):
    own = clear(package(system, "answer", max_length=600))._replace(task="question-answering")
    huggingface.write(own, tmp_path / "out")
    assert load(tmp_path / "out", "cpu", verb="answer").sizes == WindowSizes(window)


def test_a_model_is_read_in_the_windows_of_its_training():
    own = package("bigbird", "answer", max_length=600)
    for facts, window in (
        ({"max_length": 500, "stride": 128}, 500),
        ({"stride": 128}, 384),  # by an earlier version, which wrote no other than that
        ({"max_length": 900, "stride": 128}, 600),
    ):
        assert Answerer.open([own._replace(facts=facts)], ["run"]).sizes.max_length == window
