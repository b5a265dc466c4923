"""README.md for converted folders: for transformers, and for heed itself."""

import json
import re
from pathlib import Path
from typing import Any

from heed.convert import generation, multilingual, sentence_transformers
from heed.convert.architecture import UNTRAINED, Architecture
from heed.models import MODELS, name_of
from heed.models.package import Package
from heed.text.language_codes import public_codes
from heed.version import __version__
from heed.vocabularies.images import MODES
from heed.vocabularies.multilingual import languages_of

TRANSFORMERS = """\
from transformers import {auto_class}, AutoTokenizer

folder = "."  # the folder of this file
model, tokenizer = {auto_class}.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
texts = tokenizer(["A text."], return_tensors="pt")
{use}
"""
IMAGES = """\
from PIL import Image
from transformers import {auto_class}, AutoImageProcessor

folder = "."  # the folder of this file
model, processor = {auto_class}.from_pretrained(folder), AutoImageProcessor.from_pretrained(folder)
images = processor(Image.open("image.png").convert({mode!r}), return_tensors="pt")
{use}
"""
MULTILINGUAL = """\
tokenizer.src_lang = {source!r}
texts = tokenizer(["A text."], return_tensors="pt")
target = tokenizer.convert_tokens_to_ids({target!r})
print(tokenizer.batch_decode(model.generate(**texts, forced_bos_token_id=target), skip_special_tokens=True))"""
GENERATE = "print(tokenizer.batch_decode(model.generate(**texts), skip_special_tokens=True))"
CLASSIFY = "print([model.config.id2label[i] for i in model(**texts).logits.argmax(dim=1).tolist()])"
REGRESS = "print(model(**texts).logits[:, 0].tolist())"
SUMMARIZERS = ("bart", "pegasus")  # models that summarize if they have no languages
COMMANDS = {"language": "heed generate {}", "masked": "heed fill {} TEXT"}  # other tasks write text
COMMANDS |= {"replaced-tokens": "heed train --from {} --set task.name=classification"}
COMMANDS |= dict.fromkeys(("classification", "regression", "multiple-choice"), "heed classify {} < text")
COMMANDS |= {"tagging": "heed tag {} < text", "question-answering": 'heed answer {} --context FILE "question"'}
COMMANDS["embedding"] = "heed embed {} --input texts.txt --out vectors.npy"
COMMANDS |= dict.fromkeys(UNTRAINED, "heed info {}")
COMMANDS |= {
    "sentence-pairs": "heed classify {} < pairs.tsv",
    "image-classification": "heed classify {} image.png",
    "image-features": "heed embed {} images --out vectors.npy",
}


def huggingface(package: Package, architecture: Architecture) -> str:
    """What a model is, how to run it with transformers, and where it came from."""
    usual = {"regression": REGRESS}.get(package.task, CLASSIFY)
    framed = getattr(package.processors.get("text"), "tokens", None) is not None
    example = architecture.framed_example if framed else architecture.example
    run = example or _multilingual(package) or (GENERATE if architecture.generates else usual)
    code = TRANSFORMERS.format(auto_class=architecture.auto_class, use=run)
    search, packages = _search(package) if architecture.generates else "", "transformers torch sentencepiece"
    if "images" in package.processors:
        mode, packages = MODES[package.processors["images"].channels], "transformers torch pillow"
        code = IMAGES.format(auto_class=architecture.auto_class, use=run, mode=mode)
    if sentence_transformers.is_one(package):
        code, packages = sentence_transformers.EXAMPLE, "sentence-transformers"
    return f"""---
{_front_matter(package, architecture)}
---

# {title(package)}

Written by heed {__version__} as a {architecture.name}. `pip install {packages}`, and:

```python
{code}```

{_table(package)}
{search}{target_tags(package)}{origin(package.facts)}"""


def _multilingual(package: Package) -> str:
    """How to run a multilingual model in a direction: its own, or an example."""
    pair = multilingual.example(package.vocabularies, package.facts.get("languages") or {})
    if pair is None:
        return ""
    [target] = pair[1].pieces(pair[1].special.before)
    return MULTILINGUAL.format(source=pair[0].language, target=target)


def heed(package: Package) -> str:
    """What an imported model is, and how to run it with heed."""
    ignored = package.facts.get("origin", {}).get("left")
    note = f"\nHeed ignores these generation settings: {', '.join(ignored)}.\n" if ignored else ""
    return f"""# {title(package)}

Converted for heed {__version__}. Use it with `{use(package, "FOLDER")}`.

{_table(package)}{origin(package.facts)}{note}"""


def use(package: Package, folder: Path | str) -> str:
    """The command that runs a model."""
    if "images" in package.processors:
        return COMMANDS[package.task].format(folder)
    summarizes = name_of(package.model) in SUMMARIZERS and not all(_languages(package))
    usual = "heed summarize {} < text" if summarizes else f"heed translate {{}}{_direction(package)} < text"
    return COMMANDS.get(package.task, usual).format(folder)


