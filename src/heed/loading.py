"""Models and translators out of folders: heed's own, those of a run, Hugging Face's, and names on its hub."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heed import config as settings
from heed.data import shortlist
from heed.decoding.config import DecodingConfig
from heed.device import choose_device
from heed.files import write_text
from heed.models import LANGUAGE_MODELS
from heed.models import folder as model_folder
from heed.models.package import Package
from heed.products.translator.translator import Translator
from heed.version import __version__
from heed.vocabularies import folder as vocabulary_folder
from heed.vocabularies.vocabulary import Pair


def load(folders: str | Path | Sequence[str | Path], device: str = "auto", engine: str = "auto") -> Translator:
    """The translator of a run, a model folder, a Hugging Face folder or a name on the hub; of several, an ensemble.

    `engine` says who searches (`Translator.use`).
    """
    names = [str(f) for f in ([folders] if isinstance(folders, str | Path) else folders)]
    place = choose_device(device)
    packages = [open_package(name) for name in names]
    for name, package in zip(names, packages, strict=True):
        if hasattr(package.model.config, "labels"):
            raise ValueError(f"{name} is a classifier, which writes no text: use heed classify")
        if isinstance(package.model, LANGUAGE_MODELS):
            raise ValueError(f"{name} is a language model, which translates nothing: use heed generate")
    first = packages[0]
    for name, package in zip(names[1:], packages[1:], strict=True):
        if [part.key() for part in package.subwords] != [part.key() for part in first.subwords]:
            raise ValueError(f"{names[0]} and {name} have different subwords: an ensemble needs the same in all")
    sizes = [package.model.config.vocab_size for package in packages]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"{', '.join(names)} have room for {', '.join(map(str, sizes))} subwords: an ensemble needs the same in all"
        )
    decoding = settings.read(DecodingConfig, first.facts.get("decoding", {}), f"{names[0]}/config.json: decoding.")
    models = [package.model.to(place) for package in packages]
    facts, few = first.facts, first.shortlist
    translator = Translator(
        models, first.subwords, decoding=decoding, max_source=facts.get("max_source"), facts=facts, shortlist=few
    )
    translator.use(engine)
    return translator


def open_package(name: str | Path, revision: str | None = None) -> Package:
    """A model with its vocabularies and its facts, from a folder of any kind that heed reads, or from the hub."""
    from heed.convert import ctranslate2, hub

    path = Path(name)
    if not path.is_dir() and revision is None and "@" in str(name):
        name, _, revision = str(name).rpartition("@")  # a name on the hub at a commit, a tag or a branch
    if not path.is_dir() and hub.is_name(str(name)):
        try:
            folder = hub.fetch(str(name), revision)
        except ValueError as error:
            if not path.parent.is_dir():
                raise
            raise ValueError(f"{name}: no such folder; and as a name on the hub: {error}") from error
        return _theirs(folder)
    if revision is not None:
        raise ValueError(f"{name} is a folder here: a revision goes with a name on the hub")
    path = find_model(path)
    if ctranslate2.is_one(path):
        raise ValueError(
            f"{path} is a folder of CTranslate2, which heed writes and does not read: its README.md tells how to use it"
        )
    facts = model_folder.read_config(path)
    if "model_type" in facts or "architectures" in facts:
        return _theirs(path)
    subwords = _subwords(path, facts)
    few = shortlist.read(path, ctranslate2.names(subwords[1]))
    return Package(model_folder.load(path), subwords, {k: v for k, v in facts.items() if k != "model"}, few)


def _theirs(path: Path) -> Package:
    from heed.convert import huggingface

    return huggingface.read(path)


def write_package(package: Package, folder: Path) -> None:
    """A model folder of heed's own."""
    folder.mkdir(parents=True, exist_ok=True)
    names = vocabulary_folder.write(folder, package.subwords)
    model_folder.save(folder, package.model, {**package.facts, "heed": __version__, "subwords": names})
    if package.shortlist is not None:
        write_text(folder / shortlist.FILE, package.shortlist)


def find_model(path: Path) -> Path:
    """A model folder as it is; of a run, the model in it."""
    if not path.is_dir():
        raise ValueError(f"{path}: no such folder")
    if (path / "recipe.toml").is_file() and not (path / model_folder.CONFIG).is_file():
        if not (path / "model" / model_folder.CONFIG).is_file():
            raise ValueError(f"{path} has no model yet: its training has not come to its first validation")
        return path / "model"
    return path


def _subwords(folder: Path, facts: dict[str, Any]) -> Pair:
    names = facts.get("subwords")
    if not names:
        raise ValueError(f"{folder}/config.json names no subwords: it cannot read text")
    found, model = vocabulary_folder.read(folder, names), facts.get("model", {})
    sizes = (model.get("source_vocab_size") or model.get("vocab_size"), model.get("vocab_size"))
    for side, part, size in zip(("source", "target"), found, sizes, strict=True):
        if not isinstance(size, int):
            continue  # what reads the model says so
        if len(part) > size or (len(part) < size and "kind" not in names):  # others round up
            raise ValueError(
                f"{folder / names.get(side, names.get('kind'))} has {len(part)} subwords, but the model was made for {size}: "
                "it is of another model"
            )
    return found
