"""A language model for shallow fusion with a recognizer: the same tokens under different ids."""

from typing import Any

import torch

from heed.decoding.speech import LanguageScores
from heed.vocabularies.vocabulary import Vocabulary

LEAST = 0.9  # share of the recognizer's tokens that a language model must know


def language_scores(generator: Any, vocabulary: Vocabulary, name: str = "the language model") -> LanguageScores:
    """The scores of a language model for the tokens of a recognizer. One with other tokens is refused."""
    theirs, special = generator.vocabulary, generator.special
    numbers = {piece: i for i, piece in enumerate(theirs.pieces(range(len(theirs))))}
    never = {vocabulary.special.last, *vocabulary.special.never}
    pieces = vocabulary.pieces(range(len(vocabulary)))
    known = [i for i, piece in enumerate(pieces) if i not in never and piece in numbers]
    if len(known) < LEAST * (len(pieces) - len(never)):
        raise ValueError(
            f"{name} knows {len(known):,} of the recognizer's {len(pieces) - len(never):,} tokens: train it with the same vocabulary, "
            "subwords.kind = 'characters' for both, or subwords.source_model = the file in the recognizer's folder"
        )
    ids = torch.full((len(pieces),), special.unknown)
    for i in known:
        ids[i] = numbers[pieces[i]]
    ids[vocabulary.special.last] = special.last
    return LanguageScores(generator.model, ids.to(generator.device), generator.before)
