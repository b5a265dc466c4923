"""Batches, windows that slide, stop strings and control codes of language models: each against its plain definition."""

import pytest
import torch
from torch import nn

from heed.evaluation.perplexity import has_positions
from heed.models import MODELS
from heed.products import writing
from heed.products.generator import Generator
from heed.products.prompts import make_prompt
from heed.products.stops import StopStrings
from heed.products.text_window import SlidingWindow, read
from heed.vocabularies import ctrl, gpt, gpt2
from tests.data.mixed import training

SIZES = {"dim": 24, "heads": 3, "hidden": 48, "layers": 2}
KINDS = {
    "gpt": {"max_length": 16},
    "gpt2": {"max_length": 16},
    "ctrl": {"max_length": 16},
    "transformer-xl": {"memory": 6},
    "rnn-lm": {},
}
PROMPTS = ["the dog sees", "a", "", "she never finds the street, does she? A child likes bread", "dog"]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def vocabularies():
    learned = {"gpt": gpt.learn(training(), 500)[0], "gpt2": gpt2.learn(training(), 500)[0]}
    return {**learned, "ctrl": ctrl.with_codes(ctrl.learn(training(), 500)[0], ["Reviews", "News", "Wikipedia"])}


@pytest.fixture(scope="module")
def generators(vocabularies):
    return {name: build(name, vocabularies.get(name, vocabularies["gpt2"])) for name in KINDS}


@torch.no_grad()
def build(name, vocabulary, **changes) -> Generator:
    system, sizes = MODELS[name], SIZES if name != "rnn-lm" else {"dim": 24, "hidden": 24}
    torch.manual_seed(3)
    model = system.model(system.config(vocab_size=len(vocabulary), **sizes, **{**KINDS[name], **changes})).double()
    for own, weight in model.named_parameters():
        nn.init.normal_(weight, mean=1.0 if "norm.weight" in own else 0.0, std=0.4)
    return Generator(model.requires_grad_(False), vocabulary)


def code_of(name):
    return {"code": "News"} if name == "ctrl" else {}


@pytest.mark.parametrize("name", KINDS)
def test_a_prompt_is_read_in_parts_as_one_token_after_another(name, generators, monkeypatch):
    monkeypatch.setattr(writing, "ROWS", 3)
    monkeypatch.setattr(writing, "SEGMENT", 5)
    own, projected, read_at_once = generators[name], [], []
    project, hidden_states = own.model.project, own.model.hidden_states
    monkeypatch.setattr(own.model, "project", lambda x: projected.append(x.shape[:-1].numel()) or project(x))
    monkeypatch.setattr(own.model, "hidden_states", lambda x, s: read_at_once.append(x.shape[1]) or hidden_states(x, s))
    prompt = own.prompt(PROMPTS[0] if has_positions(own.model) else PROMPTS[3] * 3, **code_of(name))
    found = list(own.read_prompt(prompt, 2))
    assert max(projected) == 3 and sum(projected) == len(found) > 5
    size = {"transformer-xl": 6, "rnn-lm": 5}.get(name, len(found))
    assert max(read_at_once) == size and sum(read_at_once) == len(found)
    state = own.model.start(1)
    parts = torch.tensor([prompt.ids[:-1]]).split(6 if name == "transformer-xl" else 1000, dim=1)
    logp = torch.cat([project(hidden_states(part, state))[0] for part in parts]).log_softmax(dim=-1)
    assert [token.id for token in found] == prompt.text
    for token, row in zip(found, logp, strict=True):
        assert token.logp == pytest.approx(float(row[token.id]), abs=1e-9)
        assert [one.logp for one in token.likely] == pytest.approx(row.topk(2).values.tolist(), abs=1e-9)
    assert "".join(token.text for token in found) == own.decode(prompt.text)
    assert list(own.read_prompt(own.prompt("", **code_of(name)))) == []


def tokens_of(found):
    return [[one.tokens for one in each] for each in found]


WAYS = [
    {"sample": False},
    {"sample": False, "beam": 3, "count": 2},
    {"seed": 5, "count": 2, "temperature": 0.8, "top_p": 0.9},
    {"seed": 2, "repetition_penalty": 1.3, "no_repeat": 2, "one_line": True},
]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_prompts_in_a_batch_are_continued_as_alone(generators, name, way):
    """Of different lengths, also beyond the positions of a model."""
    own, way = generators[name], {**way, "length": 8, **code_of(name)}
    together = own.generate_many(PROMPTS, **way)
    assert tokens_of(together) == [tokens_of([own.generate(prompt, **way)])[0] for prompt in PROMPTS]
    assert len({str(tokens) for tokens in tokens_of(together)}) >= len(PROMPTS) - 1
    scores = own.generate(PROMPTS[3], **way)[0].token_scores
    assert together[3][0].token_scores == pytest.approx(scores, abs=1e-10)


