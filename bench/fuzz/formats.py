"""Damages that know a format: values of JSON, members of archives, the header of safetensors, what is packed."""

import gzip
import io
import json
import lzma
import random
import struct
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from bench.fuzz.cases import Case
from bench.fuzz.mutation import NUMBERS, Words, damaged

VALUES = (
    None, True, False, 0, 1, -1, 2, 7, 255, 65536, 10**6, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308, float("inf"), float("nan"), "", " ",
    "a", "0", "-1", "\0", "\ud800", "é", "../x", "/", "a/b", "a\nb", "x" * 300, "x" * 5000, [], [[]], [None], [0], [""], ["a", "a"], {}, {"": 0},
    {"a": {}}, [1, 2, 3], {"name": "x"}, {"kind": "x"},
)  # fmt: skip


def mutate(case: Case, rng: random.Random, words: Words, pool: Sequence[Case]) -> dict[str, bytes]:
    """A case with one of its files, seldom more, damaged; now and then a file is taken away or from another case."""
    found = dict(case)
    if len(found) > 1 and rng.random() < 0.03:
        del found[rng.choice(sorted(found))]
    if len(found) > 1 and rng.random() < 0.05:
        found |= {name: data for name, data in rng.choice(pool).items() if rng.random() < 0.5}
    for _ in range(1 if rng.random() < 0.9 else 2):
        name = _chosen(found, rng)
        others = [own for own in (rng.choice(pool).get(name) for _ in range(2)) if own]
        found[name] = damaged_file(name, found[name], rng, words, others)
    return found


def _chosen(case: Case, rng: random.Random) -> str:
    """A file of a case: small ones and settings more often than weights, of which most bytes mean the same."""
    names = sorted(case)
    return rng.choices(names, [1 if name.endswith((".safetensors", ".bin", ".png")) else 3 for name in names])[0]


def damaged_file(name: str, data: bytes, rng: random.Random, words: Words, others: Sequence[bytes] = ()) -> bytes:
    """A file damaged as its format allows; one time in four, or where it cannot be read any more, as plain bytes."""
    if rng.random() < 0.75:
        for ending, damage in FORMATS.items():
            if name.endswith(ending):
                with suppress(Exception):  # it is no such file any more
                    return damage(data, rng, words, others)
    return damaged(data, rng, words, others)


def _json(data: bytes, rng: random.Random, words: Words, others: Sequence[bytes]) -> bytes:
    text = json.dumps(damaged_value(json.loads(data), rng, words), ensure_ascii=rng.random() < 0.5)
    return text.encode("utf-8", "surrogatepass")


def _json_lines(data: bytes, rng: random.Random, words: Words, others: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    place = rng.randrange(len(lines))
    return b"\n".join([*lines[:place], _json(lines[place], rng, words, others), *lines[place + 1 :]])


def damaged_value(value: Any, rng: random.Random, words: Words) -> Any:
    """A JSON value with something in it replaced, removed, renamed, repeated or nested."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        holders = list(_holders(value))
        if not holders:
            return rng.choice(VALUES)
        value = _changed(value, *rng.choice(holders), rng, words)
    return value


def _holders(value: Any, most: int = 5000) -> list[tuple[Any, Any]]:
    """Each object and list within a value, with a key or an index of it."""
    found, waiting = [], [value]
    while waiting and len(found) < most:
        own = waiting.pop()
        keys = list(own) if isinstance(own, dict) else range(min(50, len(own))) if isinstance(own, list) else ()
        found += [(own, key) for key in keys]
        waiting += [own[key] for key in keys]
    return found


def _changed(value: Any, holder: Any, key: Any, rng: random.Random, words: Words) -> Any:
    match rng.randrange(9):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[_word(rng, words)] = holder.pop(key)
        case 1 | 2:
            target, place = rng.choice(_holders(value))
            target[place] = json.loads(json.dumps(holder[key]))  # no circle
        case 3:
            holder[key] = [holder[key]] if rng.random() < 0.5 else {_word(rng, words): holder[key]}
        case 4:
            for _ in range(rng.choice((5, 100, 900))):
                holder[key] = [holder[key]]
        case 5:
            holder[key] = _word(rng, words)
        case 6 if isinstance(holder[key], str):
            text = damaged(holder[key].encode("utf-8", "surrogatepass"), rng, words)
            holder[key] = text.decode("utf-8", "surrogateescape")
        case 7 if isinstance(holder[key], int | float):
            own = holder[key]
            holder[key] = rng.choice(
                (own + 1, own - 1, -own, own * 2, own * 1000, float(own), str(own), 1 << rng.randrange(70))
            )
        case _:
            holder[key] = rng.choice(VALUES)
    return value


def _word(rng: random.Random, words: Words) -> str:
    return rng.choice(words).decode("utf-8", "replace") if words else "x"


def _safetensors(data: bytes, rng: random.Random, words: Words, others: Sequence[bytes]) -> bytes:
    """The header or the numbers; the length of the header fits most of the time."""
    (length,) = struct.unpack("<Q", data[:8])
    header, numbers = data[8 : 8 + length], data[8 + length :]
    if rng.random() < 0.8:
        header = _json(header, rng, words, ())
    else:
        numbers = damaged(numbers, rng, words)
    stated = (
        len(header) if rng.random() < 0.9 else rng.choice((0, 1, len(header) - 1, len(header) + 1, 1 << 40, 2**64 - 1))
    )
    return struct.pack("<Q", max(0, stated)) + header + numbers


def _zip(data: bytes, rng: random.Random, words: Words, others: Sequence[bytes]) -> bytes:
    """An archive with a member changed, renamed, removed or added."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    name = rng.choice(sorted(members))
    match rng.randrange(12):
        case 0:
            members[_word(rng, words)] = members.pop(name)
        case 1:
            del members[name]
        case 2:
            members[_word(rng, words)] = rng.choice((b"", bytes(1 << 22), rng.randbytes(50)))
        case _:
            members[name] = damaged(members[name], rng, words)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))) as archive:
        for own, content in members.items():
            archive.writestr(own, content)
    return out.getvalue()


def _packed(unpack: Callable[[bytes], bytes], pack: Callable[[bytes], bytes]) -> Callable:
    return lambda data, rng, words, others: pack(damaged(unpack(data), rng, words))


def _settings(data: bytes, rng: random.Random, words: Words, others: Sequence[bytes]) -> bytes:
    """TOML with the value of a setting, or its name, replaced."""
    lines = data.split(b"\n")
    place = rng.choice([number for number, line in enumerate(lines) if b"=" in line])
    name, _, value = lines[place].partition(b"=")
    if rng.random() < 0.3:
        name = rng.choice((*words, b"x"))
    else:
        text = json.dumps(rng.choice(VALUES)).encode()
        value = rng.choice(
            (
                text,
                rng.choice(NUMBERS),
                b'"' + rng.choice((*words, b"x")) + b'"',
                b"[" + value + b"]",
                b"{a=1}",
                b"1979-05-27",
                b"[]",
            )
        )
    lines[place] = name + b"=" + value
    return b"\n".join(lines)


FORMATS = {
    ".json": _json, ".jsonl": _json_lines, ".journal": _json_lines, ".safetensors": _safetensors, ".docx": _zip, ".bin": _zip, ".gz": _packed(gzip.decompress, lambda data: gzip.compress(data, 1)),
    ".xz": _packed(lzma.decompress, lambda data: lzma.compress(data, preset=0)), ".toml": _settings,
}  # fmt: skip
