"""The vocabulary of M2M-100 (Fan et al., 2020): a SentencePiece model, a table of ids, and 100 languages; one for both sides."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from heed.vocabularies import files, nllb
from heed.vocabularies.files import CONFIG, File
from heed.vocabularies.multilingual import Multilingual
from heed.vocabularies.sentencepiece import encode_all, train
from heed.vocabularies.vocabulary import Pair, SpecialTokens, Vocabulary

NAMES = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
MODEL, VOCAB, SPECIAL = "sentencepiece.bpe.model", "vocab.json", "special_tokens_map.json"
CODES = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy "
    "id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru "
    "sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
)
M2M100 = tuple(CODES.split())
LANGUAGES = {"m2m100": M2M100, "wmt21": ("en", "ha", "is", "ja", "cs", "ru", "zh", "de")}  # by `language_codes`


class _Files(Vocabulary):
    """Compared by name; pickled unchanged."""

    files: dict[str, File]

    def __getstate__(self) -> dict[str, File]:
        return self.files

    def __setstate__(self, contents: dict[str, File]) -> None:
        self.__init__(contents)


class M2M100Vocabulary(Multilingual, _Files):
    """The ids are those of transformers' M2M100Tokenizer: the languages, such as __en__, follow those of the table."""

    kind, clean = "m2m100", staticmethod(files.one_line)

    def __init__(self, contents: Mapping[str, File]):
        files.refuse_other_names(contents, NAMES)
        self.files, settings = dict(contents), files.parse_json(contents.get(CONFIG))
        self.processor, table = files.load_sentencepiece(contents[MODEL]), contents[VOCAB]
        ids = files.check_ids(files.parse_json(table), table.path)
        for name in NAMES.values():
            if name not in ids:
                raise ValueError(f"{table.path} has no {name}: it is not the table of an M2M-100 model")
        codes = LANGUAGES.get(settings.get("language_codes", "m2m100"))
        if codes is None:
            raise ValueError(
                f"{contents[CONFIG].path}: language_codes is {settings['language_codes']!r}; heed supports "
                f"{', '.join(LANGUAGES)}"
            )
        self.languages = {code: len(ids) + i for i, code in enumerate(codes)}
        tokens = {f"__{code}__": number for code, number in self.languages.items()}
        self._ids = {**ids, **tokens}
        added = _added(contents, settings)
        for name in added - self._ids.keys():
            raise ValueError(f"{table.path} has no {name}, which {CONFIG} adds: heed cannot extend a vocabulary")
        self._skipped = {self._ids[name] for name in {*NAMES.values(), *tokens, *added}}
        longest_first = sorted({*NAMES.values(), *added}, key=len, reverse=True)
        self._unsplit = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")
        self.begin, last, pad, unknown = (ids[name] for name in ("<s>", "</s>", "<pad>", "<unk>"))
        self.neutral = SpecialTokens(pad, unknown, first=last, last=last)
        self.choose(None, source=False)

    def __len__(self) -> int:
        return max(self._ids.values()) + 1

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without special tokens around a text; special tokens written in it are encoded as such."""
        parts = [self._unsplit.split(text) for text in texts]  # every other part is a special token
        split = iter(encode_all(self.processor, [part for row in parts for part in row[::2]], out_type=str))
        pieces = [[p for i, part in enumerate(row) for p in ([part] if i % 2 else next(split))] for row in parts]
        return [[self._ids.get(piece, self.neutral.unknown) for piece in row] for row in pieces]

    def decode(self, ids: Sequence[int]) -> str:
        pieces = [self._pieces[i] for i in ids if i in self._pieces and i not in self._skipped]
        return self.processor.decode_pieces(pieces).strip() if pieces else ""

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._pieces.get(i, "<unk>") for i in ids]

    @cached_property
    def _pieces(self) -> dict[int, str]:
        return {number: piece for piece, number in self._ids.items()}

    def key(self) -> str:
        facts = [sorted(self._ids.items()), sorted(self._skipped), self._unsplit.pattern]
        return hashlib.sha256(b"m2m100" + self.files[MODEL].content + json.dumps(facts).encode()).hexdigest()


def _added(contents: Mapping[str, File], settings: Mapping[str, Any]) -> set[str]:
    """The tokens that are never split; some folders list their languages there."""
    old = {} if "added_tokens_decoder" in settings else files.parse_json(contents.get(SPECIAL))
    listed = files.extra_special_tokens({**settings, **old})
    return {name for name in map(files.token_text, [*listed, *files.added_tokens(contents).values()]) if name}


def read(folder: Path) -> Pair:
    """One vocabulary, twice. A folder without vocab.json is an NLLB: the same model with another vocabulary."""
    contents = files.read_existing(folder, [MODEL, VOCAB, CONFIG, SPECIAL])
    if VOCAB not in contents:
        return nllb.read(folder)
    if MODEL not in contents:
        raise ValueError(f"{folder} has no {MODEL}: it cannot read text; an M2M-100 comes with {MODEL} and {VOCAB}")
    vocabulary = M2M100Vocabulary(contents)
    files.refuse_additions(folder, vocabulary._ids)
    return vocabulary, vocabulary


def write(folder: Path, pair: Pair) -> None:
    files.write(folder, pair[0].files)


def learn(texts: Iterable[str], size: int) -> tuple[M2M100Vocabulary, M2M100Vocabulary]:
    """A vocabulary of `size`, including special tokens and languages."""
    minimum = len({*NAMES.values()}) + len(M2M100)
    if size <= minimum:
        raise ValueError(
            f"an M2M-100 vocabulary of {size} could not be learned: special tokens and languages alone are {minimum}"
        )
    options = {"model_type": "bpe", "vocab_size": size - len(M2M100) - 1, "character_coverage": 0.9999}
    spm = File(MODEL, train(texts, options, f"an M2M-100 vocabulary of {size}"))
    processor = files.load_sentencepiece(spm)
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *map(processor.id_to_piece, range(3, processor.vocab_size()))]
    table = json.dumps({piece: number for number, piece in enumerate(pieces)}, ensure_ascii=False, indent=2)
    config = {"tokenizer_class": "M2M100Tokenizer", "additional_special_tokens": [f"__{code}__" for code in M2M100]}
    contents = {MODEL: spm, VOCAB: File(VOCAB, table.encode()), CONFIG: File(CONFIG, json.dumps(config).encode())}
    vocabulary = M2M100Vocabulary(contents)
    return vocabulary, vocabulary
