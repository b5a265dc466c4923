"""Questions and contexts as model inputs: windows of a long context, and the answer span in each."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from heed.data.batching import LabelledBatch, text_inputs
from heed.data.squad import Question
from heed.data.text_windows import Window, split_windows
from heed.vocabularies.ragged import Ids
from heed.vocabularies.text_parts import join_parts, split_parts
from heed.vocabularies.vocabulary import AlignedPieces, AlignsPieces, SpecialPair, SpecialTokens

MAX_LENGTH, STRIDE, MAX_QUESTION, MAX_ANSWER = 384, 128, 64, 30  # BERT's, of subwords (Devlin et al., 2019)
LEAST_WINDOW = 16


class WindowSizes(NamedTuple):
    """Window settings: maximum length in subwords including everything, overlap of two windows, and maximum question
    length.
    """

    max_length: int = MAX_LENGTH
    stride: int = STRIDE
    max_question: int = MAX_QUESTION

    def longest_question(self, special: SpecialTokens) -> int:
        """How many subwords of a question are read: at most half of a window."""
        return min(self.max_question, (self.max_length - _around(special)) // 2)


class QuestionInput(NamedTuple):
    """A tokenized question and context, and the windows of the context. `cut`: whether the question was truncated."""

    question: list[int]
    context: AlignedPieces
    windows: list[Window]
    cut: bool

    def ids(self, window: Window, special: SpecialTokens) -> list[int]:
        """The model input, with special tokens."""
        return join_parts([self.question, self.context.ids[slice(*window)]], special.delimiter)

    def offset(self, special: SpecialTokens) -> int:
        """The number of tokens before the context."""
        return len(special.before) + len(self.question) + len(special.delimiter)

    def answer(self, start: int, end: int) -> Window | None:
        """The tokens of the context that cover these characters; None if there are none."""
        spans = np.array(self.context.spans).reshape(-1, 2)
        first = int(np.searchsorted(spans[:, 1], start, side="right"))
        last = int(np.searchsorted(spans[:, 0], end, side="left")) - 1
        return (first, last) if first <= last else None


def question_inputs(
    pairs: Sequence[tuple[str, str]], vocabulary: AlignsPieces, special: SpecialTokens, sizes: WindowSizes
) -> Iterator[QuestionInput]:
    """Each question with its context; a context shared by several questions is encoded once."""
    contexts: dict[str, AlignedPieces] = {}
    encoded = vocabulary.encode_aligned([question.lstrip() for question, _ in pairs])
    around, most = _around(special), sizes.longest_question(special)
    for number, ((text, context), own) in enumerate(zip(pairs, encoded, strict=True), 1):
        if len(split_parts(own.ids, special.delimiter)) > 1:
            raise ValueError(f"question {number}, {text!r}, contains the token that ends a question: remove it")
        if context not in contexts:
            contexts = {context: vocabulary.encode_aligned([context])[0]}  # questions on it follow each other
        question, pieces = own.ids[:most], contexts[context]
        room = sizes.max_length - around - len(question)
        windows = split_windows(len(pieces.ids), room, sizes.stride)
        yield QuestionInput(question, pieces, windows, cut=len(own.ids) > most)


def _around(special: SpecialTokens) -> int:
    """The number of special tokens of a window."""
    return len(special.before) + len(special.delimiter) + 1


def answer_rows(own: QuestionInput, question: Question, special: SpecialTokens) -> list[tuple[list[int], list[int]]]:
    """Each window with the tokens where the answer begins and ends; both are the first token if the window lacks it."""
    offset, found = own.offset(special), None
    for text, start in question.answers[:1]:
        found = own.answer(start, start + len(text))
    rows = []
    for window in own.windows:
        inside = found is not None and window[0] <= found[0] and found[1] < window[1]
        target = [place - window[0] + offset for place in found] if inside else [0, 0]
        rows.append((own.ids(window, special), target))
    return rows


def collate_answers(source: Sequence[Ids], target: Sequence[Ids], special: SpecialPair) -> LabelledBatch:
    """A padded batch; `labels` are the first and last token of each answer."""
    tokens, valid, *segments = text_inputs(source, special[0])
    labels = np.array([np.asarray(own, dtype=np.int64) for own in target], dtype=np.int64).reshape(len(tokens), 2)
    return LabelledBatch(tokens, valid, torch.from_numpy(labels), *segments)
