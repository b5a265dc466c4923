"""Byte-pair encoding with an end-of-word marker (Sennrich et al., 2016), as in GPT and CTRL: files and training."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from heed.vocabularies import files
from heed.vocabularies.byte_bpe import MERGES, VOCAB
from heed.vocabularies.files import TOKENIZER, File

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WORD_END, LINE_END, UNKNOWN = "</w>", "\n</w>", "<unk>"
LINE_END_SHOWN = "<0x0A>"  # as other vocabularies show a control character


class Tables(NamedTuple):
    """The ids of pieces, and the merges in order; `path` is for errors."""

    ids: dict[str, int]
    merges: list[tuple[str, str]]
    path: str


def read_tables(contents: Mapping[str, File], owner: str) -> Tables:
    """The tables of a tokenizer.json, or else of vocab.json and merges.txt; `owner` is the expected model."""
    if TOKENIZER in contents:
        file = contents[TOKENIZER]
        model = files.parse_json(file).get("model") or {}
        if model.get("end_of_word_suffix") != WORD_END or "merges" not in model:
            raise ValueError(
                f"{file.path} is not BPE with {WORD_END}, the vocabulary of a {owner}: heed cannot read it"
            )
        merges = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in model["merges"]]
        return Tables(files.check_ids(model.get("vocab"), file.path), merges, file.path)
    ids = files.check_ids(files.parse_json(contents[VOCAB]), contents[VOCAB].path)
    merges = [tuple(line.split(" ")) for line in merge_lines(contents[MERGES])]
    for number, merge in enumerate(merges):
        if len(merge) != 2:
            raise ValueError(
                f"{contents[MERGES].path}: merge {number + 1} is {' '.join(merge)!r}; a merge must be two pieces "
                "separated by a space"
            )
    return Tables(ids, merges, contents[VOCAB].path)


def merge_lines(file: File) -> list[str]:
    """The lines of a merges.txt, without its version and empty ones."""
    try:
        first, *rest = [line.removesuffix("\r") for line in file.content.decode("utf-8").split("\n")]
    except UnicodeDecodeError as error:
        raise ValueError(f"{file.path} is damaged: it is not text ({error})") from error
    return [line for line in ([] if first.startswith("#version") else [first]) + rest if line]


def write_merges(merges: Iterable[tuple[str, str]]) -> str:
    return "#version: 0.2\n" + "".join(f"{left} {right}\n" for left, right in merges)


def learn(texts: Sequence[str], size: int, tokenizer: "Tokenizer", owner: str) -> Tables:
    """<unk>, the characters of the texts within and at the end of a word, their merges, and the line end."""
    alphabet = _train(tokenizer, texts, 0, [UNKNOWN])["vocab"]
    # The trainer numbers the ends of words in the random order of a hash map, and equal merges by these numbers.
    ends = sorted(piece for piece in alphabet if piece.endswith(WORD_END))
    model = _train(tokenizer, texts, size - 1, [UNKNOWN, *ends])
    ids = {**model["vocab"], LINE_END: len(model["vocab"])}
    if len(ids) > size:
        raise ValueError(
            f"a {owner} vocabulary of {size} could not be learned: <unk>, the characters and the line end alone are {len(ids)}"
        )
    return Tables(ids, [tuple(merge) for merge in model["merges"]], VOCAB)


def missing_files(contents: Mapping[str, File], folder: object, owner: str) -> None:
    """Refuse a folder that has neither form of the vocabulary."""
    if TOKENIZER not in contents and not {VOCAB, MERGES} <= contents.keys():
        raise ValueError(
            f"{folder} has no {VOCAB} with {MERGES}, and no {TOKENIZER}: it cannot read text; a {owner} comes with one or the other"
        )


def _train(tokenizer: "Tokenizer", texts: Sequence[str], size: int, first: list[str]) -> dict[str, Any]:
    """The trained model: "vocab" and "merges"; `first` are its first pieces."""
    from tokenizers import trainers

    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=first, end_of_word_suffix=WORD_END, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return json.loads(tokenizer.to_str())["model"]
