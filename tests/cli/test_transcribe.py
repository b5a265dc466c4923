"""heed transcribe: what is refused before a model is opened."""

from argparse import Namespace

import pytest

from heed.cli import common, transcribe


@pytest.mark.parametrize("kind", ["srt", "vtt"])
def test_subtitles_are_of_one_recording(kind, monkeypatch):
    monkeypatch.setattr(common, "open_product", lambda args, verb: pytest.fail("it opens the model first"))
    with pytest.raises(ValueError, match=f"--format {kind} is for a single recording: call heed transcribe once per"):
        transcribe.run(Namespace(format=kind, files=["a.wav", "b.wav"]))
