"""Tags before a source text: the target language, or the origin of the text. Each is one token."""

from collections.abc import Sequence

from heed.vocabularies.sentencepiece import Subwords
from heed.vocabularies.vocabulary import Vocabulary


def language_tag(code: str) -> str:
    """The tag of a target language, in OPUS-MT's format."""
    return f">>{code}<<"


def is_language_tag(tag: str) -> bool:
    return tag.startswith(">>") and tag.endswith("<<")


def tag_ids(vocabulary: Vocabulary, tags: Sequence[str]) -> list[int]:
    """The ids of tags; a tag that is not in the vocabulary is refused."""
    known = vocabulary.tags if isinstance(vocabulary, Subwords) else {}
    for tag in tags:
        if tag not in known:
            there = f"it has {', '.join(known)}" if known else "it has none"
            raise ValueError(
                f"data.corpora: {tag!r} is not a tag of the vocabulary; {there}: leave it out, or train a model with a "
                "new vocabulary"
            )
    return [known[tag] for tag in tags]
