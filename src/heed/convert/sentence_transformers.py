"""What a sentence-transformers folder adds to a transformers folder: how the states of a text are pooled."""

from pathlib import Path
from typing import Any

from heed.config import parse_json
from heed.files import write_json
from heed.models.folder_config import read_json
from heed.models.package import Package, longest_text
from heed.models.signature import CONFIG
from heed.vocabularies.files import CONFIG as TOKENIZER

MODULES, SETTINGS, PROMPTS = "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"
POOLING = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}  # heed's names, and how theirs end
OTHERS = ("mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
KNOWN = ("Transformer", "Pooling", "Normalize")
TYPES = "sentence_transformers.models."  # every version reads these names
EXAMPLE = """\
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(".")  # the folder of this file
print(model.encode(["A text."]))
"""


def transformer_folder(folder: Path) -> Path:
    """The model folder within a sentence-transformers folder: older versions wrote it into a subfolder."""
    if (folder / CONFIG).is_file() or not (folder / MODULES).is_file():
        return folder
    return folder / _modules(folder)[0][1]


def read(folder: Path, max_length: int) -> dict[str, Any]:
    """The pooling settings for Heed's config.json; empty if `folder`, which holds the model, is not of
    sentence-transformers.
    """
    root = root_of(folder)
    if root is None:
        return {}
    modules = _modules(root)
    unknown = [name for name, _ in modules if name not in KNOWN]
    if unknown or [name for name, _ in modules][:2] != ["Transformer", "Pooling"]:
        shown = ", ".join(name for name, _ in modules)
        raise ValueError(
            f"{root / MODULES} has the modules {shown}; heed supports Transformer and Pooling, optionally followed by "
            "Normalize"
        )
    settings = read_json(folder / SETTINGS, "settings") if (folder / SETTINGS).is_file() else {}
    _refuse_preparation(root, folder, settings)
    tokenizer = read_json(folder / TOKENIZER, "settings") if (folder / TOKENIZER).is_file() else {}
    most = (
        settings.get("max_seq_length") or tokenizer.get("model_max_length") or max_length
    )  # newer versions have the second
    if type(most) not in (int, float) or not most >= 1:
        raise ValueError(f"{folder}: max_seq_length is {most!r}; it must be a number of at least 1")
    pooling = _pooling(root / modules[1][1] / CONFIG)
    return {"pooling": pooling, "normalize": len(modules) > 2, "max_source": int(min(most, max_length))}


def root_of(folder: Path) -> Path | None:
    """The folder with the list of modules, one of which is the model in `folder`; None if there is none."""
    if (folder / MODULES).is_file():
        return folder
    above = folder.resolve().parent
    listed = (above / MODULES).is_file() and any(path == folder.resolve().name for _, path in _modules(above))
    return above if listed else None


def write(package: Package, folder: Path) -> None:
    """Write the additional files of an embedding model into its transformers folder."""
    dim, most = package.model.config.dim, longest_text(package)
    modes = {f"pooling_mode_{name}": False for name in (*POOLING.values(), *OTHERS)}
    modes[f"pooling_mode_{POOLING[package.facts['pooling']]}"] = True
    modules = ["", "1_Pooling", *(["2_Normalize"] if package.facts.get("normalize") else [])]
    rows = [
        {"idx": number, "name": str(number), "path": path, "type": TYPES + name}
        for number, (path, name) in enumerate(zip(modules, KNOWN, strict=False))
    ]
    for path in modules[1:]:
        (folder / path).mkdir()
    write_json(folder / MODULES, rows)
    write_json(folder / SETTINGS, {"max_seq_length": most, "do_lower_case": False})
    write_json(folder / "1_Pooling" / CONFIG, {"word_embedding_dimension": dim, **modes, "include_prompt": True})
    write_json(folder / PROMPTS, {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"})


def is_one(package: Package) -> bool:
    """Whether a package specifies how its states are pooled."""
    return package.task == "embedding" and "pooling" in package.facts


def _modules(root: Path) -> list[tuple[str, str]]:
    """The name and folder of each module, in order."""
    path = root / MODULES
    try:
        rows = parse_json(path.read_text("utf-8"))
        found = [
            (str(row["type"]).rpartition(".")[2], str(row["path"])) for row in sorted(rows, key=lambda r: r["idx"])
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a list of modules ({error!r}): copy it again") from error
    if not found:
        raise ValueError(f"{path} lists no modules: copy it again")
    for _, place in found:
        if Path(place).is_absolute() or ".." in Path(place).parts:
            raise ValueError(f"{path} names {place!r}; a module must be a subfolder")
    return found


def _pooling(path: Path) -> str:
    settings = read_json(path, "settings of a pooling")
    mode = settings.get("pooling_mode")
    modes = [mode] if isinstance(mode, str) else mode
    if modes is None:
        modes = [name for name, theirs in POOLING.items() if settings.get(f"pooling_mode_{theirs}")]
        modes += [theirs for theirs in OTHERS if settings.get(f"pooling_mode_{theirs}")]
    if not isinstance(modes, list) or len(modes) != 1 or modes[0] not in [*POOLING]:
        shown = " and ".join(map(str, modes)) if isinstance(modes, list) else repr(modes)
        raise ValueError(f"{path} pools by {shown or 'nothing'}; heed has {', '.join(POOLING)}")
    return modes[0]


def _refuse_preparation(root: Path, folder: Path, settings: dict[str, Any]) -> None:
    """Refuse settings that change texts before tokenization."""
    if settings.get("do_lower_case"):
        raise ValueError(
            f"{folder / SETTINGS}: do_lower_case is true, which heed expects in the tokenizer's settings: set it there"
        )
    prompts = read_json(root / PROMPTS, "settings") if (root / PROMPTS).is_file() else {}
    if prompts.get("default_prompt_name"):
        raise ValueError(
            f"{root / PROMPTS}: every text starts with the prompt {prompts['default_prompt_name']!r}, which heed does "
            "not add: put "
            "it before your texts, and set default_prompt_name to null"
        )
