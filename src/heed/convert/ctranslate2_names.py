"""Token names and source tokens for CTranslate2. Nothing here needs torch."""

from heed.vocabularies.multilingual import languages_of
from heed.vocabularies.vocabulary import Vocabulary


def given_ids(source: Vocabulary, ids: list[int]) -> list[int]:
    """The source tokens for CTranslate2: the text and the tokens of the direction. For a multilingual model these are
    all it reads; in some the language comes last.
    """
    special, fixed = source.special, source.fixed_special()
    before = special.before[len(fixed.before) :]
    return [*before, *ids, special.last] if languages_of(source) else [*before, *ids]


def names(vocabulary: Vocabulary, size: int | None = None) -> list[str]:
    """The token of each id, all distinct. A model may have more ids than its vocabulary has tokens: up to `size`."""
    ids = range(len(vocabulary))
    tokenizer = getattr(vocabulary, "tokenizer", None)
    pieces = [tokenizer.id_to_token(i) for i in ids] if tokenizer else vocabulary.pieces(ids)
    tokens: dict[str, int] = {}
    for i, piece in enumerate(pieces):
        tokens[f"<unused_{i}>" if piece is None or piece in tokens else piece] = i
    return [*tokens, *(f"<unused_{i}>" for i in range(len(ids), size or 0))]
