"""Word alignments in Pharaoh's format, `0-0 1-2`, and their error rate (Och and Ney, 2003)."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from heed.data import readers

Link = tuple[int, int]
Alignments = Sequence[set[Link]]  # one set of links per sentence

_LINK = re.compile(r"([0-9]{1,9})([-?p])([0-9]{1,9})")


def parse(line: str, number: int = 1) -> set[Link]:
    """Return all links of one line, sure (`0-1`) and possible (`0?1`, `0p1`)."""
    return {link for link, _ in _links(line, number)}


def parse_sure(line: str, number: int = 1) -> set[Link]:
    """Return the sure links of one line, those with a hyphen."""
    return {link for link, sure in _links(line, number) if sure}


def write(links: Iterable[Link]) -> str:
    """Return links as one line, sorted."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def read(path: Path | str) -> list[set[Link]]:
    """Read a file of predicted alignments, one sentence per line."""
    return read_gold(path)[1]


def read_gold(path: Path | str) -> tuple[Alignments, Alignments]:
    """Read a file of gold alignments: the sure links, and all possible links, which include the sure ones."""
    lines = list(enumerate(readers.lines(Path(path)), 1))
    try:
        return [parse_sure(line, number) for number, line in lines], [parse(line, number) for number, line in lines]
    except ValueError as error:
        raise ValueError(f"{path}, {error}") from None


def error_rate(predicted: Alignments, sure: Alignments, possible: Alignments | None = None) -> float:
    """Return the alignment error rate of a corpus, 1 - (|A∩S| + |A∩P|) / (|A| + |S|); 0 is perfect."""
    in_sure, in_possible = _hits(predicted, sure), _hits(predicted, _allowed(sure, possible))
    total = _count(predicted) + _count(sure)
    return 1 - (in_sure + in_possible) / total if total else 0.0


def precision(predicted: Alignments, sure: Alignments, possible: Alignments | None = None) -> float:
    """Return the share of predicted links that are possible, |A∩P| / |A|; 1 when none was predicted."""
    hits, total = _hits(predicted, _allowed(sure, possible)), _count(predicted)
    return hits / total if total else 1.0


def recall(predicted: Alignments, sure: Alignments) -> float:
    """Return the share of sure links that were predicted, |A∩S| / |S|; 1 when there is none."""
    hits, total = _hits(predicted, sure), _count(sure)
    return hits / total if total else 1.0


def _links(line: str, number: int) -> list[tuple[Link, bool]]:
    """Return each link of a line, and whether it is sure."""
    links = []
    for item in line.split():
        match = _LINK.fullmatch(item)
        if match is None:
            raise ValueError(f"line {number}: {item!r} is not a link; it must look like 0-1, or 0?1 if only possible.")
        links.append(((int(match[1]), int(match[3])), match[2] == "-"))
    return links


def _allowed(sure: Alignments, possible: Alignments | None) -> Alignments:
    """Return the possible links of every sentence; sure links are possible too."""
    if possible is None:
        return sure
    _check("possible", possible, sure)
    return [one | other for one, other in zip(sure, possible, strict=True)]


def _hits(predicted: Alignments, gold: Alignments) -> int:
    _check("predicted", predicted, gold)
    return sum(len(one & other) for one, other in zip(predicted, gold, strict=True))


def _count(alignments: Alignments) -> int:
    return sum(len(links) for links in alignments)


def _check(name: str, alignments: Alignments, gold: Alignments) -> None:
    if not gold:
        raise ValueError("sure is empty; at least one sentence is needed.")
    if len(alignments) != len(gold):
        raise ValueError(f"{name} has {len(alignments)} sentences and sure has {len(gold)}; the numbers must match.")
