"""The vocabularies of a folder, whichever family they are of."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from heed.vocabularies import byte_bpe, marian, pegasus, sentencepiece, words
from heed.vocabularies.sentencepiece import Subwords
from heed.vocabularies.vocabulary import Pair, Vocabulary

FAMILIES = {"marian": marian, "bart": byte_bpe, "pegasus": pegasus, "words": words}
CLASSES = {
    marian.MarianVocabulary: "marian", byte_bpe.BartVocabulary: "bart", pegasus.PegasusVocabulary: "pegasus", words.Words: "words",
}  # fmt: skip


def read(folder: Path, names: Mapping[str, str]) -> Pair:
    """What `write` has written; `names` is what it gave back."""
    if "kind" in names:
        if names["kind"] not in FAMILIES:
            raise ValueError(f"{folder}: subwords.kind is {names['kind']!r}; heed knows {', '.join(FAMILIES)}")
        return FAMILIES[names["kind"]].read(folder)
    for side in ("source", "target"):
        if side not in names:
            raise ValueError(f"{folder}/config.json: subwords names no {side}")
    found = {name: sentencepiece.load(folder / name) for name in {names["source"], names["target"]}}
    return found[names["source"]], found[names["target"]]


def write(folder: Path, pair: Pair) -> dict[str, str]:
    """Put both sides into a folder; what its config.json should say of them."""
    source, target = pair
    if not isinstance(source, Subwords):
        kind = CLASSES[type(source)]
        FAMILIES[kind].write(folder, pair)
        return {"kind": kind}
    names = {side: "subwords.spm" if source is target else f"{side}.spm" for side in ("source", "target")}
    for name, part in zip(names.values(), pair, strict=True):
        part.save(folder / name)
    return names


def kind_of(vocabulary: Vocabulary) -> str:
    return CLASSES.get(type(vocabulary), "heed")


def special_tokens(kind: str | None) -> set[str]:
    """The special tokens, beyond those that all have, of a kind of vocabulary that is learned; None is heed's own."""
    return set(getattr(FAMILIES[kind], "SPECIAL_TOKENS", ())) if kind else set()


def learn(family: str, texts: Iterable[str], size: int) -> Pair:
    """A vocabulary of a family, learned from text."""
    return FAMILIES[family].learn(texts, size)
