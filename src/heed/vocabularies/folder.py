"""The vocabularies of a model folder, of any kind."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from heed.files import damage_reported
from heed.vocabularies import (
    albert,
    bigbird,
    byte_bpe,
    characters,
    ctrl,
    gpt,
    gpt2,
    m2m100,
    marian,
    mbart50,
    pegasus,
    phonemes,
    roberta,
    sentencepiece,
    speech2text,
    wordpiece,
    words,
)
from heed.vocabularies.sentencepiece import Subwords
from heed.vocabularies.text_parts import plain
from heed.vocabularies.vocabulary import Pair, Vocabulary

# Modules with `read`, `write` and, unless they are only read, `learn`, by the `kind` of their vocabulary class. SentencePiece models, the default, have none.
KINDS = {
    "marian": marian, "bart": byte_bpe, "pegasus": pegasus, "words": words, "gpt": gpt, "gpt2": gpt2, "ctrl": ctrl, "mbart50": mbart50,
    "m2m100": m2m100, "characters": characters, "bytes": characters, "wordpiece": wordpiece, "roberta": roberta, "albert": albert,
    "bigbird": bigbird, "phonemes": phonemes, "speech2text": speech2text,
}  # fmt: skip


def read(folder: Path, names: Mapping[str, str]) -> Pair:
    """Read what `write` has written; `names` is what it returned."""
    if "kind" in names:
        if names["kind"] not in KINDS:
            raise ValueError(f"{folder}: subwords.kind is {names['kind']!r}; heed supports {', '.join(KINDS)}")
        with damage_reported(f"the vocabulary in {folder} ({names['kind']})"):
            return KINDS[names["kind"]].read(folder)
    for side in ("source", "target"):
        if side not in names:
            raise ValueError(f"{folder}/config.json: subwords lists no {side}")
        if Path(names[side]).name != names[side] or names[side] in ("", "..") or "\\" in names[side]:
            raise ValueError(
                f"{folder}/config.json: the subwords of the {side} are {names[side]!r}; they must be a file in the same folder"
            )
    loaded = {name: sentencepiece.load(folder / name) for name in {names["source"], names["target"]}}
    return loaded[names["source"]], loaded[names["target"]]


def write(folder: Path, pair: Pair) -> dict[str, str]:
    """Write both sides into a folder; returns the `subwords` entry of its config.json."""
    source, target = pair
    if not isinstance(source, Subwords):
        KINDS[source.kind].write(folder, pair)
        return {"kind": source.kind}
    names = {side: "subwords.spm" if source is target else f"{side}.spm" for side in ("source", "target")}
    for name, vocabulary in zip(names.values(), pair, strict=True):
        vocabulary.save(folder / name)
    return names


def kind_of(vocabulary: Vocabulary) -> str:
    return getattr(plain(vocabulary), "kind", "heed")


def special_tokens(kind: str | None) -> set[str]:
    """The special tokens of a learned vocabulary of this kind, beyond the common ones; None is Heed's own kind."""
    return set(getattr(KINDS[kind], "SPECIAL_TOKENS", ())) if kind else set()


def learn(kind: str, texts: Iterable[str], size: int, codes: Sequence[str] = ()) -> Pair:
    """A vocabulary of a kind, learned from text; `codes` are control codes, one token each."""
    pair = KINDS[kind].learn(texts, size)
    if not codes:
        return pair
    if not hasattr(KINDS[kind], "with_codes"):
        raise ValueError(f"a vocabulary of {kind} has no control codes: leave the codes out, or train a ctrl")
    vocabulary = KINDS[kind].with_codes(pair[0], codes)
    return vocabulary, vocabulary