def plain_window(text, most, code):
    """What a model reads when it has read the text token by token: the definition, without a cache."""
    window, kept = [], 1 if code else 0
    for token in text:
        window.append(token)
        if len(window) > most:
            size = most - most // 4
            window = window[:kept] + window[len(window) - size + kept :]
    return window


@pytest.mark.parametrize("name", ["gpt", "gpt2", "ctrl"])
@pytest.mark.parametrize("length", [5, 16, 17, 50])
def test_a_window_slides_as_a_loop_without_a_cache(generators, name, length):
    """The likeliest token each time, from prompts shorter and longer than the model."""
    own, most = generators[name], 16
    ids = torch.randint(5, 400, (length,), generator=torch.Generator().manual_seed(length)).tolist()
    code = own.vocabulary.codes["News"] if name == "ctrl" else None
    prompt = make_prompt(own.vocabulary, ids, "News" if name == "ctrl" else None)
    text = prompt.ids
    window = text if len(text) <= most else ([code] if code else []) + text[len(text) - most + bool(code) :]
    expected = []
    for _ in range(24):
        logits = own.model.project(own.model.hidden_states(torch.tensor([window])))[0, -1]
        logits[list(own.special.never)] = -torch.inf
        expected.append(int(logits.argmax()))
        window = [*window, expected[-1]]
        window = window if len(window) <= most else plain_window(window, most, code)
    found = own.generate_prompts([prompt], 1, length=24, sample=False)[0][0]
    assert found.tokens == own.vocabulary.pieces(expected)
    assert code is None or window[0] == code


def test_a_memory_carries_the_whole_prompt(generators):
    """A long prompt is read in segments, each with the memory of the one before; no token of it is dropped."""
    own = generators["transformer-xl"]
    ids = torch.randint(5, 400, (50,), generator=torch.Generator().manual_seed(1)).tolist()
    state = own.model.start(1)
    for start in range(0, 50, 6):
        own.model.hidden_states(torch.tensor([ids[start : start + 6]]), state)
    found = read(own.model, [ids])
    for one, other in zip(found.layers, state.layers, strict=True):
        torch.testing.assert_close(one[0], other[0], rtol=0, atol=1e-12)
    other = read(own.model, [[*ids[:40], 7, *ids[41:]]])  # beyond the memory of 6, whose states know of it
    assert not torch.allclose(found.layers[-1][0], other.layers[-1][0], rtol=0, atol=1e-14)


def test_rows_of_a_joined_state_may_leave_in_any_order(generators):
    texts, order = [[5, 6, 7, 8, 9], [10], [], [11, 12]], torch.tensor([2, 3, 1])
    for name, own in generators.items():
        state, alone = read(own.model, texts), [read(own.model, [text]) for text in texts]
        state.reorder(order)
        for token in (20, 21, 22, 23, 24, 25, 26, 27):
            found = own.model.step(torch.tensor([token] * 3), state)
            for row, i in enumerate(order.tolist()):
                expected = own.model.step(torch.tensor([token]), alone[i])[0]
                torch.testing.assert_close(found[row], expected, rtol=0, atol=1e-10, msg=name)


@pytest.mark.parametrize("name", ["gpt2", "rnn-lm", "gpt"])
@pytest.mark.parametrize("way", [{"seed": 4, "count": 3}, {"sample": False}, {"sample": False, "beam": 3}], ids=str)
def test_a_text_ends_before_a_stop_string_wherever_tokens_end(generators, name, way):
    own = generators[name]
    for whole in own.generate("the dog", length=20, **way)[:1]:
        assert len(whole.text) > 12
        for start, end in ((3, 6), (5, 6), (4, 11)):
            stop = whole.text[start:end]
            found = own.generate("the dog", length=20, stop=["no such text", stop], **way)[0]
            assert stop not in found.text
            if way.get("beam", 1) == 1:
                assert found.text == whole.text[: whole.text.index(stop)]
                assert found.tokens == whole.tokens[: len(found.tokens)]
                assert len(found.tokens) < len(whole.tokens) or whole.text.index(stop) + len(stop) == len(whole.text)
                plain = {key: value for key, value in way.items() if key != "count"}
                parts = list(own.stream("the dog", length=20, stop=["no such text", stop], **plain))
                assert "".join(parts) == found.text


