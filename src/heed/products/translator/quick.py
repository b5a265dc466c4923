"""Translate a few sentences or a short file on the CPU without torch, whose import takes longer than translating them. A cached
CTranslate2 conversion records the model folders it was made from: the size and time of each of their files, the hashes
of their vocabularies, and all that a plain search needs. An unchanged folder is opened from there. Anything beyond a
plain search, and any fault, is left to `Translator`.
"""

import hashlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from heed import config as settings
from heed.convert import ctranslate2_import
from heed.decoding.config import DecodingConfig, changed, forced_start, max_output_length
from heed.decoding.hypothesis import Hypothesis
from heed.files import cache_folder, check_sums, json_digest, sha256, write_json
from heed.products.translator.engines.ctranslate2_search import (
    PoolSearch,
    Sentences,
    TokenNames,
    beam_options,
    workers_and_threads,
)
from heed.products.translator.faults import Faults, Tables
from heed.products.translator.results import Candidate, Translation, join_parts
from heed.products.translator.split import Parts, split_texts
from heed.version import __version__
from heed.vocabularies import sentencepiece
from heed.vocabularies.sentencepiece import Subwords

FILES = ("config.json", "model.safetensors", "shortlist.txt")
BUDGET = 4096  # subwords in a batch, as everywhere
MODELS, KIND = ("transformer",), "sentencepiece"  # what `remember` takes of the models that Heed trains
MAX_BYTES = 2**30  # of the weights of a model that is converted for a few sentences
NO_PENALTIES = {"repetition_penalty": 1.0, "rerank": "none", "sample": False}
Stamps = dict[str, list[int] | None]


def stamp(folder: Path, names: Sequence[str] | None = None) -> Stamps:
    """Size, time and inode of files, by default of all that a translator is read from; None for a missing one."""
    found: Stamps = {}
    for name in names or (*FILES, *sorted(path.name for path in folder.glob("*.spm"))):
        try:
            own = (folder / name).stat()
            found[name] = [own.st_size, own.st_mtime_ns, own.st_ino]
        except OSError:
            found[name] = None
    return found


def model_folder(name: str) -> Path | None:
    """The folder of a model, or of the model of a run; None if it is not in Heed's format."""
    path = Path(name)
    if (path / "recipe.toml").is_file() and not (path / "config.json").is_file():
        path /= "model"
    return path.resolve() if (path / "config.json").is_file() else None


def remember(folder: Path, before: Stamps, translator: Any) -> None:
    """Record next to its conversion how the model of a folder is opened; `before` are its stamps from before it was
    read.
    """
    conversion = getattr(getattr(translator.engines[0], "shared", None), "folder", None)
    plain = type(translator.source) is type(translator.target) is Subwords and not translator.source.special.before
    if conversion is None or not plain or len(translator.models) > 1 or len(translator.directions) > 1:
        return
    sections = settings.parse_json((folder / FILES[0]).read_text("utf-8")).get("processors", {})
    files = [sections.get(side, {}).get("file") for side in ("source", "target")]
    if not all(name in before for name in files):
        return
    stated = {name: value for own in sections.values() for name, value in own.get("sha256", {}).items()}
    languages = translator.facts.get("languages") or {}
    facts = {
        "heed": __version__,
        "stamps": before,
        "kind": translator.engines[0].kind,
        "subwords": files,
        "hashes": {name: stated.get(name) or sha256(folder / name) for name in files},
        "vocab_size": translator.model.config.vocab_size,
        "max_length": translator.bundle.max_length,
        "max_source": translator.max_source,
        "shortlist": bool(translator.shortlist),
        "languages": [languages.get("source"), languages.get("target")],
        "decoding": asdict(translator.decoding),
    }
    with suppress(OSError):  # a read-only disk
        write_json(conversion / _note(folder), facts | {"sha256": json_digest(facts)})


def convertible(folder: Path) -> bool:
    """Whether `remember` would record a model after a search on the CPU, as far as its config says, and converting it
    takes a few seconds at most.
    """
    try:
        facts = settings.parse_json((folder / FILES[0]).read_text("utf-8"))
        kinds = {facts["processors"][side]["kind"] for side in ("source", "target")}
        name, size = facts["model"]["name"], (folder / FILES[1]).stat().st_size
    except (OSError, ValueError, KeyError, TypeError):  # which the usual way reports
        return False
    single = name in MODELS and kinds == {KIND} and "directions" not in facts
    return single and size <= MAX_BYTES and find_spec("ctranslate2") is not None


