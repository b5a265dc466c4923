"""The character normalization map of SentencePiece: a trie of the strings that it replaces, and their replacements."""

import base64
import binascii
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, UInt32

if TYPE_CHECKING:
    from tokenizers.normalizers import Precompiled

BLOCK = 256  # the children of a node are within one block of units
IS_VALUE = 1 << 31  # of a unit that is no node: its other bits are where a replacement begins


def precompiled(charsmap: bytes, path: str) -> "Precompiled":
    """The normalizer of a map. A damaged one, which the library would read and then panic over some text, is refused."""
    from tokenizers.normalizers import Precompiled

    if not _is_sound(charsmap):
        raise ValueError(
            f"{path} is damaged: its character normalization map refers to what it does not have; copy it again"
        )
    return Precompiled(charsmap)


def check_normalizer(settings: object, path: str) -> None:
    """Refuse a damaged map among the normalizers of a tokenizer.json."""
    waiting = [settings]
    while waiting:
        own = waiting.pop()
        if not isinstance(own, dict):
            continue
        if own.get("type") == "Precompiled":
            try:
                precompiled(base64.b64decode(str(own.get("precompiled_charsmap")), validate=True), path)
            except binascii.Error as error:
                raise ValueError(
                    f"{path} is damaged: its character normalization map is not base64 ({error})"
                ) from error
        if isinstance(own.get("normalizers"), list):
            waiting += own["normalizers"]


def _is_sound(charsmap: bytes) -> bool:
    """Whether every node leads to units that exist, and every value to the beginning of a character."""
    size = int.from_bytes(charsmap[:4], "little")
    if not size or size % (4 * BLOCK) or 4 + size > len(charsmap):
        return False
    units: UInt32[np.ndarray, " n"] = np.frombuffer(charsmap, "<u4", size // 4, 4)
    replacements = charsmap[4 + size :]
    try:
        replacements.decode("utf-8")
    except UnicodeDecodeError:
        return False
    nodes = np.flatnonzero(units < IS_VALUE)
    own = units[nodes]
    children = nodes ^ (own >> 10 << ((own & 1 << 9) >> 6)).astype(np.int64)
    if children.max(initial=0) >= len(units):
        return False
    begins = units[children[own >> 8 & 1 == 1]] & (IS_VALUE - 1)
    starts: Bool[np.ndarray, " n"] = np.frombuffer(replacements + b"\0", np.uint8) & 0xC0 != 0x80
    return bool(begins.max(initial=0) < len(starts) and starts[begins].all())
