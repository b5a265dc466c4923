"""What CTranslate2 calls tokens, and what it is given of a source. Nothing here needs torch."""

from heed.vocabularies.multilingual import languages_of
from heed.vocabularies.vocabulary import Vocabulary


def given_ids(source: Vocabulary, ids: list[int]) -> list[int]:
    """What CTranslate2 is given of a source: the text, and what depends on the direction.

    Of a multilingual model that is all that it reads: in some the language stands last.
    """
    special, fixed = source.special, source.fixed_special()
    before = special.before[len(fixed.before) :]
    return [*before, *ids, special.last] if languages_of(source) else [*before, *ids]


def names(vocabulary: Vocabulary, size: int | None = None) -> list[str]:
    """The token of each id, all different. A model may have more ids than its vocabulary has tokens: up to `size`."""
    ids = range(len(vocabulary))
    tokenizer = getattr(vocabulary, "tokenizer", None)
    pieces = [tokenizer.id_to_token(i) for i in ids] if tokenizer else vocabulary.pieces(ids)
    tokens: dict[str, int] = {}
    for i, piece in enumerate(pieces):
        tokens[f"<unused_{i}>" if piece is None or piece in tokens else piece] = i
    return [*tokens, *(f"<unused_{i}>" for i in range(len(ids), size or 0))]