def records(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The records of a folder that is unchanged since, with their paths. Their conversions are not checked."""
    for path in cache_folder().glob(f"ctranslate2-*/{_note(folder)}"):
        facts = _read(path)
        if (
            facts is not None
            and facts["heed"] == __version__
            and facts["stamps"] == stamp(folder, list(facts["stamps"]))
        ):
            yield path, facts


def find(folder: Path, threads: int) -> "QuickTranslator | None":
    """The translator of a folder that is unchanged since it was recorded, if its conversion and its vocabularies are
    intact: a disk can lose a bit and keep the time.
    """
    for path, facts in records(folder):
        try:
            if not (check_sums(path.parent) and _intact(folder, facts)):
                continue
        except (OSError, ValueError):
            continue
        with suppress(OSError):
            os.utime(path.parent)  # marks it as used now
        return QuickTranslator(folder, path.parent, facts, threads)
    return None


def _intact(folder: Path, facts: Mapping[str, Any]) -> bool:
    """Whether its vocabularies have the recorded hashes. Records of earlier versions have none."""
    hashes = facts.get("hashes", {})
    return all(sha256(folder / name) == hashes.get(name) for name in facts["subwords"])


def _note(folder: Path) -> str:
    return f"opened-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:24]}.json"


def _read(path: Path) -> dict[str, Any] | None:
    """The record; None if it is damaged."""
    try:
        facts = settings.parse_json(path.read_text("utf-8"))
        stated = facts.pop("sha256")
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return None
    return facts if stated == json_digest(facts) else None


class Searched(NamedTuple):
    """Texts in parts, and the best hypotheses for each part."""

    texts: Sequence[str]
    parts: Parts
    config: DecodingConfig
    found: list[list[Hypothesis]]


class QuickTranslator:
    """One model of one direction, as CTranslate2 runs it."""

    def __init__(self, folder: Path, conversion: Path, facts: Mapping[str, Any], threads: int):
        self.facts, self.conversion, self.threads = facts, conversion, threads
        loaded = {name: sentencepiece.load(folder / name) for name in dict.fromkeys(facts["subwords"])}
        self.vocabularies = tuple(loaded[name] for name in facts["subwords"])
        self.decoding = settings.read(DecodingConfig, facts["decoding"])
        self.faults = Faults(Tables(self.vocabularies, facts["vocab_size"]), tuple(facts["languages"]))

    def translate(self, texts: Sequence[str], decoding: Mapping[str, Any]) -> list[Translation] | None:
        """The result of `Translator.translate` without access to the model; None if `Translator` itself is needed."""
        searched = self.search(texts, decoding)
        return None if searched is None or self.faulty(searched) else self.finish(searched)

    def search(self, texts: Sequence[str], decoding: Mapping[str, Any]) -> Searched | None:
        """The first two stages; None if `Translator` itself is needed."""
        self.faults.check(decoding)
        config = changed(self.decoding, decoding)
        if not self._takes(config) or not all(map(_is_text, texts)):
            return None
        parts = split_texts(texts, self.vocabularies[0], self.facts["max_source"])
        found = self._search(parts.ids, config) if all(parts.ids) else None
        return None if found is None else Searched(texts, parts, config, found)

    def faulty(self, searched: Searched) -> bool:
        """Whether some translation has a fault, which `Translator` avoids by another search."""
        return bool(self.faults.faulty(searched.parts.ids, searched.found, searched.config))

    def finish(self, searched: Searched) -> list[Translation]:
        """The last stage."""
        (texts, (parts, owners, ids), config, found), (source, target) = searched, self.vocabularies
        results: list[list[Translation]] = [[] for _ in texts]
        for owner, part, own, nbest in zip(owners, parts, ids, found, strict=True):
            every = [Candidate(_line(target, h.tokens), h.score, target.pieces(h.tokens), _untold) for h in nbest]
            best, read = every[0], source.pieces([*own, source.special.last])
            results[owner].append(
                Translation(part, best.text, best.score, best.tokens, nbest[0].tokens, read, every, [], None, [])
            )
        cleaned = [source.clean(text) for text in texts]
        return [join_parts(*both, config.nbest, None) for both in zip(cleaned, results, strict=True)]

    def _takes(self, config: DecodingConfig) -> bool:
        special = self.vocabularies[1].special
        plain = all(getattr(config, name) == value for name, value in NO_PENALTIES.items())
        return plain and beam_options(config) is not None and forced_start(config, special) == special.before

    def _search(self, ids: Sentences, config: DecodingConfig) -> list[list[Any]] | None:
        """The best hypotheses for each source; None if CTranslate2 does not support a search."""
        if not ids:
            return []
        most, start = self.facts["max_length"] - 1, len(forced_start(config, self.vocabularies[1].special))
        limits = [max(max_output_length(config, len(own) + 1, most), start + 1) for own in ids]
        workers, threads = workers_and_threads(len(ids), self.threads)
        opened = ctranslate2_import.ctranslate2().Translator(
            str(self.conversion),
            device="cpu",
            compute_type=self.facts["kind"],
            inter_threads=workers,
            intra_threads=threads,
        )
        names = TokenNames.of(self.vocabularies, self.facts["vocab_size"])
        search = PoolSearch(opened, self.vocabularies, names, self.facts["shortlist"])
        found = search.run(list(range(len(ids))), ids, limits, config, workers, BUDGET)
        every = [found[row][: config.nbest] for row in range(len(ids))]
        return every if all(own and not math.isnan(own[0].score) for own in every) else None


def _is_text(text: str) -> bool:
    """Whether it has no lone surrogate, which `Translator` refuses with an error."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _line(vocabulary: Subwords, tokens: list[int]) -> str:
    return " ".join(vocabulary.decode(tokens).split())


def _untold() -> list[float]:
    raise ValueError("the scores of tokens need the model itself: open it with heed.load")
