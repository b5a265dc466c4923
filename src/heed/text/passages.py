"""Translation of a text, shared by the library, the command line and the service. A text is split into layout and
sentences; each sentence is translated as a whole, with its protected spans; and the translations are put back into
the layout.
"""

from collections.abc import Sequence
from typing import NamedTuple

from heed.text import layout, protected
from heed.text.protected import Model, ModelRequest, ProtectedText


class Passage(NamedTuple):
    """A sentence and its translation, and the position of each in its text. `shown` is the model input, if its output
    is the translation; empty if that was changed afterwards.
    """

    source: str
    source_start: int
    source_end: int
    target: str
    target_start: int
    target_end: int
    shown: ModelRequest = ModelRequest("")


def translate(
    texts: Sequence[str],
    model: Model,
    *,
    language: str | None = None,
    keep: Sequence[str] = (),
    prefix: str = "",
) -> list[tuple[str, list[Passage]]]:
    """Each text in its layout, with its sentences before and after; the translation of the first one begins with
    `prefix`.
    """
    skeletons = [layout.take_apart(text, language) for text in texts]
    requests = [
        ModelRequest(own, "" if number else prefix)
        for skeleton in skeletons
        for number, own in enumerate(skeleton.texts)
    ]
    found = iter(protected.translate_with(model, requests, keep))
    return [join(skeleton, [next(found) for _ in skeleton.segments]) for skeleton in skeletons]


def join(skeleton: layout.Skeleton, translations: Sequence[ProtectedText]) -> tuple[str, list[Passage]]:
    """A layout filled with translations, and the position of each translated sentence."""
    passages, output, position = [], skeleton.between[0], len(skeleton.between[0])
    for number, (segment, own) in enumerate(zip(skeleton.segments, translations, strict=True)):
        new, old = _filled(segment, own.text), _filled(segment, segment.text)
        spans = (position, position + len(old)), (len(output), len(output) + len(new))
        if own.request:
            shown = own.request if own.is_answer else ModelRequest("")
            passages.append(Passage(segment.text, *spans[0], own.text, *spans[1], shown))
        output += new + skeleton.between[number + 1]
        position += len(old) + len(skeleton.between[number + 1])
    return output, passages


def _filled(segment: layout.Segment, text: str) -> str:
    return layout.fill(layout.Skeleton(("", ""), (segment,)), [text])
