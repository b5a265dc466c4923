"""Shortlists of a model with several target languages: `python -m bench.shortlists --source train.en --targets de=train.de fr=train.fr
--valid-source val.en --valid-targets de=val.de fr=val.fr`.

For each size that `heed train` tries, and each language: how many target subwords the list has for a sentence and for 16 that are translated
together, and what share of the subwords of the references is on it, and of references with all of their subwords. `one list` ignores
the languages, `by tags` is what `heed train` makes, and `alone` is that of a model of one direction. No model is needed.
"""

import argparse
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from heed.data import corpus, shortlist
from heed.data.filters import FiltersConfig
from heed.data.readers import Line, lines
from heed.data.shortlist import Shortlist
from heed.files import write_json
from heed.vocabularies.sentencepiece import Subwords, SubwordsConfig, learn
from heed.vocabularies.tags import language_tag

TOGETHER = 16


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--source", type=Path, required=True)
    top.add_argument("--targets", nargs="+", required=True, metavar="CODE=FILE")
    top.add_argument("--valid-source", type=Path, required=True)
    top.add_argument("--valid-targets", nargs="+", required=True, metavar="CODE=FILE")
    top.add_argument("--size", type=int, default=8000, help="of the joint vocabulary (default: 8000)")
    top.add_argument("--lines", type=int, help="the first so many lines of each training file (default: all)")
    top.add_argument("--json", type=Path)
    return top


def read(files: Iterable[str], count: int | None) -> dict[str, list[str]]:
    pairs = (own.split("=", 1) for own in files)
    return {code: list(islice(lines(Path(path)), count)) for code, path in pairs}


def prepared(
    folder: Path, sources: Sequence[str], targets: Mapping[str, Sequence[str]], vocabulary: Subwords
) -> corpus.Corpus:
    """The corpora of all languages, each source with its tag."""
    made = [
        Line(source, target, f"{code} {number}", corpus=part)
        for part, (code, texts) in enumerate(targets.items())
        for number, (source, target) in enumerate(zip(sources, texts, strict=True), 1)
    ]
    tags = [[vocabulary.tags[language_tag(code)]] for code in targets]
    skip, pair = np.zeros(len(made), np.uint8), (vocabulary, vocabulary)
    return corpus.build(folder, lambda: made, pair, FiltersConfig(), skip=skip, prefixes=tags)


def facts(few: Shortlist, sources: Sequence[Sequence[int]], references: Sequence[Sequence[int]]) -> dict[str, float]:
    """The lengths of a list, and what of the references is on it, in per cent; sources begin with their tags."""
    each = [few.candidates(source) for source in sources]
    batches = [set().union(*each[i : i + TOGETHER]) for i in range(0, len(each), TOGETHER)]
    known = [[i in own for i in ids] for ids, own in zip(references, each, strict=True)]
    return {
        "a sentence": float(np.mean([len(own) for own in each])),
        f"{TOGETHER} sentences": float(np.mean([len(own) for own in batches])),
        "subwords": 100 * float(np.mean([one for own in known for one in own])),
        "references": 100 * float(np.mean([all(own) for own in known])),
    }


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    sources, targets = list(islice(lines(options.source), options.lines)), read(options.targets, options.lines)
    valid, references = list(lines(options.valid_source)), read(options.valid_targets, None)
    texts = (text for side in (sources, *targets.values()) for text in side)
    vocabulary = learn(texts, SubwordsConfig(), options.size, tags=[language_tag(code) for code in targets])
    tags, pair = {code: vocabulary.tags[language_tag(code)] for code in targets}, (vocabulary, vocabulary)
    with tempfile.TemporaryDirectory() as folder:
        made = prepared(Path(folder) / "corpus", sources, targets, vocabulary)
        tables = {"one list": shortlist.learn(made, pair), "by tags": shortlist.learn(made, pair, set(tags.values()))}
        del made  # before its files
    encoded, found = vocabulary.encode(valid), []
    for frequent, best in shortlist.SIZES:
        lists = {name: table.shortlist(frequent, best) for name, table in tables.items()}
        for code, tag in tags.items():
            alone = getattr(tables["by tags"], "by_tag", {}).get(tag, tables["one list"]).shortlist(frequent, best)
            expected = vocabulary.encode(references[code])
            for name, few in {**lists, "alone": alone}.items():
                row = facts(few, [[tag, *ids] for ids in encoded], expected)
                found.append({"size": [frequent, best], "language": code, "list": name, **row})
                shown = ", ".join(f"{what} {value:.1f}" for what, value in row.items())
                print(f"{frequent}+{best} {code} {name}: {shown}", flush=True)
    if options.json:
        write_json(options.json, {"vocabulary": len(vocabulary), "rows": found})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
