"""How often the language of a short text is found, and how fast: `python -m bench.language_id FILE.en FILE.de ...`.

The language of a file is that of its name (val.en.gz, en.txt). Texts are whole lines, and their first three, two and one
words; a text without spaces is cut after three letters a word. All languages of the files are served. lingua is measured
where it is installed.
"""

import argparse
import random
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

from heed.data import readers
from heed.service.http.detect import detect
from heed.text import language_id
from heed.text.languages import base_code, language_of_files

CUTS = {"whole": None, "3 words": 3, "2 words": 2, "1 word": 1}
LETTERS = 3  # that stand for a word where there are no spaces
Identify = Callable[[str], str | None]


def cut(text: str, words: int | None, language: str) -> str:
    if words is None:
        return text
    if language in ("ja", "zh"):
        return "".join(text.split())[: LETTERS * words]
    return " ".join(text.split()[:words])


def with_words(served: list[str]) -> Identify:
    def identify(text: str) -> str:
        with mock.patch.object(language_id, "available", lambda: False):
            return detect(text, served)[0].language

    return identify


def with_library(served: list[str]) -> Identify:
    def identify(text: str) -> str:
        shares = language_id.probabilities(text, served)
        return max(served, key=lambda code: shares[language_id.known(code)])

    return identify


def with_lingua(served: list[str]) -> Identify:
    from lingua import IsoCode639_1, LanguageDetectorBuilder

    codes = [getattr(IsoCode639_1, code.upper()) for code in served]
    detector = LanguageDetectorBuilder.from_iso_codes_639_1(*codes).build()

    def identify(text: str) -> str | None:
        found = detector.detect_language_of(text)
        return found and found.iso_code_639_1.name.lower()

    return identify


def systems(served: list[str]) -> dict[str, Identify]:
    found = {
        "words": with_words(served),
        "py3langid": with_library(served),
        "both": lambda text: detect(text, served)[0].language,
    }
    return found | ({"lingua": with_lingua(served)} if find_spec("lingua") else {})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.language_id", description=__doc__)
    parser.add_argument("files", nargs="+", help="text files named by their language")
    parser.add_argument("--lines", type=int, default=1000, help="of each file, drawn at random")
    args = parser.parse_args()
    texts: dict[str, list[str]] = {}
    for path in args.files:
        code = language_of_files([path])
        if code is None:
            parser.error(f"{path}: its name tells no language; call it {path}.en, or as its language is called")
        own = [line for line in readers.lines(Path(path)) if line.strip()]
        texts.setdefault(base_code(code), []).extend(random.Random(0).sample(own, min(args.lines, len(own))))
    served = sorted(texts)
    print(f"{'':<10} {'texts':<8} {'right':>7} {'µs':>6}   " + " ".join(f"{code:>6}" for code in served))
    for name, identify in systems(served).items():
        identify("text")
        for label, words in CUTS.items():
            began, right = time.perf_counter(), {}
            for code, own in texts.items():
                right[code] = sum(identify(cut(text, words, code)) == code for text in own)
            total = sum(map(len, texts.values()))
            micros = 1e6 * (time.perf_counter() - began) / total
            shares = " ".join(f"{100 * right[code] / len(texts[code]):>6.2f}" for code in served)
            print(f"{name:<10} {label:<8} {100 * sum(right.values()) / total:>6.2f}% {micros:>6.0f}   {shares}")


if __name__ == "__main__":
    main()
