"""What a report measures: another model translates the validation set in the directions of the run."""

from types import SimpleNamespace

import pytest

from heed.decoding.config import UNGUARDED
from heed.runs.report import collect

ROWS = [(f"source {n}", f"reference {n}", f"output {n}") for n in range(5)]


@pytest.mark.parametrize(
    ("kept", "calls"),
    [
        (None, [((None, None), [0, 1, 2, 3, 4])]),
        ({}, [((None, None), [0, 1, 2, 3, 4])]),
        ({"ko-en": 2, "en-ko": 3}, [(("ko", "en"), [0, 1]), (("en", "ko"), [2, 3, 4])]),
    ],
)
def test_another_model_translates_each_source_in_its_direction(kept, calls, tmp_path, monkeypatch):
    recipe = SimpleNamespace(data=SimpleNamespace(directions=[("ko", "en"), ("en", "ko")]))
    made = []

    def translate(folder, sources, options, **search):
        assert folder == "other" and search == {"beam": 3, **UNGUARDED}
        made.append((options.direction, sources))
        return [f"translated {source}" for source in sources]

    monkeypatch.setattr(collect, "_recipe", lambda folder: recipe)
    monkeypatch.setattr(collect, "validation_search", lambda recipe: SimpleNamespace(beam=3))
    monkeypatch.setattr(
        collect.final_validation, "read", lambda folder: None if kept is None else SimpleNamespace(directions=kept)
    )
    monkeypatch.setattr(collect, "_translate", translate)
    found = collect._validated_by("other", tmp_path, ROWS, collect.Options())
    assert found == [f"translated source {n}" for n in range(5)]
    assert made == [(way, [f"source {n}" for n in numbers]) for way, numbers in calls]
