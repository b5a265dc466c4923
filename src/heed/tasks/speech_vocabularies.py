"""The vocabularies of a speech model: of its texts and of the transcripts for CTC, existing or new."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from heed.data.audio.prepare import SpeechCorpus
from heed.data.prepare import Learning
from heed.data.readers import Line
from heed.models.package import Package
from heed.tasks.base import Tell
from heed.vocabularies.characters import Characters
from heed.vocabularies.transcripts import TranscriptCharacters
from heed.vocabularies.vocabulary import Vocabulary


class Written(NamedTuple):
    """The vocabulary of the texts, that of the transcripts, if CTC uses them, and whether the first was learned from
    these data. `renewed` are the parts of a pre-trained model whose tokens change. `chosen` is as in Prepared.
    """

    target: Vocabulary
    transcript: TranscriptCharacters | None
    learned: bool = True
    renewed: tuple[str, ...] = ()
    chosen: Mapping[str, Any] = MappingProxyType({})

    def processors(self) -> dict[str, Any]:
        return {"target": self.target} | ({"transcript": self.transcript} if self.transcript is not None else {})

    def sizes(self) -> dict[str, int]:
        own = {"vocab_size": len(self.target)} if self.learned else {}
        return own | {"ctc_size": len(self.transcript) if self.transcript is not None else 0}


def find(recipe: Any, base: Package | None, corpus: SpeechCorpus, key: str, tell: Tell) -> Written:
    """Those of the pre-trained model as far as they fit, the others learned from the corpus with the key `key`."""
    transcribes = recipe.task.settings.learns_transcripts
    if transcribes:
        _check_transcripts(corpus)
    if base is None:
        target, chosen = _learned(recipe, corpus, key, tell)
        said = TranscriptCharacters.learned(corpus.transcripts) if transcribes else None
        return Written(target, said, chosen=chosen)
    old, said = base.processors["target"], base.processors.get("transcript")
    another = writes_another_language(recipe, base)
    target, chosen = _learned(recipe, corpus, key, tell) if another else (old, {})
    transcript = None
    if transcribes:
        heard = TranscriptCharacters(old.characters) if another and type(old) is Characters else None
        transcript = said or heard or TranscriptCharacters.learned(corpus.transcripts)
    same = (transcript or target).key() == (said or old).key()
    return Written(target, transcript, another, ("tokens.",) * another + ("ctc.",) * (not same), chosen)


def writes_another_language(recipe: Any, base: Package) -> bool:
    """Whether a recognizer is turned into a translator: its encoder is kept, its vocabulary is not."""
    wanted, own = recipe.data.target_language, base.facts.get("target_language") or base.facts.get("language")
    if wanted and own:
        return wanted != own
    return recipe.task.settings.learns_transcripts and "transcript" not in base.processors


def _learned(recipe: Any, corpus: SpeechCorpus, key: str, tell: Tell) -> tuple[Vocabulary, Mapping[str, Any]]:
    lines = [Line(text, text, name) for text, name in zip(corpus.texts, corpus.names, strict=True)]
    learning = Learning(recipe.subwords, recipe.model.vocabulary, one_sided=True)
    return learning.pair(lambda: lines, key, tell)[1], learning.chosen(key)


def _check_transcripts(corpus: SpeechCorpus) -> None:
    without = [name for name, text in zip(corpus.names, corpus.transcripts, strict=True) if not text]
    if without:
        raise ValueError(
            f"{without[0]} has no transcript, the fourth column of the table, which task.ctc_target needs: add it, or set "
            "task.ctc_target to 'text'"
        )


def encoded(vocabulary: Vocabulary, texts: Sequence[str]) -> list[list[int]]:
    return vocabulary.encode(list(map(vocabulary.clean, texts)))
