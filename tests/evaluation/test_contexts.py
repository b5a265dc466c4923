"""What a token is predicted from, when perplexity is measured: two ways with one answer."""

import numpy as np
import pytest
import torch

from heed.evaluation.line_counts import COUNTS, measure_lines
from heed.evaluation.perplexity import Context, measure_perplexity, sliding_windows
from heed.models import MODELS
from heed.products.generator import Generator
from heed.vocabularies.characters import Bytes, Characters

LINES = ["abc ab", "", "  ", "bca cc a", "é"]
VOCABULARY = Characters(list("abc "), ["One", "Two"])
SHAPE = {"dim": 8, "heads": 2, "hidden": 12, "layers": 2, "max_length": 6, "memory": 4, "same_length": True}


def build(name: str, **changes) -> torch.nn.Module:
    config = MODELS[name].config
    known = {setting: value for setting, value in (SHAPE | changes).items() if setting in config.__dataclass_fields__}
    torch.manual_seed(0)
    model = MODELS[name].model(config(vocab_size=len(VOCABULARY), **known)).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.3)
    return model


def ids() -> list[int]:
    return [i for line in VOCABULARY.encode(LINES) for i in (*line, 3)]


def plain(model, window: int, first: int = 3, code: int | None = None) -> float:
    """-log p of the text, each token from the `window` tokens before it at most, one after another."""
    text, total = [first, *ids()], 0.0
    for end in range(1, len(text)):
        seen = text[max(0, end - window) : end]
        seen = seen if code is None else [code, *seen[1:]]
        logits = model.project(model.hidden_states(torch.tensor([seen]))[0, -1])
        total -= float(logits.log_softmax(dim=-1)[text[end]].detach())
    return total


@pytest.mark.parametrize("code", [None, "Two"])
@pytest.mark.parametrize("name", ["gpt", "gpt2", "ctrl"])
def test_stride_1_scores_each_token_with_its_full_window(name, code):
    model = build(name)
    number = VOCABULARY.codes[code] if code else None
    for window in (4, 6):
        found = measure_perplexity(model, VOCABULARY, LINES, Context(window=window, stride=1, code=code))
        assert found.nll == pytest.approx(plain(model, window, code=number), abs=1e-9)
    assert found.context == "context:window|window:6|stride:1" + (f"|code:{code}" if code else "")


def test_plain_windows_are_read_one_by_one():
    model, text, total = build("gpt2"), ids(), 0.0
    for start in range(0, len(text), 6):
        part = text[start : start + 6]
        before = text[start - 1] if start else 3
        logp = model.project(model.hidden_states(torch.tensor([[before, *part[:-1]]]))[0]).log_softmax(dim=-1)
        total -= sum(float(logp[i, token].detach()) for i, token in enumerate(part))
    found = measure_perplexity(model, VOCABULARY, LINES)
    assert found.nll == pytest.approx(total, abs=1e-9)
    assert found.context == "context:window|window:6|stride:6"


@pytest.mark.parametrize("size", [1, 5, 6, 7, 40])
@pytest.mark.parametrize("stride", [1, 2, 5, 6])
def test_every_token_is_scored_once_whatever_the_stride(size, stride):
    text = np.arange(10, 10 + size)
    expected = [e for w in sliding_windows(text, 3, 6, stride) for e in w.expected.flatten().tolist() if e >= 0]
    assert sorted(expected) == text.tolist()


def test_memory_is_as_long_as_it_is_said_to_be():
    model = build("transformer-xl")
    for memory in (3, 6):  # with same_length each token sees as many as the memory has in each layer
        by_memory = build("transformer-xl", evaluation_memory=memory)
        expected = measure_perplexity(by_memory, VOCABULARY, LINES, Context(window=1)).nll
        for window in (1, 7, 100):
            found = measure_perplexity(model, VOCABULARY, LINES, Context(memory=memory, window=window))
            assert found.nll == pytest.approx(expected, abs=1e-9)
            assert found.context == f"state:carried|rows:1|memory:{memory}|window:{window}"
    assert model.config.evaluation_memory is None
    assert "|memory:4|window:512" in measure_perplexity(model, VOCABULARY, LINES).signature


