"""The vocabulary of CTRL (Keskar et al., 2019): BPE of cased words, including the control codes."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heed.vocabularies import files, suffix_bpe
from heed.vocabularies.byte_bpe import MERGES, VOCAB
from heed.vocabularies.fast_tokenizer import FastTokenizer
from heed.vocabularies.files import CONFIG, File
from heed.vocabularies.suffix_bpe import LINE_END_SHOWN, UNKNOWN, WORD_END
from heed.vocabularies.unicode import surrogates_reported
from heed.vocabularies.vocabulary import Pair, SpecialTokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONTINUES, LINE_END, CODES = "@@", "\n", "heed_control_codes"
WORD = re.compile(r"(?:\S|[\x1c-\x1f])+\n?")  # those four are white space to Python, but not to Unicode
PUBLISHED_CODES = [
    "Pregnancy", "Christianity", "Explain", "Fitness", "Saving", "Ask", "Ass", "Joke", "Questions", "Thoughts",
    "Retail", "Feminism", "Writing", "Atheism", "Netflix", "Computing", "Opinion", "Alone", "Funny", "Gaming", "Human",
    "India", "Joker", "Diet", "Legal", "Norman", "Tip", "Weight", "Movies", "Running", "Science", "Horror",
    "Confession", "Finance", "Politics", "Scary", "Support", "Technologies", "Teenage", "Event", "Learned", "Notion",
    "Wikipedia", "Books", "Extract", "Confessions", "Conspiracy", "Links", "Narcissus", "Relationship",
    "Relationships", "Reviews", "News", "Translation", "multilingual",
]  # fmt: skip


class CTRLVocabulary(FastTokenizer):
    """The ids are those of transformers' CTRLTokenizer. `codes` are the control codes with their ids.

    A token within a word ends with @@; decoded text has single spaces.
    """

    kind, tokenizer_class = "ctrl", "CTRLTokenizer"

    def __init__(self, contents: Mapping[str, File]):
        files.refuse_other_names(contents, {"unk_token": UNKNOWN})
        path = contents[VOCAB].path
        self.ids = files.check_ids(files.parse_json(contents[VOCAB]), path)
        self.merges = _read_merges(contents[MERGES])
        for token in (UNKNOWN, LINE_END):
            if token not in self.ids:
                raise ValueError(f"{path} has no {token!r}: it is not a CTRL vocabulary")
        unknown, last = self.ids[UNKNOWN], self.ids[LINE_END]
        pieces = _pieces(self.ids, self.merges)
        self._their_ids = [self.ids.get(_token(piece), unknown) for piece in pieces]
        super().__init__(contents, _tokenizer(pieces, self.merges))
        self.special = SpecialTokens(pad=last, unknown=unknown, first=last, last=last)
        self.tokens = {number: token for token, number in self.ids.items()}
        names = files.parse_json(contents.get(CONFIG)).get(CODES, PUBLISHED_CODES)
        self.codes = {name: self.ids[name] for name in names if name in self.ids}

    def __len__(self) -> int:
        return max(self.tokens) + 1

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without special tokens around a text; <unk> in a text is the unknown token."""
        parts = [[own for part in re.split(f"({UNKNOWN})", text) for own in _words(part)] for text in texts]
        with surrogates_reported(texts):
            found = self.tokenizer.encode_batch_fast(parts, is_pretokenized=True, add_special_tokens=False)
        return [[self._their_ids[i] for i in encoding.ids] for encoding in found]

    def decode(self, ids: Sequence[int]) -> str:
        tokens = [self.tokens.get(i, UNKNOWN) for i in ids if i != self.special.unknown]
        return " ".join(tokens).removesuffix(CONTINUES).replace(f"{CONTINUES} ", "").strip()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        found, begins = [], True
        for token in (self.tokens.get(i, UNKNOWN) for i in ids):
            shown = LINE_END_SHOWN if token == LINE_END else token.removesuffix(CONTINUES)
            found.append("▁" * begins + shown if shown != UNKNOWN else shown)
            begins = not token.endswith(CONTINUES)
        return found

    def key(self) -> str:
        return hashlib.sha256(json.dumps([self.kind, self.ids, self.merges, self.codes]).encode()).hexdigest()


