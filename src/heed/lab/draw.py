"""Write a look as a file: a page, an image or data, by the file's suffix."""

from pathlib import Path

from heed.files import write_text
from heed.lab import attention_map
from heed.lab.attention import Look, to_json

SUFFIXES = (".html", ".png", ".svg", ".json")


def draw(look: Look, path: Path, *, part: str = "cross", layer: int | None = None, head: int | None = None) -> str:
    """Write a look to a file and return the characters no font could show, for `fonts.describe_missing`.

    Layers and heads are counted from 1. An image without a layer shows all maps around the part's mean; with a layer,
    only that map (the mean of its heads if no head is given). A page opens on the chosen map. JSON holds everything.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"The file {path.name!r} must end in one of {', '.join(SUFFIXES)}, which selects the format.")
    attention_map.check(look, part, layer, head)
    if suffix == ".json":
        write_text(path, to_json(look) + "\n")
        return ""
    if suffix == ".html":
        from heed.lab.viewer import build_page

        text, missing = build_page(look, part, layer, head)
        write_text(path, text)
        return missing
    from heed.lab.picture import save

    return save(look, path, part, layer, head)
