"""The lab speaks English and Korean: every text has both, with the same fields."""

import ast
import tomllib
from importlib.resources import files
from pathlib import Path
from string import Formatter

import pytest

import heed.lab
from heed.lab.language import korean, speaking, system_language, tr

SOURCES = sorted(Path(heed.lab.__path__[0]).rglob("*.py"))


def texts(path: Path) -> list[str]:
    """Return the texts that a file passes to tr."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    calls = [
        call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "tr" and path.stem != "language"
    ]
    return [call.args[0].value if isinstance(call.args[0], ast.Constant) else "" for call in calls]


def fields(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in Formatter().parse(text) if name is not None)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_text_is_a_literal_that_the_catalogue_has(path):
    assert [text for text in texts(path) if text not in korean()] == []


def test_no_catalogue_has_a_text_that_no_code_says():
    said = {text for path in SOURCES for text in texts(path)}
    assert sorted(set(korean()) - said) == []


def test_no_two_catalogues_translate_a_text_differently():
    found: dict[str, set[str]] = {}
    for file in (files("heed.lab") / "korean").iterdir():
        for english, other in tomllib.loads(file.read_text(encoding="utf-8")).items():
            found.setdefault(english, set()).add(other)
    assert [english for english, others in found.items() if len(others) > 1] == []


def test_both_languages_have_the_same_fields():
    assert [english for english, other in korean().items() if fields(english) != fields(other)] == []


def test_a_text_is_formatted_and_english_unless_asked():
    assert tr("{n} layers", n=3) == "3 layers"
    with pytest.raises(ValueError, match="no language 'fr'; there are en and ko"), speaking("fr"):
        pass


@pytest.mark.parametrize(("name", "value", "language"), [("LC_ALL", "ko_KR.UTF-8", "ko"), ("LANG", "C.UTF-8", "en")])
def test_the_locale_chooses_the_language(monkeypatch, name, value, language):
    for other in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, value)
    assert system_language() == language
