"""The character vocabulary of transcripts, for the CTC output of a speech translation model."""

from collections.abc import Mapping, Sequence
from typing import Any

from heed.vocabularies.characters import Characters, learn
from heed.vocabularies.sentencepiece import SubwordsConfig


class TranscriptCharacters(Characters):
    """A vocabulary of characters stored in config.json, next to the vocabulary of the translations."""

    @staticmethod
    def learned(texts: Sequence[str]) -> "TranscriptCharacters":
        return TranscriptCharacters(learn("characters", texts, SubwordsConfig()).characters)

    def facts(self) -> dict[str, Any]:
        """Its entry in config.json."""
        return {"kind": "transcript", "characters": "".join(self.characters)}

    @staticmethod
    def read(facts: Mapping[str, Any], where: str) -> "TranscriptCharacters":
        own = facts.get("characters")
        if not isinstance(own, str) or len(set(own)) != len(own):
            raise ValueError(f"{where}.characters is {own!r}; it must be a string of different characters")
        return TranscriptCharacters(list(own))
