"""Which languages a translator translates: one pair of them, or several with one model."""

from collections.abc import Mapping, Sequence
from typing import Any

Direction = tuple[str, str]  # the languages of the source and of the target


def read(facts: Mapping[str, Any]) -> list[Direction]:
    """The directions that a model folder states; none where it does not say."""
    if facts.get("directions"):
        return [(source, target) for source, target in facts["directions"]]
    languages = facts.get("languages") or {}
    source, target = languages.get("source"), languages.get("target")
    return [(source, target)] if source and target else []


def only(facts: Mapping[str, Any], direction: Direction) -> dict[str, Any]:
    """The facts of a model, as if it had this direction alone."""
    return {**facts, "directions": [direction], "languages": dict(zip(("source", "target"), direction, strict=True))}


def choose(directions: Sequence[Direction], source: str | None, target: str | None) -> Direction | None:
    """The direction between these languages, of which those that are clear may be left out; None where nothing is stated."""
    if not directions and not (source or target):
        return None
    found = [own for own in directions if source in (None, own[0]) and target in (None, own[1])]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{own[0]} to {own[1]}" for own in found or directions)
    if found:
        raise ValueError(f"the model translates {known}: say which with --to or --from (in Python: target, source)")
    asked = " ".join([*([f"from {source}"] if source else []), *([f"to {target}"] if target else [])])
    if not directions:
        raise ValueError(
            f"the model's folder does not say which languages it is for: it cannot be asked to translate {asked}"
        )
    raise ValueError(f"the model does not translate {asked}; it translates {known}")
