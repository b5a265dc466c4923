"""heed look: what is said beside the picture."""

from argparse import Namespace
from types import SimpleNamespace

import pytest
import torch

from heed.cli import common, look
from heed.lab import draw
from heed.models.transformer import TransformerConfig


@pytest.mark.parametrize("missing", ["", "𓀀𓀁𓀂𓀃𓀄𓀅𓀆𓀇"])
def test_characters_that_no_font_has_are_named_on_one_line(missing, monkeypatch, capsys):
    """Lines are not broken: another program may read them."""
    model = torch.nn.Linear(2, 2)
    model.config = TransformerConfig(9, dim=4, heads=1, hidden=4)
    found = SimpleNamespace(target_text="Hello")
    translator = SimpleNamespace(verbs=("translate",), model=model, look=lambda *_, **__: found)
    monkeypatch.setattr(common, "open_product", lambda args, verb: translator)
    monkeypatch.setattr(draw, "draw", lambda *_, **__: missing)
    args = dict.fromkeys(("target", "part", "layer", "head", "beam"))
    assert look.run(Namespace(folder=["runs/a"], text="안녕", out="look.png", **args)) == 0
    said = capsys.readouterr()
    assert said.out == "Hello\n" and said.err.splitlines()[-1] == "Attention: look.png"
    assert len(said.err.splitlines()) == 1 + bool(missing) and all(char in said.err for char in missing)
