"""Folders of Hugging Face's transformers, in and out."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

from heed.convert import bart, generation, hub, marian, model_card, pegasus, tokenizers, weights
from heed.convert.fields import ConfigTable
from heed.convert.table import WeightTable
from heed.convert.transformer import to_marian
from heed.files import atomic_folder, write_json, write_text
from heed.models.bart import Bart, BartClassifier
from heed.models.folder import put, read_json, save_weights
from heed.models.marian import Marian
from heed.models.package import Package
from heed.models.pegasus import Pegasus
from heed.models.transformer import Transformer
from heed.vocabularies import folder as vocabularies
from heed.vocabularies.vocabulary import Pair


class Kind(NamedTuple):
    """A model of theirs: its vocabulary's family, our model, and the tables between the two."""

    family: str
    model: type[nn.Module]
    fields: ConfigTable
    table: Callable[[Any], WeightTable]


KINDS = {
    "MarianMTModel": Kind("marian", Marian, marian.FIELDS, marian.table),
    "BartForConditionalGeneration": Kind("bart", Bart, bart.FIELDS, bart.table),
    "BartForSequenceClassification": Kind("bart", BartClassifier, bart.CLASSIFIER_FIELDS, bart.table),
    "PegasusForConditionalGeneration": Kind("pegasus", Pegasus, pegasus.FIELDS, pegasus.table),
}
# a model without its head, or a file that does not name one: what it was made for
BARE = {
    "MarianModel": "MarianMTModel", "marian": "MarianMTModel",
    "BartModel": "BartForConditionalGeneration", "bart": "BartForConditionalGeneration",
    "PegasusModel": "PegasusForConditionalGeneration", "pegasus": "PegasusForConditionalGeneration",
}  # fmt: skip
CONFIG, GENERATION, TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"


def read(folder: Path) -> Package:
    """The model, its vocabularies and what the folder says of them."""
    settings = _json(folder / CONFIG)
    architecture = _architecture(folder, settings)
    kind = KINDS[architecture]
    subwords = vocabularies.read(folder, {"kind": kind.family})
    model = _named(folder / CONFIG, lambda: kind.model(kind.fields.to_ours(settings)))
    _refuse_other_vocabulary(folder, model, subwords)
    _named(folder / CONFIG, lambda: generation.check_ids(settings, subwords[1].marks))
    held = weights.read(folder)
    held = _named(folder, lambda: kind.table(model.config).to_ours(held, model.state_dict().keys()))
    put(model, held, folder)
    origin = _origin(folder, settings, architecture)
    facts = {
        "subwords": {"kind": kind.family},
        "languages": _languages(folder, origin["name"]),
        "max_source": model.config.max_length,
        "origin": origin,
    }
    if isinstance(model, BartClassifier):
        facts["labels"] = _labels(settings, model.config.labels)
    else:
        facts["decoding"], origin["left"] = _decoding(folder, settings, subwords)
    return Package(model.eval(), subwords, facts)


def write(package: Package, folder: Path) -> str:
    """A folder that transformers' Auto classes open; heed's own Transformer goes as a Marian. Gives the architecture."""
    model, marks = package.model, package.subwords[1].marks
    held, settings = _theirs(model)
    settings |= {**generation.ids(marks), "dtype": str(next(model.parameters()).dtype).removeprefix("torch.")}
    most = model.config.max_length
    with atomic_folder(folder) as part:
        if isinstance(model, BartClassifier):
            settings |= _their_labels(package.facts.get("labels"), model.config.labels)
        else:
            said = generation.to_theirs(package.facts.get("decoding", {}), marks, most)
            write_json(part / GENERATION, said)
        write_json(part / CONFIG, settings)
        held = {name: weight.detach().cpu().contiguous() for name, weight in held.items()}
        save_weights(held, part / weights.SAFE, metadata={"format": "pt"})
        tokenizers.write(package.subwords, part, most)
        _write_languages(part / TOKENIZER, package.facts.get("languages", {}))
        write_text(part / "README.md", model_card.huggingface(package, settings["architectures"][0]))
    return settings["architectures"][0]


