"""Built-in recipes: inside the package in a wheel, next to the source in a repository."""

import re
from pathlib import Path

import heed
from heed.config import meant, suggestion

_PACKAGE = Path(heed.__file__).parent
_PLACES = (_PACKAGE / "recipes", _PACKAGE.parents[1] / "recipes")


def names() -> list[str]:
    return sorted(path.stem for path in _folder().glob("*.toml"))


def about(name: str) -> str:
    """The first sentence of a recipe's comment."""
    comment = []
    for line in path(name).read_text("utf-8").splitlines():
        if not line.startswith("# "):
            break
        comment.append(line.removeprefix("# "))
    return re.split(r"(?<! al)\. ", " ".join(comment))[0].rstrip(".:")  # "et al." ends no sentence


def path(name: str) -> Path:
    if name not in names():
        raise ValueError(f"{name}: no such recipe; {suggestion(name, names())}")
    return _folder() / f"{name}.toml"


def find(given: Path) -> Path:
    """A file of the user's, or a built-in recipe by name or as recipes/NAME.toml."""
    by_name = given.parent == Path() and not given.suffix
    from_docs = given.parent.name == "recipes" and given.suffix == ".toml"
    if given.is_file() or not (by_name or from_docs):
        return given
    if given.stem in names():
        return path(given.stem)
    if by_name and not given.exists():
        near = meant(given.name, names())
        hint = f"did you mean {near}? " if near else ""
        raise ValueError(f"{given}: no such file or recipe; {hint}heed recipes lists the built-in ones")
    return given


def _folder() -> Path:
    return next((place for place in _PLACES if place.is_dir()), _PLACES[0])
