"""README.md of the folders that go out."""

import json
import re
from pathlib import Path
from typing import Any

from heed.convert import generation
from heed.models import LANGUAGE_MODELS, MODELS
from heed.models.bart import BartClassifier
from heed.models.package import Package
from heed.version import __version__

PIECES = """\
import ctranslate2, sentencepiece

folder = "."  # the folder of this file
source = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/source.spm")
target = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/target.spm")
model = ctranslate2.Translator(folder)

pieces = source.encode("A text.", out_type=str)
found = model.translate_batch([pieces], OPTIONS)
print(target.decode(found[0].hypotheses[0]))
"""
TOKENIZER = """\
import ctranslate2, tokenizers

folder = "."  # the folder of this file
vocabulary = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
model = ctranslate2.Translator(folder)

pieces = vocabulary.encode("A text.", add_special_tokens=False).tokens
found = model.translate_batch([pieces], OPTIONS)
print(vocabulary.decode([vocabulary.token_to_id(piece) for piece in found[0].hypotheses[0]]))
"""
TRANSFORMERS = """\
from transformers import {auto}, AutoTokenizer

folder = "."  # the folder of this file
model, tokenizer = {auto}.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
texts = tokenizer(["A text."], return_tensors="pt")
{last}
"""
WRITES = "print(tokenizer.batch_decode(model.generate(**texts), skip_special_tokens=True))"
CLASSIFIES = "print([model.config.id2label[i] for i in model(**texts).logits.argmax(dim=1).tolist()])"
NAMES = {
    "transformer": "Transformer", "marian": "Marian", "bart": "BART", "bart-classifier": "BART as a classifier",
    "pegasus": "Pegasus", "seq2seq": "Recurrent translator", "rnn-lm": "Recurrent language model",
}  # fmt: skip
TAGS = {
    "transformer": "translation", "marian": "translation", "pegasus": "summarization",
    "bart-classifier": "text-classification",
}  # fmt: skip


def huggingface(package: Package, architecture: str) -> str:
    """What a model is, how to run it with transformers, and whence it came."""
    last = CLASSIFIES if isinstance(package.model, BartClassifier) else WRITES
    code = TRANSFORMERS.format(auto=auto(architecture), last=last)
    return f"""---
{_front(package, architecture)}
---

# {title(package)}

Written by heed {__version__} as a {architecture}. `pip install transformers torch sentencepiece`, and:

```python
{code}```

{_table(package)}
{_search(package)}{origin(package.facts)}"""


def heed(package: Package) -> str:
    """A model that came from elsewhere, and how to run it here."""
    said = package.facts.get("origin", {})
    left = (
        f"\nHeed does not follow these settings of its search: {', '.join(said['left'])}.\n" if said.get("left") else ""
    )
    return f"""# {title(package)}

Made a folder of heed {__version__}. Use it with `{use(package, "FOLDER")}`.

{_table(package)}{origin(package.facts)}{left}"""


def use(package: Package, folder: Path | str) -> str:
    """The command that a model is for."""
    if isinstance(package.model, BartClassifier):
        return f"heed classify {folder} < text"
    if isinstance(package.model, LANGUAGE_MODELS):
        return f"heed generate {folder}"
    translates = all(_languages(package)) or kind(package) in ("transformer", "marian", "seq2seq")
    return f"heed {'translate' if translates else 'summarize'} {folder} < text"


def auto(architecture: str) -> str:
    """The class of transformers that opens a model."""
    classifies = architecture == "BartForSequenceClassification"
    return "AutoModelForSequenceClassification" if classifies else "AutoModelForSeq2SeqLM"


def licence(folder: Path) -> str | None:
    """What the card of a folder says of its licence."""
    card = folder / "README.md"
    text = card.read_text("utf-8", errors="replace") if card.is_file() else ""
    front = re.match(r"---\s*\n(.*?)\n---", text, re.DOTALL)
    found = re.search(r"^license:[ \t]*[\"']?([\w.+-]+)", front[1], re.MULTILINE) if front else None
    return found[1] if found else None


