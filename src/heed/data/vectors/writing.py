"""Write word vectors in word2vec's formats, which most tools read."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from heed.data.vectors.layout import FRACTION
from heed.files import atomic_file

BLANK = " \t\r\n\v\f"


def write(path: Path, words: Sequence[str], matrix: Float32[np.ndarray, "words dim"]) -> None:
    """Binary if the name ends in .bin, else text; gzipped if .gz follows. Written atomically."""
    gzipped = path.suffix == ".gz"
    binary = (path.with_suffix("") if gzipped else path).suffix == ".bin"
    for word in words:
        _check(path, word, binary)
    line = ("%s" + " %.9g" * matrix.shape[1] + "\n").__mod__  # nine digits restore a float32 exactly
    with atomic_file(path) as part, (gzip.open if gzipped else open)(part, "wb") as file:
        file.write(b"%d %d\n" % matrix.shape)
        for word, row in zip(words, matrix, strict=True):
            if binary:
                file.write(word.encode() + b" " + row.astype("<f4").tobytes() + b"\n")
            else:
                file.write(line((word, *row.tolist())).encode())


def _check(path: Path, word: str, binary: bool) -> None:
    parts = word.encode().split()
    if not parts or word[0] in BLANK or word[-1] in BLANK or "\n" in word or any(map(FRACTION.fullmatch, parts[1:])):
        raise ValueError(f"{path}: the word {word!r} cannot be written: it would be read back as a different word")
    if binary and " " in word:
        raise ValueError(
            f"{path}: the word {word!r} contains a space, which the binary format does not allow: write .vec"
        )
