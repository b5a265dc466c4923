"""Read and write folders of Hugging Face's transformers."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from heed.convert import (
    albert,
    bart,
    bert,
    bigbird,
    ctrl,
    electra,
    generation,
    gpt,
    gpt2,
    hub,
    m2m100,
    marian,
    mbart,
    model_card,
    multilingual,
    pegasus,
    roberta,
    sentence_transformers,
    speech2text,
    tokenizers,
    transformer,
    vit,
    weights,
)
from heed.convert.architecture import Architecture
from heed.files import atomic_folder, damage_reported, write_json, write_text
from heed.models.folder import check_finite, check_layers, compare, outline, put, save_weights, shapes
from heed.models.folder_config import read_json
from heed.models.package import Package
from heed.vocabularies import folder as vocabulary_folder
from heed.vocabularies.multilingual import languages_of
from heed.vocabularies.text_parts import plain
from heed.vocabularies.vocabulary import Pair

SYSTEMS = (
    marian,
    bart,
    pegasus,
    mbart,
    m2m100,
    transformer,
    gpt,
    gpt2,
    ctrl,
    bert,
    albert,
    roberta,
    electra,
    bigbird,
    vit,
    speech2text,
)
ARCHITECTURES = [each for system in SYSTEMS for each in system.ARCHITECTURES]
READABLE = {name: each for each in ARCHITECTURES if each.readable for name in (each.name, *each.aliases)}
CONFIG, GENERATION, TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"


def read(folder: Path) -> Package:
    """The model of a folder with its vocabularies, labels and search settings."""
    settings = _json(folder / CONFIG)
    architecture = _architecture(folder, settings)
    if architecture.vocabulary is None:
        return _read_images(folder, settings, architecture)
    if architecture.task == "speech-recognition":
        return _read_speech(folder, settings, architecture)
    vocabularies = vocabulary_folder.read(folder, {"kind": architecture.vocabulary})
    config = _about(folder / CONFIG, lambda: architecture.config_table.to_ours(settings))
    _refuse_other_vocabulary(folder, config, vocabularies)
    stated = {name: settings[name] for name in architecture.token_ids if name in settings}
    _about(folder / CONFIG, lambda: generation.check_ids(stated, vocabularies[1].special))
    model = _model(folder, architecture, config)
    origin = _origin(folder, settings, architecture.name)
    facts = {"languages": _languages(folder, origin["name"]), "max_source": config.max_length, "origin": origin}
    if architecture.generates:
        search, path = _search_settings(folder, settings, vocabularies)
        search, forced = _about(path, lambda: multilingual.search_settings(search, vocabularies))
        facts["decoding"], origin["left"] = _decoding(search, path, vocabularies)
        if languages_of(vocabularies[1]):
            facts["languages"] = multilingual.default_direction(_tokenizer_settings(folder), vocabularies, forced)
    task, processors = task_of(folder, settings), architecture.processors(vocabularies, settings)
    return Package(model.eval(), task, processors, facts | sentence_transformers.read(folder, config.max_length))


def _read_images(folder: Path, settings: dict[str, Any], architecture: Architecture) -> Package:
    """An image model, which has no vocabulary."""
    config = _about(folder / CONFIG, lambda: architecture.config_table.to_ours(settings))
    path = folder / vit.PREPROCESSOR
    if not path.is_file():
        raise ValueError(f"{folder} has no {path.name}, which states how images are read: copy it from the original")
    preprocessor = _json(path)
    processors = _about(path, lambda: vit.processors(preprocessor, settings, config))
    model = _model(folder, architecture, config)
    facts = {"origin": _origin(folder, settings, architecture.name)}
    return Package(model.eval(), architecture.task, processors, facts)


def _read_speech(folder: Path, settings: dict[str, Any], architecture: Architecture) -> Package:
    """A speech recognizer, which reads audio features and writes text."""
    _, vocabulary = vocabulary_folder.read(folder, {"kind": architecture.vocabulary})
    config = _about(folder / CONFIG, lambda: architecture.config_table.to_ours(settings))
    _refuse_other_vocabulary(folder, config, (vocabulary, vocabulary))
    stated = {name: settings[name] for name in architecture.token_ids if name in settings}
    _about(folder / CONFIG, lambda: generation.check_ids(stated, vocabulary.special))
    path = folder / speech2text.PREPROCESSOR
    sound = _about(path, lambda: speech2text.features(_json(path), config))
    path = folder / (GENERATION if (folder / GENERATION).is_file() else CONFIG)
    decoding = _about(path, lambda: speech2text.decoding(_json(path)))
    facts = {"decoding": decoding, "origin": _origin(folder, settings, architecture.name)}
    model = _model(folder, architecture, config)
    return Package(model.eval(), architecture.task, {"sound": sound, "target": vocabulary}, facts)


def _model(folder: Path, architecture: Architecture, config: Any) -> nn.Module:
    """A model with exactly the weights of a folder."""
    theirs = weights.read(folder)
    _about(folder / CONFIG, lambda: check_layers(config, len(theirs)))
    own = _about(folder / CONFIG, lambda: outline(architecture.model, config))
    ours = _about(folder, lambda: architecture.weight_table(config).to_ours(theirs, own.keys()))
    compare(own, shapes(ours), folder)
    check_finite(ours, folder)
    model = architecture.model(config)
    put(model, ours, folder)
    return model


def task_of(folder: Path, settings: dict[str, Any]) -> str:
    """The task of a folder's model, from its config.json."""
    architecture = _architecture(folder, settings)
    if sentence_transformers.root_of(folder):
        return "embedding"
    if architecture.task_of is None:
        return architecture.task
    return _about(folder / CONFIG, lambda: architecture.task_of(settings))