def _read_merges(file: File) -> list[tuple[str, str]]:
    """The merges as transformers reads them from the published file: any whitespace separates, and of duplicates the
    later counts.
    """
    ranks = {tuple(line.split()): rank for rank, line in enumerate(suffix_bpe.merge_lines(file))}
    return [merge for merge in sorted(ranks, key=ranks.get) if len(merge) == 2]  # no others can ever apply


def _words(part: str) -> list[str]:
    return [part] if part == UNKNOWN else WORD.findall(part)


def _token(piece: str) -> str:
    """A piece as the vocabulary writes it: `th` is th@@, `the</w>` is the."""
    if piece == UNKNOWN:
        return piece
    return piece.removesuffix(WORD_END) if piece.endswith(WORD_END) else piece + CONTINUES


def _pieces(ids: Iterable[str], merges: Iterable[tuple[str, str]]) -> list[str]:
    """All pieces that merges produce: those of the vocabulary, and intermediate ones, which may have no id."""
    pieces = dict.fromkeys([UNKNOWN, *(token + WORD_END for token in ids)])
    pieces |= dict.fromkeys(token.removesuffix(CONTINUES) for token in ids if token.endswith(CONTINUES))
    for left, right in merges:
        pieces |= dict.fromkeys((left, right, left + right))
    pieces.pop("", None)
    return list(pieces)


def _tokenizer(pieces: Iterable[str] = (), merges: Iterable[tuple[str, str]] = ()) -> "Tokenizer":
    from tokenizers import AddedToken, Tokenizer, models

    known = {"vocab": {piece: i for i, piece in enumerate(pieces)}, "merges": list(merges)} if pieces else {}
    tokenizer = Tokenizer(models.BPE(**known, unk_token=UNKNOWN, end_of_word_suffix=WORD_END, fuse_unk=False))
    if pieces:
        tokenizer.add_special_tokens([AddedToken(UNKNOWN, special=True, normalized=False)])
    return tokenizer


def read(folder: Path) -> tuple[CTRLVocabulary, CTRLVocabulary]:
    """One vocabulary, twice."""
    contents = files.read_existing(folder, [VOCAB, MERGES, CONFIG])
    missing = [name for name in (VOCAB, MERGES) if name not in contents]
    if missing:
        raise ValueError(
            f"{folder} has no {' and no '.join(missing)}: it cannot read text; a CTRL comes with {VOCAB} and {MERGES}"
        )
    vocabulary = CTRLVocabulary(contents)
    files.refuse_additions(folder, vocabulary.ids)
    return vocabulary, vocabulary


def write(folder: Path, pair: Pair) -> None:
    files.write(folder, pair[0].files)


def learn(texts: Sequence[str], size: int) -> tuple[CTRLVocabulary, CTRLVocabulary]:
    from tokenizers import pre_tokenizers

    tokenizer = _tokenizer()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ids, merges, _ = suffix_bpe.learn(texts, size, tokenizer, "CTRL")
    vocabulary = _made(map(_token, ids), merges, ())
    return vocabulary, vocabulary


def with_codes(vocabulary: CTRLVocabulary, codes: Sequence[str]) -> CTRLVocabulary:
    """The vocabulary with these control codes, each a word and one token; existing ids are kept."""
    tokens, merges = list(vocabulary.ids), list(vocabulary.merges)
    for code in codes:
        if WORD.fullmatch(code) is None or code in (UNKNOWN, LINE_END) or code.endswith((CONTINUES, "\n")):
            raise ValueError(f"the control code is {code!r}; it must be one word")
        tokens += map(_token, [*code[:-1], code[-1] + WORD_END])
        own = _tokenizer(_pieces(tokens, merges), merges)
        first, *rest = own.encode([code], is_pretokenized=True, add_special_tokens=False).tokens
        for piece in rest:  # what the merges so far leave of it is merged from left to right
            merges.append((first, piece))
            first += piece
            tokens.append(_token(first))
    return _made(tokens, merges, [*vocabulary.codes, *codes])


def _made(tokens: Iterable[str], merges: Iterable[tuple[str, str]], codes: Sequence[str]) -> CTRLVocabulary:
    ids = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    contents = {
        VOCAB: json.dumps(ids, ensure_ascii=False),
        MERGES: suffix_bpe.write_merges(merges),
        CONFIG: json.dumps({"tokenizer_class": "CTRLTokenizer", "unk_token": UNKNOWN, CODES: list(codes)}, indent=2),
    }
    return CTRLVocabulary({name: File(name, content.encode()) for name, content in contents.items()})
