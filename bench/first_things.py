"""What people type first into the demo: `python -m bench.first_things RUN`, a run of recipes/phrasebook.toml.

bench/first_things.tsv has 200 Korean texts with their references, written by someone who had not seen the generator. A
translation is right if it is one of the references, apart from case, punctuation and contractions (I'm, I am).
bench/first_things_valid.tsv is another such list, to choose settings by; once its mistakes have shaped the generator, it
has to be written anew.

Texts are translated as on the page, sentence by sentence; --whole gives each to the model as a whole.

A text is inside the phrasebook's world if each of its words, without punctuation, is a word of the Korean that the run
was trained on. That is computed, not chosen: the corpus is drawn again as the run's recipe says.

With --fit, it says how well the model knows its own world instead: the share of set expressions, which it has seen, and
of held-out sentences of patterns that are right. If these are low, the model is too weak for its world, and a wider world
does not help.
"""

import argparse
import csv
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from heed.data.synthetic import phrasebook
from heed.data.synthetic.phrasebook import corpus, talk

LIST = Path(__file__).with_name("first_things.tsv")
WHOLE = {"can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not", "let's": "let us"}
ENDINGS = (("n't", " not"), ("'m", " am"), ("'re", " are"), ("'ve", " have"), ("'ll", " will"), ("'d", " would"))
IS = ("it", "that", "what", "where", "who", "how", "when", "there", "here", "he", "she", "this")  # of 's after a noun


class First(NamedTuple):
    """A text that someone typed first, its topic and its references."""

    topic: str
    korean: str
    references: tuple[str, ...]


class Judged(NamedTuple):
    """A text with its translation, and whether it is inside the world and right."""

    first: First
    translation: str
    inside: bool
    right: bool


def read(path: Path) -> list[First]:
    """The texts of a table: topic, Korean, references between bars."""
    found = []
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), 1):
            if not row or row[:2] == ["topic", "korean"]:
                continue
            if len(row) != 3 or not all(cell.strip() for cell in row):
                raise ValueError(f"{path}:{number}: a line has a topic, a Korean text and references, between tabs")
            references = tuple(one.strip() for one in row[2].split(" | "))
            found.append(First(row[0].strip(), row[1].strip(), references))
    return found


def expanded(word: str) -> str:
    """A word without its contraction."""
    if word in WHOLE:
        return WHOLE[word]
    if word.endswith("'s") and word[:-2] in IS:
        return f"{word[:-2]} is"
    return next((word.removesuffix(short) + long for short, long in ENDINGS if word.endswith(short)), word)


def normalized(text: str) -> str:
    """English in small letters, without punctuation and contractions."""
    text = unicodedata.normalize("NFKC", text).lower().replace("\u2019", "'")
    text = " ".join([expanded(word.strip('.,!?;:"()')) for word in text.split()])
    return " ".join(re.sub(r"[^\w\s]", lambda match: "" if match[0] in "',." else " ", text).split())


def words(text: str) -> list[str]:
    """The Korean words of a text, without punctuation."""
    return re.findall(r"[\w]+", unicodedata.normalize("NFC", text))


def known_words(pairs: int) -> set[str]:
    """The words of the training corpus of so many pairs."""
    return {word for pair in phrasebook.pairs("train", pairs) for word in words(pair.source)}


def judge(texts: Sequence[First], translations: Iterable[str], known: set[str]) -> list[Judged]:
    """Each text with its translation, whether it is inside the world, and whether the translation is right."""
    return [
        Judged(
            one,
            said,
            set(words(one.korean)) <= known,
            normalized(said) in {normalized(reference) for reference in one.references},
        )
        for one, said in zip(texts, translations, strict=True)
    ]


def share(judged: Sequence[Judged]) -> str:
    """How many are right."""
    right = sum(one.right for one in judged)
    return f"{right} of {len(judged)}" + (f" ({100 * right / len(judged):.1f} %)" if judged else "")


def report(judged: Sequence[Judged]) -> str:
    """The shares by topic, then of all."""
    topics: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        topics[one.first.topic].append(one)
    rows = [*topics.items(), ("all", list(judged))]
    lines = ["| topic | inside its world | all |", "|---|---|---|"]
    lines += [f"| {name} | {share([one for one in own if one.inside])} | {share(own)} |" for name, own in rows]
    return "\n".join(lines)


def write(path: Path, judged: Sequence[Judged]) -> None:
    """A table of what was not right, to read."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, delimiter="\t", lineterminator="\n")
        table.writerow(("topic", "inside", "korean", "translation", "references"))
        for one in judged:
            if not one.right:
                cells = one.first.topic, "yes" if one.inside else "no", one.first.korean, one.translation
                table.writerow((*cells, " | ".join(one.first.references)))


def fit_sample(count: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """`count` set expressions and `count` held-out sentences of patterns, each Korean with its English."""
    expressions = [(one.korean + "?" * one.asks, one.english) for one in Random(3).sample(talk.EXPRESSIONS, count)]
    rng, held = Random(99), {}
    while len(held) < count:
        line = talk.pattern_line(rng)
        drawn = corpus.pair_of(line)
        if corpus.split_of_line(line) == "test" and not corpus.misread(drawn):
            held[drawn.source] = drawn.target
    return expressions, list(held.items())


def matching(translations: Iterable[str], pairs: Sequence[tuple[str, str]]) -> str:
    """How many translations are the English of their pairs."""
    right = sum(normalized(said) == normalized(want) for said, (_, want) in zip(translations, pairs, strict=True))
    return f"{right} of {len(pairs)} ({100 * right / len(pairs):.1f} %)"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench.first_things", description=__doc__.splitlines()[0])
    top.add_argument("run", type=Path, help="the folder of a run of recipes/phrasebook.toml")
    top.add_argument("--list", type=Path, default=LIST, help="another table of texts")
    top.add_argument("--out", type=Path, help="where the wrong ones are written (default: RUN/first-things-wrong.tsv)")
    top.add_argument("--whole", action="store_true", help="do not split texts into sentences")
    top.add_argument(
        "--fit", type=int, metavar="N", help="score N set expressions and N held-out pattern sentences instead"
    )
    return top


def main(argv: Sequence[str] | None = None) -> None:
    import heed
    from heed.runs.recipe import read as read_recipe

    args = parser().parse_args(argv)
    pairs = read_recipe(args.run / "recipe.toml", [], saved=True).data.phrasebook
    if not pairs:
        raise SystemExit(f"{args.run} was not trained on the phrasebook: its world is not known")
    if args.fit:
        model = heed.load(args.run)
        for name, drawn in zip(("set expressions", "held-out pattern sentences"), fit_sample(args.fit), strict=True):
            said = [one.text for one in model.translate([source for source, _ in drawn])]
            print(f"{name}: {matching(said, drawn)} right")
        return
    texts = read(args.list)
    translated = heed.load(args.run).translate([one.korean for one in texts], sentences=not args.whole)
    judged = judge(texts, [one.text for one in translated], known_words(pairs))
    print(report(judged))
    out = args.out or args.run / "first-things-wrong.tsv"
    write(out, judged)
    print(f"\nWhat is not right: {out}")


if __name__ == "__main__":
    main()
