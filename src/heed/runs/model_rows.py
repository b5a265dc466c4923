"""Rows on a model that heed train and heed info print: its sizes, and its vocabulary. Nothing here needs torch."""

from collections.abc import Mapping
from typing import Any

from heed.vocabularies.histories import Histories
from heed.vocabularies.images import Images
from heed.vocabularies.items import Items
from heed.vocabularies.labels import Labels, Numbers
from heed.vocabularies.processors import is_sound

SIZES = {"dim": "dimension {}", "hidden": "hidden {}", "heads": "{} heads"}  # of a model, by the name in its config


def sizes(known: Mapping[str, Any]) -> str:
    """Layers, dimensions and heads of a model, as far as its config has them."""
    layers = [known[name] for name in ("encoder_layers", "decoder_layers") if known.get(name)] or [known.get("layers")]
    parts = [f"{'+'.join(map(str, layers))} {'layer' if layers == [1] else 'layers'}"] if layers != [None] else []
    return ", ".join(parts + [words.format(f"{known[name]:,}") for name, words in SIZES.items() if known.get(name)])


def vocabulary_row(processors: Mapping[str, Any]) -> str:
    """What the model reads and writes, and how many different ones of it there are."""
    seen: dict[int, tuple[list[str], Any]] = {}
    for name, own in processors.items():
        seen.setdefault(id(own), ([], own))[0].append(name)
    parts = [_vocabulary(names, own, len(seen) == 1) for names, own in seen.values()]
    return " · ".join(filter(None, parts))


def _vocabulary(names: list[str], own: Any, alone: bool) -> str:
    if isinstance(own, Images):
        return (
            f"images of {own.size} × {own.size} pixels, {own.channels} {'channels' if own.channels > 1 else 'channel'}"
        )
    if is_sound(own):
        return f"sound, {own.settings.kind} features"
    if isinstance(own, Histories):
        return ""  # the users that are held out
    if isinstance(own, Numbers):
        return "numbers as labels"
    if isinstance(own, Items | Labels):
        return f"{len(own):,} {names[0]}"
    shared = ", shared by source and target" if len(names) > 1 else ""
    return (
        f"{len(own):,} tokens{shared}" if alone or names == ["text"] else f"{' and '.join(names)} {len(own):,} tokens"
    )