def model_of(folder: Path, settings: dict[str, Any]) -> type[nn.Module]:
    """The class of a folder's model."""
    return _architecture(folder, settings).model


def write(package: Package, folder: Path) -> Architecture:
    """Write a folder for transformers' Auto classes. Heed's own Transformer is exported as a Marian model."""
    model, languages = package.model, package.facts.get("languages") or {}
    if "images" in package.processors:
        return _write_images(package, folder)
    if "sound" in package.processors:
        raise ValueError("speech models cannot be exported for transformers: heed reads such folders, and writes none")
    vocabularies = multilingual.choose(package.vocabularies, languages)
    architecture, max_length = _architecture_of(model), model.config.max_length
    framing = tokenizers.input_tokens(vocabularies, getattr(model.config, "choices", False))
    vocabularies = plain(vocabularies[0]), plain(vocabularies[1])
    theirs, settings = architecture.to_theirs(model)
    ids = multilingual.settings_of(vocabularies)
    settings |= {name: ids[name] for name in architecture.token_ids} | architecture.settings(package)
    settings["dtype"] = str(next(model.parameters()).dtype).removeprefix("torch.")
    with atomic_folder(folder) as part:
        if architecture.generates:
            decoding = generation.of_model("language" if framing else package.task, package.facts)
            write_json(part / GENERATION, multilingual.generation_settings(decoding, vocabularies, max_length))
        write_json(part / CONFIG, settings)
        theirs = {name: weight.detach().cpu().contiguous() for name, weight in theirs.items()}
        save_weights(theirs, part / weights.SAFE, metadata={"format": "pt"})
        tokenizers.write(vocabularies, part, max_length)
        if framing:
            tokenizers.write_input_tokens(vocabularies[0], framing, part)
        _write_languages(part / TOKENIZER, languages)
        if sentence_transformers.is_one(package):
            sentence_transformers.write(package, part)
        write_text(part / "README.md", model_card.huggingface(package, architecture))
        for name, own in architecture.beside(package).items():
            write(own, part / name)
    return architecture


def _write_images(package: Package, folder: Path) -> Architecture:
    architecture = _architecture_of(package.model)
    theirs, settings = architecture.to_theirs(package.model)
    settings |= architecture.settings(package)
    settings["dtype"] = str(next(package.model.parameters()).dtype).removeprefix("torch.")
    preprocessor = vit.to_theirs(package)
    with atomic_folder(folder) as part:
        write_json(part / CONFIG, settings)
        write_json(part / vit.PREPROCESSOR, preprocessor)
        theirs = {name: weight.detach().cpu().contiguous() for name, weight in theirs.items()}
        save_weights(theirs, part / weights.SAFE, metadata={"format": "pt"})
        write_text(part / "README.md", model_card.huggingface(package, architecture))
    return architecture


def _architecture_of(model: nn.Module) -> Architecture:
    """The architecture a model is exported as. A subclass may compute something else, so it counts as another model."""
    for architecture in ARCHITECTURES:
        if type(model) is architecture.model and architecture.fits(model.config):
            return architecture
    name = f"a {type(model).__name__}"
    if any(type(model) is architecture.model for architecture in ARCHITECTURES):
        name += " with such a head or a prompt"
    raise ValueError(f"transformers has no equivalent of {name}: it cannot be exported")


