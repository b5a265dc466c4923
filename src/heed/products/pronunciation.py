"""A grapheme-to-phoneme model: pronunciations of words missing from the dictionary."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heed.data.pronunciations import letters
from heed.device import choose_device
from heed.models import folder as model_folder
from heed.products.packages import find_model, read_package, task_of
from heed.products.translator.translator import Translator

LONGEST = 60  # letters of a word
Pronounce = Callable[[Sequence[str]], Mapping[str, str]]  # words -> the phonemes of each, separated by spaces


def by_model(translator: Any) -> Pronounce:
    """The pronunciations predicted by a translator from letters to phonemes."""

    def pronounce(words: Sequence[str]) -> dict[str, str]:
        for word in words:
            if len(word) > LONGEST:
                raise ValueError(f"{word[:20]!r}… has {len(word):,} letters; a word has at most {LONGEST}")
        found = translator.translate([letters(word) for word in words])
        return {word: own.text for word, own in zip(words, found, strict=True)}

    return pronounce


def open_model(folder: str, device: str = "cpu") -> Pronounce:
    """The model in a folder trained with recipes/g2p.toml."""
    path = find_model(Path(folder))
    facts = model_folder.read_config(path)
    if "model" not in facts or task_of(path, facts) != "translation":
        raise ValueError(f"{folder} is not a translator from letters to phonemes: train one with recipes/g2p.toml")
    package = read_package(path, facts)
    package.model.to(choose_device(device))
    return by_model(Translator.open([package], [folder], engine="auto"))
