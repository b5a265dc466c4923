"""Tags before a source text: the language to translate into, or where the text comes from. Each is one token."""

from collections.abc import Sequence

from heed.vocabularies.sentencepiece import Subwords
from heed.vocabularies.vocabulary import Vocabulary


def language_tag(code: str) -> str:
    """The tag of a target language, as OPUS-MT writes it."""
    return f">>{code}<<"


def is_language_tag(tag: str) -> bool:
    return tag.startswith(">>") and tag.endswith("<<")


def tag_ids(vocabulary: Vocabulary, tags: Sequence[str]) -> list[int]:
    """The ids of tags; one that is no token of the vocabulary is refused."""
    known = vocabulary.tags if isinstance(vocabulary, Subwords) else {}
    for tag in tags:
        if tag not in known:
            there = f"it has {', '.join(known)}" if known else "it has none"
            raise ValueError(
                f"data.corpora: {tag!r} is not a tag of the vocabulary; {there}: leave it out, or train a model with a "
                "new vocabulary"
            )
    return [known[tag] for tag in tags]