def _architecture(folder: Path, settings: dict[str, Any]) -> Architecture:
    names = settings.get("architectures") or [settings.get("model_type")]
    if not isinstance(names, list) or not isinstance(names[0], str | None):
        raise ValueError(f"{folder / CONFIG}: architectures is {names!r}; it must be a list with one class name")
    name = names[0]
    if name in READABLE:
        return READABLE[name]
    if name is None:
        raise ValueError(f"{folder / CONFIG} names no architecture: it is not a Hugging Face transformers model")
    raise ValueError(f"{folder} holds a {name}; heed reads {_known()}")


def _known() -> str:
    """The supported architectures; for a model with many heads, the first."""
    families: dict[type, list[str]] = {}
    for each in ARCHITECTURES:
        if each.readable:
            families.setdefault(each.model, []).append(each.name)
    short = (own if len(own) < 3 else [f"{own[0]} and {len(own) - 1} more heads of it"] for own in families.values())
    return ", ".join(name for own in short for name in own)


def _refuse_other_vocabulary(folder: Path, config: Any, vocabularies: Pair) -> None:
    sizes = [getattr(config, "source_vocab_size", None) or config.vocab_size, config.vocab_size]
    for side, vocabulary, size in zip(("source", "target"), vocabularies, sizes, strict=True):
        if len(vocabulary) > size:
            raise ValueError(
                f"{folder}: the vocabulary of the {side} has {len(vocabulary)} pieces, but the model expects {size}: "
                "it belongs to another model"
            )


def _search_settings(folder: Path, settings: dict[str, Any], vocabularies: Pair) -> tuple[dict[str, Any], Path]:
    """generation_config.json or, in older folders, the search settings in config.json; and which of the two it is."""
    path = folder / GENERATION
    if path.is_file():
        return _json(path), path
    known = {*generation.THEIR_DEFAULTS, *generation.UNSUPPORTED, *generation.UNSUPPORTED_SAMPLING}
    last = vocabularies[1].special.last
    search = {"forced_eos_token_id": last} | {name: settings[name] for name in settings if name in known}
    if settings.get("force_bos_token_to_be_generated"):
        search["forced_bos_token_id"] = settings.get("bos_token_id")
    return search, folder / CONFIG


def _decoding(search: dict[str, Any], path: Path, vocabularies: Pair) -> tuple[dict[str, Any], list[str]]:
    """Heed's search settings, and the names of ignored ones."""
    special = multilingual.special_tokens(vocabularies)
    _about(path, lambda: generation.check_ids(search, special))
    return _about(path, lambda: generation.to_ours(search, special))


def _origin(folder: Path, settings: dict[str, Any], architecture: str) -> dict[str, Any]:
    """Where a folder came from. A local path in config.json does not count."""
    known = hub.origin(folder)
    before = str(settings.get("_name_or_path", ""))
    name, revision = known or (before if hub.is_name(before) else folder.resolve().name, None)
    return {"name": name, "revision": revision, "architecture": architecture, "licence": model_card.licence(folder)}


def _tokenizer_settings(folder: Path) -> dict[str, Any]:
    return _json(folder / TOKENIZER) if (folder / TOKENIZER).is_file() else {}


def _languages(folder: Path, name: str) -> dict[str, str | None]:
    settings = _tokenizer_settings(folder)
    if settings.get("source_lang") and settings.get("target_lang"):
        return {"source": settings["source_lang"], "target": settings["target_lang"]}
    match = re.search(r"opus-mt(?:-[a-z]+)*?-([A-Za-z_]{2,7})-([A-Za-z_]{2,7})$", name)
    return {"source": match[1] if match else None, "target": match[2] if match else None}


def _write_languages(path: Path, languages: dict[str, str | None]) -> None:
    settings = _json(path)
    if settings["tokenizer_class"] == "MarianTokenizer" and languages.get("source") and languages.get("target"):
        write_json(path, {**settings, "source_lang": languages["source"], "target_lang": languages["target"]})


def _about(path: Path, work: Callable[[], Any]) -> Any:
    """The result of `work`; its errors name this file."""
    try:
        with damage_reported("it"):
            return work()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _json(path: Path) -> dict[str, Any]:
    return read_json(path, "settings: it is not Hugging Face's")
