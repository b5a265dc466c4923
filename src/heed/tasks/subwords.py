"""Which vocabulary a task learns for a model, and the valid [subwords] settings."""

from typing import Any

from heed.vocabularies.sentencepiece import SubwordsConfig

WORD_SETTINGS = ("cut", "lower", "least")  # of a vocabulary of whole words
WHOLE = ("words", "characters", "bytes")  # kinds without subwords


def vocabulary_kind(task: Any, recipe: Any) -> str | None:
    """The kind of vocabulary of the model's family; None if Heed's own, or one without subwords, is learned."""
    whole = recipe.subwords.kind in WHOLE and task.any_vocabulary
    return None if whole else recipe.model.vocabulary


def check_subwords(task: Any, recipe: Any) -> None:
    """Refuse [subwords] settings that do not apply to this task and model."""
    c, plain, kind = recipe.subwords, SubwordsConfig(), vocabulary_kind(task, recipe)
    if c.kind in ("characters", "bytes") and not task.any_vocabulary:
        raise ValueError(
            f"subwords.kind is {c.kind!r}, which is for language models; {task.name} needs subwords or words"
        )
    if c.sampling and (kind or c.kind in WHOLE or not task.samples_subwords):
        raise ValueError(
            f"subwords.sampling is {c.sampling}, but it only works for translation with Heed's own "
            "vocabulary: set it to 0"
        )
    if c.kind == "bytes" and c.size is not None:
        raise ValueError(f"subwords.size is {c.size}, but there are always 256 bytes: leave it out")
    for name in (*(["coverage"] if c.kind in WHOLE else []), *(WORD_SETTINGS if c.kind != "words" else [])):
        if getattr(c, name) != getattr(plain, name):
            whose = f"not for subwords.kind = {c.kind!r}" if name == "coverage" else "only for subwords.kind = 'words'"
            raise ValueError(f"subwords.{name} is {getattr(c, name)!r}; it is {whose}")
    own = ("kind", "joint", "coverage", "source_model", "target_model", *WORD_SETTINGS)
    every = (*own, "size", "lines", "texts")
    folder = recipe.model.folder
    for name in every if folder else own if kind else ():
        if getattr(c, name) != getattr(plain, name):
            whose = f"that of {folder}" if folder else f"of {kind}'s own kind"
            raise ValueError(f"subwords.{name} is {getattr(c, name)!r}, but the vocabulary is {whose}: leave it out")
