"""Texts that no vocabulary can encode."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager


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
