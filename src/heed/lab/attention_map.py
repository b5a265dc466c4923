"""One attention map of a look, chosen by part, layer and head: its weights, title and caption."""

import numpy as np

from heed.lab.attention import PARTS, Look

TITLES = {"encoder": "Encoder self-attention", "decoder": "Decoder self-attention", "cross": "Cross attention"}
CAPTIONS = {
    "encoder": "Each row is a source token; the darker a cell, the more it attends to the token above.",
    "decoder": "Each row is a decoder input token; the darker a cell, the more it attends to the token above.",
    "cross": "Each row is a target token; the darker a cell, the more it attends to the source token above.",
}


def check(look: Look, part: str, layer: int | None, head: int | None):
    """Refuse a part, layer or head that the model does not have; layers and heads are counted from 1."""
    if part not in PARTS:
        raise ValueError(f"The part is {part!r}; it should be one of {', '.join(PARTS)}.")
    layers, heads = getattr(look, part).shape[:2]
    available = [name for name in PARTS if getattr(look, name).size]
    if not layers and (layer is not None or available):
        others = ", ".join(available) or "no attention at all"
        raise ValueError(f"This model has no {TITLES[part].lower()}; it has {others}.")
    for name, value, count in (("layer", layer, layers), ("head", head, heads)):
        if value is not None and not 1 <= value <= count:
            raise ValueError(f"There is no {name} {value} in the {part}; {name}s are counted from 1 to {count}.")
    if head is not None and layer is None:
        why = "heads of different layers are unrelated."
        raise ValueError(f"Head {head} of which layer? Give a layer too: {why}")


def weights(look: Look, part: str, layer: int | None, head: int | None) -> np.ndarray:
    """Return the map of one head, the mean over a layer's heads, or the mean over all heads."""
    maps = getattr(look, part)
    if layer is None:
        return maps.mean((0, 1))
    return maps[layer - 1].mean(0) if head is None else maps[layer - 1, head - 1]


def title(look: Look, part: str, layer: int | None, head: int | None) -> str:
    layers, heads = getattr(look, part).shape[:2]
    if layers * heads == 1:
        return TITLES[part]
    if layer is None:
        return f"{TITLES[part]} · mean of all {layers * heads} heads"
    which = f"mean of {heads} heads" if head is None else f"head {head}"
    return f"{TITLES[part]} · layer {layer} · {which}"
