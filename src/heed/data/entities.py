"""Word labels as entities, in the schemes BIO, IOB1 and BIOES. In BIO the first word of an entity has B-, the others
I-. IOB1 uses B- only if an entity directly follows another of its type. In BIOES the last word has E-, and a
single-word entity S-. Labels without prefixes are "plain". "unchanged" are labels that are learned as they are, although they have
prefixes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

Scheme = Literal["auto", "bio", "iob1", "bioes", "plain"]
NAMES = {"bio": "BIO", "iob1": "IOB1", "bioes": "BIOES", "plain": "labels without prefixes"}
OUTSIDE, UNCHANGED = "O", "unchanged"
PREFIXES = {"B": "B", "I": "I", "E": "E", "S": "S", "L": "E", "U": "S"}  # the last two are BILOU's


class Entity(NamedTuple):
    """A type, the first word, and the one after the last."""

    type: str
    start: int
    end: int


def split_label(label: str) -> tuple[str, str]:
    """The prefix and the type; a label without a prefix counts as I-."""
    if label == OUTSIDE:
        return OUTSIDE, ""
    prefix, dash, kind = label.partition("-")
    return (PREFIXES[prefix], kind) if dash and prefix in PREFIXES else ("I", label)


def entities(labels: Iterable[str]) -> list[Entity]:
    """The entities as conlleval and seqeval read them: an I- after another type, or after O, begins one."""
    found: list[Entity] = []
    before = OUTSIDE, ""
    for place, label in enumerate(labels):
        prefix, kind = split_label(label)
        begins = before[0] in (OUTSIDE, "E", "S") or prefix in ("B", "S") or kind != before[1]
        if prefix != OUTSIDE and begins:
            found.append(Entity(kind, place, place + 1))
        elif prefix != OUTSIDE:
            found[-1] = found[-1]._replace(end=place + 1)
        before = prefix, kind
    return found


def labels_of(found: Sequence[Entity], words: int, scheme: str) -> list[str]:
    """The labels of the words of a sentence in a scheme."""
    labels, last = [OUTSIDE] * words, Entity("", -1, -1)
    for one in found:
        inside = [one.type if scheme == "plain" else f"I-{one.type}"] * (one.end - one.start)
        if scheme == "bio" or (scheme == "iob1" and last.end == one.start and last.type == one.type):
            inside[0] = f"B-{one.type}"
        if scheme == "bioes":
            inside[0], inside[-1] = f"B-{one.type}", f"E-{one.type}"
            inside = [f"S-{one.type}"] if len(inside) == 1 else inside
        labels[one.start : one.end] = inside
        last = one
    return labels


def violation(labels: Sequence[str], scheme: str) -> tuple[int, str] | None:
    """The first word whose label violates the scheme, and why; None if all are valid."""
    check = _RULES.get(scheme)
    before = OUTSIDE, ""
    for place, label in enumerate(labels if check else ()):
        own = split_label(label)
        why = f"{label} has no prefix" if own == ("I", label) else check(before, own)
        if why:
            earlier = labels[place - 1] if place else "the beginning of the sentence"
            return place, why.replace("{before}", earlier).replace("{label}", label)  # which may have brackets itself
        before = own
    if scheme == "bioes" and before[0] in ("B", "I"):
        return len(labels) - 1, f"{labels[-1]} ends the sentence, but its entity has no E-"
    return None


Label = tuple[str, str]


def _bio(before: Label, own: Label) -> str:
    if own[0] in ("E", "S"):
        return "{label} belongs to BIOES"
    broken = own[0] == "I" and (before[0] == OUTSIDE or before[1] != own[1])
    return "{label} follows {before}, and cannot begin an entity in BIO" if broken else ""


def _iob1(before: Label, own: Label) -> str:
    if own[0] in ("E", "S"):
        return "{label} belongs to BIOES"
    broken = own[0] == "B" and (before[0] == OUTSIDE or before[1] != own[1])
    return "{label} follows {before}, and in IOB1 it must follow an entity of its own type" if broken else ""


def _bioes(before: Label, own: Label) -> str:
    inside = before[0] in ("B", "I")
    if own[0] in ("I", "E"):
        return "" if inside and before[1] == own[1] else "{label} follows {before}, and cannot begin an entity in BIOES"
    return "{label} follows {before}, but the entity before it has no E-" if inside else ""


_RULES: dict[str, Callable[[Label, Label], str]] = {"bio": _bio, "iob1": _iob1, "bioes": _bioes}


def have_prefixes(names: Iterable[str]) -> bool:
    return any(split_label(name) != ("I", name) for name in names if name != OUTSIDE)


def guess_scheme(names: Iterable[str], allowed: Callable[[str], bool]) -> str | None:
    """The scheme of labels with these names; `allowed` says whether all labels are valid in a scheme. None: no scheme
    fits.
    """
    names = set(names)
    parts = {split_label(name) for name in names}
    if names - {OUTSIDE} and not have_prefixes(names):
        return "plain"
    if {prefix for prefix, _ in parts} & {"E", "S"}:
        return "bioes" if allowed("bioes") else None
    return next((scheme for scheme in ("bio", "iob1") if allowed(scheme)), None)


def scheme_of_model(names: Sequence[str]) -> str:
    """The scheme in which a trained model predicts: IOB1 if a type has only I-."""
    types = {kind for prefix, kind in map(split_label, names) if prefix == "I"}
    begun = {kind for prefix, kind in map(split_label, names) if prefix == "B"}
    return guess_scheme(names, lambda scheme: scheme != "bio" or types <= begun) or "bio"


def label_names(types: Iterable[str]) -> list[str]:
    """The labels of a new model, in BIO."""
    return [OUTSIDE, *(f"{prefix}-{kind}" for kind in sorted(set(types)) for prefix in "BI")]