def _direction(package: Package) -> str:
    """The options that choose a direction, for a multilingual model without a default."""
    pair = (
        None
        if all(_languages(package))
        else multilingual.example(package.vocabularies, package.facts.get("languages") or {})
    )
    return "" if pair is None else f" --from {pair[0].language} --to {pair[1].language}"


def licence(folder: Path) -> str | None:
    """The licence named in a folder's model card."""
    card = folder / "README.md"
    text = card.read_text("utf-8", errors="replace") if card.is_file() else ""
    front = re.match(r"---\s*\n(.*?)\n---", text, re.DOTALL)
    match = re.search(r"^license:[ \t]*[\"']?([\w.+-]+)", front[1], re.MULTILINE) if front else None
    return match[1] if match else None


def _front_matter(package: Package, architecture: Architecture) -> str:
    """Each value as JSON, which is also YAML: the language `no` must not be read as false."""
    source, vectors = package.facts.get("origin", {}), sentence_transformers.is_one(package)
    entries = {
        "language": _language_codes(package),
        "license": source.get("licence"),
        "library_name": "sentence-transformers" if vectors else "transformers",
        "pipeline_tag": "sentence-similarity" if vectors else architecture.pipeline_tag,
        "tags": ["heed", architecture.config_table.constants["model_type"]],
        "base_model": source["name"] if "/" in source.get("name", "") else None,
    }
    return "\n".join(f"{key}: {json.dumps(value)}" for key, value in entries.items() if value)


def _table(package: Package) -> str:
    c = package.model.config
    layers = f"{c.encoder_layers} + {c.decoder_layers}" if hasattr(c, "encoder_layers") else c.layers
    rows = {
        "layers": f"{layers}, width {c.dim}, {c.heads} heads",
        "weights": f"{sum(weight.numel() for weight in package.model.parameters()):,}",
        **({"subwords": f"{c.vocab_size:,}"} if hasattr(c, "vocab_size") else {}),
        "licence": package.facts.get("origin", {}).get("licence") or "not stated",
    }
    trained = package.facts.get("trained", {})
    scores = {name.removeprefix("valid_"): value for name, value in trained.items() if name.startswith("valid_")}
    rows |= {f"{name} on its validation set": f"{value:.4g}" for name, value in scores.items()}
    return "| | |\n|---|---|\n" + "".join(f"| {name} | {value} |\n" for name, value in rows.items())


def _search(package: Package) -> str:
    """How the length penalty of transformers differs from Heed's, if it does."""
    decoding = decoding_settings(package)
    alpha = decoding["length_penalty"]
    if decoding["penalty"] == "length" or decoding["beam"] == 1 or not alpha:
        return ""
    return (
        f"Heed divides the log probability of n tokens by ((5 + n) / 6)^{alpha}; transformers has no such penalty, and divides "
        f'by n^{alpha}. `penalty = "length"` makes heed do that too.\n'
    )


def title(package: Package) -> str:
    """The name of a model, with its languages."""
    name, (source, target) = MODELS[name_of(package.model)].title, _languages(package)
    if package.task in ("classification", "image-classification"):
        name += " as a classifier"
    codes = _all_languages(package)
    if codes and not (source and target):
        return f"{name}, {len(codes)} languages"
    return f"{name}, {source} to {target}" if source and target else name


def _language_codes(package: Package) -> list[str]:
    """The languages of its direction; all languages for a multilingual model without a default."""
    known = [code for code in _languages(package) if code]
    codes = _all_languages(package)
    return sorted(public_codes(codes)) if codes and len(known) < 2 else list(dict.fromkeys(known))


def _all_languages(package: Package) -> Any:
    """The languages of a multilingual model."""
    return () if "images" in package.processors else languages_of(package.vocabularies[-1])


def _languages(package: Package) -> tuple[str | None, str | None]:
    languages = package.facts.get("languages", {})
    return languages.get("source"), languages.get("target")


def decoding_settings(package: Package) -> dict[str, Any]:
    return {**generation.OUR_DEFAULTS, **generation.of_model(package.task, package.facts)}


def target_tags(package: Package) -> str:
    """How to choose the direction of a multilingual model."""
    targets = dict.fromkeys(f"`>>{target}<<`" for _, target in package.facts.get("directions") or [])
    return f"\nEach source begins with the token of its target language: {', '.join(targets)}.\n" if targets else ""


def origin(facts: dict[str, Any]) -> str:
    """Where a model came from, with its commit; empty for one trained here."""
    source = facts.get("origin")
    if not source:
        return ""
    at = f" at revision {source['revision']}" if source.get("revision") else ""
    how = "Training started from the weights of" if "trained" in facts else "Converted from"
    return f"\n{how} {source['name']}{at}.\n"