def _theirs(model: nn.Module) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights under their names, and their config.json."""
    if isinstance(model, Transformer):
        return to_marian(model)
    name, kind = next(((name, kind) for name, kind in KINDS.items() if type(model) is kind.model), (None, None))
    if kind is None:
        raise ValueError(
            f"transformers has no model that computes what a {type(model).__name__} does: it stays with heed"
        )
    held = kind.table(model.config).to_theirs(model.state_dict())
    return held, {"architectures": [name], **kind.fields.to_theirs(model.config)}


def _architecture(folder: Path, settings: dict[str, Any]) -> str:
    named = settings.get("architectures") or [settings.get("model_type")]
    known = BARE.get(named[0], named[0])
    if known in KINDS:
        return known
    if named[0] is None:
        raise ValueError(f"{folder / CONFIG} names no architecture: it is not a model of Hugging Face's transformers")
    raise ValueError(f"{folder} holds a {named[0]}; heed reads {', '.join(KINDS)}")


def _refuse_other_vocabulary(folder: Path, model: nn.Module, subwords: Pair) -> None:
    rows = [(model.source_tokens or model.tokens).num_embeddings, model.tokens.num_embeddings]
    for side, own, size in zip(("source", "target"), subwords, rows, strict=True):
        if len(own) > size:
            raise ValueError(
                f"{folder}: the vocabulary of the {side} has {len(own)} pieces, but the model was made for {size}: it is of "
                "another model"
            )


def _decoding(folder: Path, settings: dict[str, Any], subwords: Pair) -> tuple[dict[str, Any], list[str]]:
    """How to search, as generation_config.json says or, in older folders, config.json."""
    marks, path = subwords[1].marks, folder / GENERATION
    if path.is_file():
        said = _json(path)
    else:
        path = folder / CONFIG
        known = {*generation.THEIRS, *generation.WITHOUT, *generation.WITHOUT_DRAWING}
        said = {"forced_eos_token_id": marks.last} | {name: settings[name] for name in settings if name in known}
        if settings.get("force_bos_token_to_be_generated"):
            said["forced_bos_token_id"] = settings.get("bos_token_id")
    _named(path, lambda: generation.check_ids(said, marks))
    return _named(path, lambda: generation.to_ours(said, marks))


def _origin(folder: Path, settings: dict[str, Any], architecture: str) -> dict[str, Any]:
    """Where a folder came from; a name that only says where it lay on someone's disk says nothing."""
    known = hub.origin(folder)
    before = str(settings.get("_name_or_path", ""))
    name, revision = known or (before if hub.is_name(before) else folder.resolve().name, None)
    return {"name": name, "revision": revision, "architecture": architecture, "licence": model_card.licence(folder)}


def _languages(folder: Path, name: str) -> dict[str, str | None]:
    said = _json(folder / TOKENIZER) if (folder / TOKENIZER).is_file() else {}
    if said.get("source_lang") and said.get("target_lang"):
        return {"source": said["source_lang"], "target": said["target_lang"]}
    found = re.search(r"opus-mt(?:-[a-z]+)*?-([A-Za-z_]{2,7})-([A-Za-z_]{2,7})$", name)
    return {"source": found[1] if found else None, "target": found[2] if found else None}


def _write_languages(path: Path, languages: dict[str, str | None]) -> None:
    said = _json(path)
    if said["tokenizer_class"] == "MarianTokenizer" and languages.get("source") and languages.get("target"):
        write_json(path, {**said, "source_lang": languages["source"], "target_lang": languages["target"]})


def _labels(settings: dict[str, Any], size: int) -> list[str]:
    names = settings.get("id2label") or dict(enumerate(bart.label_names(size)))
    return [str(names[key]) for key in sorted(names, key=int)]


def _their_labels(labels: list[str] | None, size: int) -> dict[str, Any]:
    names = labels or bart.label_names(size)
    if len(names) != size:
        raise ValueError(f"the model has {size} labels, but the folder names {len(names)}: {', '.join(names)}")
    return bart.their_labels(names)


def _named(path: Path, work: Callable[[], Any]) -> Any:
    """What goes wrong in `work` is about this file."""
    try:
        return work()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _json(path: Path) -> dict[str, Any]:
    return read_json(path, "settings: it is not Hugging Face's")