def test_streams_are_texts_also_where_windows_slide(generators):
    for name in ("gpt2", "ctrl", "transformer-xl"):
        way = {"length": 24, "seed": 9, "repetition_penalty": 1.2, "no_repeat": 3, **code_of(name)}
        parts = list(generators[name].stream("the dog", **way))
        assert "".join(parts) == generators[name].generate("the dog", **way)[0].text
        assert len(parts) > 5


def test_stop_strings_hold_back_what_may_become_one():
    stops = StopStrings(["END", "\n\n"])
    assert [stops.settled(text) for text in ("a", "aE", "aEN", "aEND", "aENx", "a\n", "a\n\nb")] == [
        "a", "a", "a", "a", "aENx", "a", "a",
    ]  # fmt: skip
    assert stops.cut("oneENDtwo\n\n") == "one" and stops.found("xEND") and not stops.found("EN")


def test_a_control_code_comes_first_and_decides_the_text(generators):
    own = generators["ctrl"]
    texts = {code: own.generate("the dog", length=12, sample=False, code=code)[0] for code in own.vocabulary.codes}
    assert own.generate("News the dog", length=12, sample=False)[0].tokens == texts["News"].tokens
    logits = {}
    for code, first in own.vocabulary.codes.items():
        tokens = torch.tensor([[first, *own.encode("the dog")]])
        logits[code] = own.model.project(own.model.hidden_states(tokens))[0, -1]
        assert texts[code].tokens[0] == own.vocabulary.pieces([int(logits[code].argmax())])[0]
    assert not torch.allclose(logits["News"], logits["Reviews"])
    assert len(own.generate("", length=3, code="Reviews")[0].tokens) == 3


@pytest.mark.parametrize(
    ("name", "prompt", "options", "error"),
    [
        (
            "ctrl",
            "the dog",
            {},
            "begin with a control code, but the prompt has none: give one of News, Reviews",
        ),
        ("ctrl", "", {}, "begin with a control code, but the prompt is empty: give one of News, Reviews, Wikipedia$"),
        ("ctrl", "a", {"code": "reviews"}, r"the model has no control code 'reviews'; did you mean Reviews\?$"),
        ("ctrl", "a", {"code": "Zz"}, "the model has no control code 'Zz'; it has News, Reviews, Wikipedia$"),
        ("gpt2", "a", {"code": "News"}, "the control code is 'News', but the model has no control codes: leave it out"),
        ("gpt2", "a", {"stop": ["x", ""]}, "a stop string is empty: every text would end immediately; give"),
        ("gpt2", "a", {"min_p": 2.0}, r"min_p is 2\.0; it must be at least 0 \(off\) and at most 1"),
    ],
)
def test_what_cannot_be_done_is_said(generators, name, prompt, options, error):
    with pytest.raises(ValueError, match=error):
        generators[name].generate(prompt, length=3, **options)
    with pytest.raises(ValueError, match=error):
        list(generators[name].stream(prompt, length=3, **options))


def test_where_no_window_can_slide_a_long_text_is_refused(generators):
    own, long = generators["gpt2"], "a " * 40
    for ask in (own.look, lambda text: own.score([text])):
        with pytest.raises(ValueError, match=r"have \d+ tokens, but the model has only 16 positions: shorten them"):
            ask(long)


def test_what_does_not_fit_is_told_once(generators):
    own = generators["gpt2"]
    assert own.beyond_positions(["a", "dog"], 5) is None
    assert generators["transformer-xl"].beyond_positions(["a " * 40], 500) is None
    note = own.beyond_positions(["a"], 50)
    assert (
        note == "The model has 16 positions, and the text does not fit: a sliding window over the last tokens is used."
    )
    note = own.beyond_positions(["a " * 40, "a", "a"], 5)
    assert "1 of the 3 texts do not fit" in note and "of a longer prompt the last 16 tokens; 1 of the prompts" in note


def test_a_window_of_one_position_still_moves(vocabularies):
    own = build("gpt2", vocabularies["gpt2"], max_length=1)
    assert len(own.generate("the dog", length=5, sample=False)[0].tokens) == 5
    assert SlidingWindow(own.model).most == 1
