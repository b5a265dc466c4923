"""Signals: a validation is given up and done again later, with the same result; a second signal ends the run at once."""

import hashlib
import os
import signal

import pytest

from heed.runs import stopping
from heed.runs.recipe import parse
from heed.runs.run import Run
from heed.runs.stopping import GivenUp, Stopping
from heed.runs.train import run as train
from heed.tasks.translation import TranslationValidation
from tests import fixed_pairs


class Silent:
    """A report that keeps what is said."""

    steps = None

    def __init__(self):
        self.said = []

    def say(self, sentence):
        self.said.append(sentence)

    def summary(self, rows): ...

    def expect(self, words): ...

    def moves(self, step): ...

    def busy(self, what): ...

    def step(self, facts): ...

    def valid(self, *facts): ...

    def close(self): ...


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A corpus of 200 pairs, of which 8 are held out."""
    folder = tmp_path_factory.mktemp("corpus")
    pairs = list(fixed_pairs.pairs("train", 200))
    for name, texts in (("source", [one.source for one in pairs]), ("target", [one.target for one in pairs])):
        (folder / name).write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return folder


@pytest.fixture
def recipe(files, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(files / "cache"))
    layers = {"encoder_layers": 1, "decoder_layers": 1, "dim": 8, "hidden": 8, "heads": 2}
    training = {"steps": 4, "valid_every": 2, "batch_tokens": 300, "device": "cpu", "final": "average-last"}
    return parse(
        {
            "data": {"source": [str(files / "source")], "target": [str(files / "target")], "holdout": 8},
            "subwords": {"kind": "words"},
            "model": {"name": "transformer", **layers},
            "training": {**training, "average": 2},
            "decoding": {"max_length": 5},
        }
    )


@pytest.fixture
def whole(files, recipe):
    """The folder of a run that no signal reached."""
    if not (files / "whole").exists():
        train(recipe, files / "whole", report=lambda *_: Silent())
    return files / "whole"


def digest(folder) -> str:
    return hashlib.sha256((folder / "model" / "model.safetensors").read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("validation", "step", "number"),
    [(1, 2, signal.SIGTERM), (3, 4, signal.SIGINT)],
    ids=["of a step", "of the final model"],
)
def test_a_validation_is_given_up_and_a_resumed_run_ends_with_the_same_bits(
    tmp_path, whole, recipe, monkeypatch, validation, step, number
):
    told, calls, loss = Silent(), [], TranslationValidation.loss

    def signalled(self, model):
        calls.append(1)
        if len(calls) == validation:
            os.kill(os.getpid(), number)
            pytest.fail("the validation goes on")
        return loss(self, model)

    monkeypatch.setattr(TranslationValidation, "loss", signalled)
    outcome = train(recipe, tmp_path / "broken", report=lambda *_: told)
    assert (outcome.how, outcome.step, len(calls)) == ("interrupted", step, validation)
    if step == 2:
        assert "The validation at step 2 was interrupted: a resumed run does it first." in told.said
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    assert Stopping.handle not in [getattr(own, "__func__", own) for own in handlers], "those of before are back"
    assert train(recipe, tmp_path / "broken", resume=True, report=lambda *_: told).how == "finished"
    assert digest(tmp_path / "broken") == digest(whole)
    names = [sorted(path.name for path in (run / "checkpoints").iterdir()) for run in (whole, tmp_path / "broken")]
    assert names[0] == names[1]


def test_a_validation_does_not_begin_after_a_signal(tmp_path, recipe, monkeypatch):
    tell, looked = Run._tell, []

    def signalled(self, progress):
        if progress.step == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        tell(self, progress)

    monkeypatch.setattr(Run, "_tell", signalled)
    monkeypatch.setattr(TranslationValidation, "run", lambda self, model: looked.append(1))
    assert train(recipe, tmp_path / "run", report=lambda *_: Silent()).how == "interrupted"
    assert not looked


def test_a_second_signal_ends_at_once_whatever_is_done(monkeypatch):
    asked, defaults = [], {}
    monkeypatch.setattr(stopping.signal, "signal", defaults.__setitem__)
    own = Stopping(lambda: asked.append(1))
    own.handle(signal.SIGTERM, None)
    assert asked == [1] and not defaults
    with pytest.raises(KeyboardInterrupt):
        own.handle(signal.SIGTERM, None)
    assert {defaults[each] for each in (signal.SIGINT, signal.SIGTERM)} == {signal.SIG_DFL}, "a third one ends all"


def test_what_is_given_up_is_taken_by_no_other_handler():
    own = Stopping(lambda: None)
    with pytest.raises(GivenUp), own.given_up_if_asked():
        try:
            own.handle(signal.SIGTERM, None)
        except Exception:  # as in a library
            pytest.fail("a library took it")
    assert not own.may_give_up
