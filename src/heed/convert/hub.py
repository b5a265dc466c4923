"""Models by their name on the Hugging Face hub, through huggingface_hub: its cache, its login, its HF_HUB_OFFLINE."""

import os
import re
from pathlib import Path

TEXT_FILES = [
    "config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json", "special_tokens_map.json",
    "added_tokens.json", "vocab.json", "target_vocab.json", "merges.txt", "source.spm", "target.spm", "spiece.model",
    "sentencepiece.bpe.model", "vocab.txt", "README.md", "modules.json", "sentence_bert_config.json",
    "config_sentence_transformers.json", "*_Pooling/config.json", "preprocessor_config.json",
]  # fmt: skip
SAFETENSORS = ["model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors"]
PICKLES = ["pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-*-of-*.bin"]

# The owners of models from before every model had one. Their old names are still in use.
OWNERS = {
    "openai-community": ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "openai-gpt"),
    "Salesforce": ("ctrl",),
    "google-bert": (
        "bert-base-uncased", "bert-base-cased", "bert-large-uncased", "bert-large-cased", "bert-base-chinese",
        "bert-base-multilingual-uncased", "bert-base-multilingual-cased", "bert-base-german-cased",
        "bert-large-uncased-whole-word-masking", "bert-large-cased-whole-word-masking",
        "bert-large-uncased-whole-word-masking-finetuned-squad", "bert-large-cased-whole-word-masking-finetuned-squad",
    ),
    "FacebookAI": ("roberta-base", "roberta-large", "roberta-large-mnli"),
    "albert": tuple(f"albert-{size}-{version}" for size in ("base", "large", "xlarge", "xxlarge") for version in ("v1", "v2")),
}  # fmt: skip
FULL_NAMES = {name: f"{owner}/{name}" for owner, names in OWNERS.items() for name in names}


def is_name(text: str) -> bool:
    """Whether a text looks like owner/name, or is an old name without an owner, such as gpt2. A folder may look like
    that too: check first whether it exists.
    """
    if text in FULL_NAMES:
        return True
    part = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
    whole = re.fullmatch(f"{part}/{part}", text) and len(text) <= 96
    return bool(whole) and ".." not in text and "--" not in text and not text.endswith(".git")


def is_path(text: str) -> bool:
    """Whether a text like owner/name is certainly a folder, existing or not: runs are in runs/."""
    return text.startswith(("runs/", "./", "../", "/", "~"))


def fetch(name: str, revision: str | None = None) -> Path:
    """The cached folder with the files that heed reads. Pickles are downloaded only if there are no safetensors."""
    name = FULL_NAMES.get(name, name)
    folder = _snapshot(name, revision, TEXT_FILES + SAFETENSORS)
    if any((folder / file).is_file() for file in SAFETENSORS[:2]):
        return folder
    return _snapshot(name, folder.name, TEXT_FILES + PICKLES)


def origin(folder: Path) -> tuple[str, str] | None:
    """The name and commit of a folder, if it is a snapshot in the hub's cache."""
    folder = folder.absolute()
    repository = folder.parent.parent.name
    if folder.parent.name != "snapshots" or not repository.startswith("models--"):
        return None
    return repository.removeprefix("models--").replace("--", "/"), folder.name


def _snapshot(name: str, revision: str | None, files: list[str]) -> Path:
    from huggingface_hub import constants, errors, snapshot_download

    if not is_name(name):
        raise ValueError(
            f"{name!r} is not a valid hub name; it should look like owner/name, for example Helsinki-NLP/opus-mt-ko-en"
        )
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=files))
    except errors.GatedRepoError as error:
        raise ValueError(
            f"{name} requires accepting its terms: do so at {constants.ENDPOINT}/{name}, then log in "
            "with: hf auth login"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise ValueError(
            f"there is no model {name} on the hub, and no such local folder: search at {constants.ENDPOINT}/models, "
            "and if it is private, log in with: hf auth login"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ValueError(f"{name} has no revision {revision!r} on the hub; the default is main") from error
    except errors.LocalEntryNotFoundError as error:
        raise ValueError(_unreached(name, revision, error)) from error
    except Exception as error:  # which errors a network raises differs between versions of the library
        raise ValueError(f"{name} could not be downloaded from the hub: {_line(error)}") from error


def _unreached(name: str, revision: str | None, error: Exception) -> str:
    """Why neither the hub nor the cache has a model."""
    from huggingface_hub import constants, errors

    what = f"{name} at {revision!r}" if revision else name
    cache = f"the cache ({_short(constants.HF_HUB_CACHE)}) does not contain all of it"
    if isinstance(error.__cause__, errors.OfflineModeIsEnabled):
        return f"HF_HUB_OFFLINE is set, and {cache}: {what}. Unset it to download the model once, or give an existing folder"
    if isinstance(error.__cause__, errors.HfHubHTTPError):
        return f"the hub could not serve {what} ({_line(error.__cause__)}), and {cache}: try again later"
    return (
        f"no network: the hub could not be reached for {what}, and {cache}. Go online once, or give an existing folder"
    )


def _short(path: str) -> str:
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path.startswith(home + os.sep) else path


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(". ")