def _front(package: Package, architecture: str) -> str:
    """Front matter, each value as JSON, which is YAML too: the language `no` must not become a denial."""
    facts, name = package.facts, kind(package)
    languages = [code for code in _languages(package) if code]
    came = facts.get("origin", {})
    said = {
        "language": list(dict.fromkeys(languages)),
        "license": came.get("licence"),
        "library_name": "transformers",
        "pipeline_tag": TAGS.get(name),
        "tags": ["heed", architecture.removesuffix("MTModel").split("For")[0].lower()],
        "base_model": came["name"] if "/" in came.get("name", "") else None,
    }
    return "\n".join(f"{key}: {json.dumps(value)}" for key, value in said.items() if value)


def _table(package: Package) -> str:
    c = package.model.config
    rows = {
        "layers": f"{c.encoder_layers} + {c.decoder_layers}, width {c.dim}, {c.heads} heads",
        "weights": f"{sum(weight.numel() for weight in package.model.parameters()):,}",
        "subwords": f"{c.vocab_size:,}",
        "licence": package.facts.get("origin", {}).get("licence") or "not stated",
    }
    trained = package.facts.get("trained", {})
    scores = {name.removeprefix("valid_"): value for name, value in trained.items() if name.startswith("valid_")}
    rows |= {f"{name} on its validation set": f"{value:.4g}" for name, value in scores.items()}
    return "| | |\n|---|---|\n" + "".join(f"| {name} | {value} |\n" for name, value in rows.items())


def _search(package: Package) -> str:
    """Where the two searches do not agree."""
    said = {**generation.OURS, **package.facts.get("decoding", {})}
    same = said["penalty"] == "length" or said["beam"] == 1 or not said["length_penalty"]
    if same or isinstance(package.model, BartClassifier):
        return ""
    alpha = said["length_penalty"]
    return (
        f"Heed divides the log probability of n tokens by ((5 + n) / 6)^{alpha}; transformers has no such penalty, and divides "
        f'by n^{alpha}. `penalty = "length"` makes heed do that too.\n'
    )


def ctranslate2(package: Package, quantization: str | None) -> str:
    """How to run a folder of CTranslate2."""
    whole = hasattr(package.subwords[0], "tokenizer")
    code = (TOKENIZER if whole else PIECES).replace("OPTIONS", _options(package))
    return f"""# {title(package)}, for CTranslate2

Written by heed, with weights in {quantization or "float32"}. `pip install ctranslate2 {"tokenizers" if whole else "sentencepiece"}`, and:

```python
{code}```

CTranslate2 itself puts the marks around the source. It divides the log probability of n tokens by n^length_penalty.
{origin(package.facts)}"""


def title(package: Package) -> str:
    """What a model is and what it is for."""
    name, (source, target) = NAMES[kind(package)], _languages(package)
    return f"{name}, {source} to {target}" if source and target else name


def _languages(package: Package) -> tuple[str | None, str | None]:
    said = package.facts.get("languages", {})
    return said.get("source"), said.get("target")


def kind(package: Package) -> str:
    return next(name for name, (model, _) in MODELS.items() if type(package.model) is model)


def origin(facts: dict[str, Any]) -> str:
    """Whence a model came, pinned; nothing where it was made here."""
    said = facts.get("origin")
    if not said:
        return ""
    at = f" at revision {said['revision']}" if said.get("revision") else ""
    how = "Its training began with the weights of" if "trained" in facts else "Its weights came from"
    return f"\n{how} {said['name']}{at}.\n"


def _options(package: Package) -> str:
    """The settings of a search that CTranslate2 has too."""
    said, before = {**generation.OURS, **package.facts.get("decoding", {})}, package.subwords[1].marks.before
    options = {"beam_size": said["beam"], "length_penalty": said["length_penalty"]}
    names = {
        "no_repeat_ngram_size": "no_repeat",
        "min_decoding_length": "min_length",
        "max_decoding_length": "max_length",
    }
    options |= {theirs: said[ours] for theirs, ours in names.items() if said[ours]}
    if before and said["force_begin"]:
        options["target_prefix"] = [package.subwords[1].pieces(before)]
    return ", ".join(f"{name}={value!r}" for name, value in options.items())
