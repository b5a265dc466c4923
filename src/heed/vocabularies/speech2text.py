"""The vocabulary of transformers' Speech2Text: a SentencePiece model and a table of ids."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from heed.vocabularies import files
from heed.vocabularies.files import CONFIG, File
from heed.vocabularies.sentencepiece import encode_all
from heed.vocabularies.vocabulary import Pair, SpecialTokens, Vocabulary

NAMES = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
MODEL, VOCAB = "sentencepiece.bpe.model", "vocab.json"


class Speech2TextVocabulary(Vocabulary):
    """The ids are those of transformers' Speech2TextTokenizer; a text begins with the end token, as in fairseq."""

    kind = "speech2text"

    def __init__(self, contents: Mapping[str, File]):
        files.refuse_other_names(contents, NAMES)
        self.files, settings = dict(contents), files.parse_json(contents.get(CONFIG))
        if settings.get("lang_codes") or settings.get("tgt_lang"):
            raise ValueError(
                f"{contents[CONFIG].path}: lang_codes is set; heed reads Speech2Text models of one language"
            )
        self.upper, self.lower = (bool(settings.get(name)) for name in ("do_upper_case", "do_lower_case"))
        self.processor, table = files.load_sentencepiece(contents[MODEL]), contents[VOCAB]
        self._ids = files.check_ids(files.parse_json(table), table.path)
        for name in NAMES.values():
            if name not in self._ids:
                raise ValueError(f"{table.path} has no {name}: it is not the table of a Speech2Text model")
        begin, last, pad, unknown = (self._ids[name] for name in NAMES.values())
        self._skipped = {begin, last, pad, unknown}
        self.special = SpecialTokens(pad, unknown, first=last, last=last)

    def __getstate__(self) -> dict[str, File]:
        return self.files

    def __setstate__(self, contents: dict[str, File]) -> None:
        self.__init__(contents)

    def __len__(self) -> int:
        return max(self._ids.values()) + 1

    def clean(self, text: str) -> str:
        return files.one_line(text.lower() if self.lower else text)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        pieces = encode_all(self.processor, [self.clean(text) for text in texts], out_type=str)
        return [[self._ids.get(piece, self.special.unknown) for piece in row] for row in pieces]

    def decode(self, ids: Sequence[int]) -> str:
        pieces = [self._pieces[i] for i in ids if i in self._pieces and i not in self._skipped]
        text = self.processor.decode_pieces(pieces).strip() if pieces else ""
        return text.upper() if self.upper else text

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._pieces.get(i, "<unk>") for i in ids]

    @cached_property
    def _pieces(self) -> dict[int, str]:
        return {number: piece for piece, number in self._ids.items()}

    def key(self) -> str:
        facts = json.dumps([sorted(self._ids.items()), self.upper, self.lower])
        return hashlib.sha256(b"speech2text" + self.files[MODEL].content + facts.encode()).hexdigest()


def read(folder: Path) -> Pair:
    """One vocabulary, twice."""
    contents = files.read_existing(folder, [MODEL, VOCAB, CONFIG])
    for name in (MODEL, VOCAB):
        if name not in contents:
            raise ValueError(f"{folder} has no {name}: a Speech2Text model comes with {MODEL} and {VOCAB}")
    vocabulary = Speech2TextVocabulary(contents)
    files.refuse_additions(folder, vocabulary._ids)
    return vocabulary, vocabulary


def write(folder: Path, pair: Pair) -> None:
    files.write(folder, pair[0].files)