@pytest.mark.parametrize("name", ["gpt2", "rnn-lm", "transformer-xl"])
def test_each_line_has_its_share(name):
    """What comes later does not matter, so lines up to some place have the sum of theirs."""
    model = build(name)
    found = measure_perplexity(model, VOCABULARY, LINES).by_line
    for count in range(1, len(LINES) + 1):
        whole = measure_perplexity(model, VOCABULARY, LINES[:count])
        assert found[:count].sum(axis=0) == pytest.approx([getattr(whole, own) for own in COUNTS], abs=1e-9)
        expected = {
            own: getattr(whole, own) for own in ("per_token", "per_word", "bits_per_character", "bits_per_byte")
        }
        assert measure_lines(found[:count]) == pytest.approx(expected)


def test_documents_are_measured_by_themselves():
    model = build("gpt2", max_length=40)
    found = measure_perplexity(model, VOCABULARY, LINES, Context(document="line"))
    alone = [measure_perplexity(model, VOCABULARY, part).nll for part in (LINES[:3], LINES[3:4], LINES[4:])]
    assert found.nll == pytest.approx(sum(alone), abs=1e-9)
    assert np.add.reduceat(found.by_line[:, 0], [0, 3, 4]) == pytest.approx(alone, abs=1e-9)
    assert found.context == "context:document|document:line|window:40"


def test_what_is_counted():
    found = measure_perplexity(build("rnn-lm"), VOCABULARY, LINES)
    assert (found.tokens, found.characters, found.bytes, found.words, found.unit) == (22, 22, 23, 11, "characters")
    assert found.unknown == 1
    assert found.bits_per_character == pytest.approx(found.nll / np.log(2) / 22)
    by_bytes = measure_perplexity(build_bytes := build_for(Bytes()), Bytes(), LINES)
    assert by_bytes.bits_per_byte == pytest.approx(by_bytes.loss / np.log(2)) and by_bytes.unit == "bytes"
    assert build_bytes.config.vocab_size == 260


def build_for(vocabulary) -> torch.nn.Module:
    config = MODELS["rnn-lm"].config(vocab_size=len(vocabulary), dim=4, hidden=4)
    return MODELS["rnn-lm"].model(config).double()


@pytest.mark.parametrize(
    ("name", "context", "error"),
    [
        ("gpt2", {"stride": 7}, "stride is 7; it must be at least 1 and at most the window, 6"),
        ("gpt2", {"window": 7}, "window is 7, but the model has only 6 positions: lower it"),
        ("gpt2", {"rows": 2}, "rows is 2, but rows are only for models that carry their state"),
        ("gpt2", {"memory": 2}, r"memory is for models that have one \(Transformer-XL\)"),
        ("rnn-lm", {"stride": 2}, "stride is for models with limited positions, but this one carries its state"),
        ("gpt2", {"stride": 2, "document": "line"}, "but each document is read separately"),
        ("gpt2", {"code": "Tow"}, r"the model has no control code 'Tow'; did you mean Two\?$"),
        ("rnn-lm", {"window": 0}, "window is 0; it must be at least 1"),
    ],
)
def test_a_context_that_cannot_be_is_refused(name, context, error):
    with pytest.raises(ValueError, match=error):
        measure_perplexity(build(name), VOCABULARY, LINES, Context(**context))


def test_a_text_is_attributed_to_the_code_that_it_is_likeliest_under():
    generator = Generator(build("ctrl"), VOCABULARY)
    texts = ["abc", "c", "", "aab"]
    found = generator.attribute(texts)
    for code in generator.codes:
        scores = generator.with_code(code).score(texts)
        assert [one.logp[code] for one in found] == pytest.approx([score.logp for score in scores], abs=1e-9)
    assert all(one.code == max(one.logp, key=one.logp.get) for one in found)
    assert all(sum(one.probability.values()) == pytest.approx(1) for one in found)
    long = generator.attribute(["abcabcabc\nab"])[0]  # cut into windows, each after the code
    parts = [VOCABULARY.encode(["abcabc"])[0], [*VOCABULARY.encode(["abc"])[0], 3, *VOCABULARY.encode(["ab"])[0]], [3]]
    for code, number in VOCABULARY.codes.items():
        total = 0.0
        for part in parts:
            logits = generator.model.project(generator.model.hidden_states(torch.tensor([[number, *part[:-1]]]))[0])
            total += sum(float(logits.detach().log_softmax(dim=-1)[i, token]) for i, token in enumerate(part))
        assert long.logp[code] == pytest.approx(total, abs=1e-9)
    assert generator.attribute([]) == []
    with pytest.raises(ValueError, match="the model has no control codes, so it cannot attribute a text"):
        Generator(build("ctrl"), Characters(list("abc "))).attribute(["a"])
