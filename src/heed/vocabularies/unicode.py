"""Spaces, and texts that no vocabulary can encode."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

SPACES = "\t\x0b\x0c\r\x1c\x1d\x1e\x1f"  # besides the space and the line break; these are in ASCII
MORE_SPACES = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


def single_spaced(lines: str) -> str:
    """Lines as `" ".join(line.split())` makes each, many times faster for many."""
    for space in SPACES if lines.isascii() else SPACES + MORE_SPACES:
        lines = lines.replace(space, " ")  # which only looks, where there is none
    while "  " in lines:
        lines = lines.replace("  ", " ")
    return lines.replace(" \n", "\n").replace("\n ", "\n").strip(" ")


def check_surrogates(texts: Iterable[str]) -> None:
    """Refuse a lone surrogate, as Python makes of bytes of the command line that are not UTF-8."""
    for number, text in enumerate(texts, 1):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"text {number} has a lone surrogate at position {error.start} (U+{ord(text[error.start]):04X}): "
                "decode it as UTF-8 first, or remove it"
            ) from None


@contextmanager
def surrogates_reported(texts: Sequence[str]) -> Iterator[None]:
    """Report them where a tokenizer of another library fails on them, without a look at each text before."""
    try:
        yield
    except (TypeError, RuntimeError):
        check_surrogates(texts)
        raise
