"""Damages to bytes and text: bits, cuts, copies, splices, words of the format, huge numbers, deep nesting."""

import random
import re
from collections.abc import Callable, Sequence

LARGE, HUGE = 1 << 12, 1 << 16  # bytes that a file may grow to: cases must be quick, but a few may be slow
NUMBERS = (
    b"0", b"-1", b"1", b"2", b"255", b"256", b"65536", b"2147483648", b"4294967296", b"9223372036854775807", b"18446744073709551616",
    b"-9223372036854775809", b"1e308", b"1e999", b"-1e999", b"1e-999", b"NaN", b"Infinity", b"nan", b"inf", b"0.5", b"1_0", b"0x10",
    b"9" * 40, b"9" * 5000, "٣".encode(), "²".encode(), b"1.5", b"-0",
)  # fmt: skip
ODD = (
    b"\0", b"\xff", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc3", b"\xf4\x90\x80\x80", "\u2028".encode(),
    "\u0085".encode(), "\u200b".encode(), "\u3000".encode(), "\u0301".encode(), "İ".encode(), "ß".encode(), "한국어".encode(), "각".encode(),
    "😀".encode(), "\ue000".encode(), "\ufdd0".encode(), b"\t", b"\r", b"\n", b"\r\n", b"\x0b", b"\x0c", b"\x1c", b" ", b"", b"'", b'"', b"\\",
    b"\\ud800", b"{", b"}", b"[", b"]", b"<", b">", b"&", b"&#x110000;", b"&#0;", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"%s", b"{0}", b"../", b"/",
)  # fmt: skip
OPENERS = (
    b"[",
    b"{",
    b"(",
    b"<",
    b"<b>",
    b"<div>",
    b"> ",
    b"*",
    b"_",
    b"`",
    b"- ",
    b"#",
    b'{"a":',
    b"[[",
    b"a.",
    b"x=",
    b"&",
    b"\\",
    b"![",
)
_NUMBER = re.compile(rb"[-+]?\d[\d_.eE+-]*")

Words = Sequence[bytes]
Damage = Callable[[bytes, random.Random, Words], bytes]


def _span(data: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + _length(rng))


def _length(rng: random.Random) -> int:
    return rng.choice((1, 1, 2, 3, rng.randint(1, 16), rng.randint(1, 256)))


def flip_bit(data: bytes, rng: random.Random, words: Words) -> bytes:
    if not data:
        return b"\1"
    place, found = rng.randrange(len(data)), bytearray(data)
    found[place] ^= 1 << rng.randrange(8)
    return bytes(found)


def set_bytes(data: bytes, rng: random.Random, words: Words) -> bytes:
    start, end = _span(data, rng)
    filling = rng.choice((b"\0", b"\xff", b"\x80", b"0", rng.randbytes(1)))
    return data[:start] + filling * (end - start) + data[end:]


def remove(data: bytes, rng: random.Random, words: Words) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + data[end:]


def cut(data: bytes, rng: random.Random, words: Words) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] if rng.random() < 0.8 else data[place:]


def copy(data: bytes, rng: random.Random, words: Words) -> bytes:
    """Some bytes once more, or many times, here or elsewhere."""
    start, end = _span(data, rng)
    place = rng.choice((end, rng.randrange(len(data) + 1)))
    times = rng.choice((1, 1, 1, 2, 50, 2000))
    return data[:place] + data[start:end] * times + data[place:]


def insert_odd(data: bytes, rng: random.Random, words: Words) -> bytes:
    start, end = _span(data, rng)
    end = rng.choice((start, end))
    return data[:start] + rng.choice(ODD) * rng.choice((1, 1, 1, 3)) + data[end:]


def insert_word(data: bytes, rng: random.Random, words: Words) -> bytes:
    if not words:
        return insert_odd(data, rng, words)
    start, end = _span(data, rng)
    return data[:start] + rng.choice(words) + data[rng.choice((start, end)) :]


def change_number(data: bytes, rng: random.Random, words: Words) -> bytes:
    found = list(_NUMBER.finditer(data[:HUGE]))
    if not found:
        return insert_odd(data, rng, words)
    match = rng.choice(found)
    return data[: match.start()] + rng.choice(NUMBERS) + data[match.end() :]


def nest(data: bytes, rng: random.Random, words: Words) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.choice(OPENERS) * rng.choice((10, 300, 3000)) + data[place:]


def change_lines(data: bytes, rng: random.Random, words: Words) -> bytes:
    """A line removed, repeated, moved, joined with the next, or another line's end put on it."""
    lines = data.split(b"\n")
    place, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(6):
        case 0:
            del lines[place]
        case 1:
            lines.insert(other, lines[place])
        case 2:
            lines[place], lines[other] = lines[other], lines[place]
        case 3:
            lines[place : place + 2] = [b"".join(lines[place : place + 2])]
        case 4:
            half = len(lines[place]) // 2
            lines[place] = lines[place][:half] + lines[other][len(lines[other]) // 2 :]
        case _:
            lines[place] = rng.choice((b"", b" ", b"\t", b"\r", rng.choice(words) if words else b"x"))
    return b"\n".join(lines)


def swap_cells(data: bytes, rng: random.Random, words: Words) -> bytes:
    """A cell between separators removed, repeated or replaced by a word."""
    separator = rng.choice((b"\t", b" ", b",", b":", b"=", b'"', b"-", b"|", b"."))
    cells = data.split(separator)
    place = rng.randrange(len(cells))
    new = rng.choice(([], [cells[place]] * 2, [b""], [rng.choice(words)] if words else [b"x"], [rng.choice(NUMBERS)]))
    return separator.join([*cells[:place], *new, *cells[place + 1 :]])


DAMAGES: tuple[Damage, ...] = (
    flip_bit, set_bytes, remove, cut, copy, insert_odd, insert_word, insert_word, change_number, nest, change_lines, swap_cells,
)  # fmt: skip


def damaged(data: bytes, rng: random.Random, words: Words, others: Sequence[bytes] = ()) -> bytes:
    """Some damages after each other; now and then a part of another file first."""
    if others and rng.random() < 0.1:
        other = rng.choice(others)
        data = data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]
    most = max(len(data), HUGE if rng.random() < 0.005 else LARGE)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        data = rng.choice(DAMAGES)(data, rng, words)[:most]
    return data
