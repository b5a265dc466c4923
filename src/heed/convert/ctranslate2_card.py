"""README.md for CTranslate2 folders: how to run them."""

import torch

from heed.convert import multilingual
from heed.convert.model_card import decoding_settings, origin, target_tags, title
from heed.models.encoder import Encoder
from heed.models.encoder_heads import FirstToken, PooledText
from heed.models.package import Package
from heed.vocabularies.m2m100 import MODEL
from heed.vocabularies.vocabulary import Pair, Vocabulary

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
TEXT_GENERATOR = """\
import ctranslate2, tokenizers

folder = "."  # the folder of this file
vocabulary = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
model = ctranslate2.Generator(folder)

pieces = ["START", *vocabulary.encode("A text.", add_special_tokens=False).tokens]
found = model.generate_batch([pieces], max_length=100, include_prompt_in_result=False)
print("A text." + vocabulary.decode(found[0].sequences_ids[0]))
"""
ENCODER = """\
import ctranslate2, numpyMORE, tokenizers

folder = "."  # the folder of this file
vocabulary = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
model = ctranslate2.Encoder(folder)

text = vocabulary.encode("A text.")  # a pair of texts: encode("A text.", "Another.")
found = model.forward_batch([text.ids], token_type_ids=[text.type_ids])
LAST"""
STATES = "print(numpy.array(found.last_hidden_state))  # of each token"
HEAD_WEIGHTS = 'head = safetensors.numpy.load_file(f"{folder}/head.safetensors")\n'
POOLED = "vector = numpy.array(found.pooler_output)\n"
FIRST_TOKEN = """\
first = numpy.array(found.last_hidden_state)[:, 0]
vector = numpy.tanh(first @ head["PART.dense.weight"].T + head["PART.dense.bias"])
"""
LOGITS = 'print(vector @ head["PART.out.weight"].T + head["PART.out.bias"])'


def write(package: Package, quantization: str | None) -> str:
    """How to run a CTranslate2 folder."""
    if package.task == "language":
        return _text_generator(package, quantization)
    if isinstance(package.model, Encoder):
        return _encoder(package, quantization)
    tokenizer = hasattr(package.vocabularies[0], "tokenizer")
    pair = multilingual.example(package.vocabularies, package.facts.get("languages") or {})
    code = (TOKENIZER if tokenizer else PIECES).replace("OPTIONS", _options(package, pair or package.vocabularies))
    added = "CTranslate2 adds the special tokens of the source itself."
    if pair is not None:
        before, after = _around(pair[0])
        code = code.replace("[pieces]", f"[{before!r} + pieces + {after!r}]").replace(
            "hypotheses[0]", "hypotheses[0][1:]"
        )
        code = code.replace("source.spm", MODEL).replace("target.spm", MODEL)
        added = "The languages of the source and of the translation are given with each text."
    return f"""# {title(package)}, for CTranslate2

Written by heed, with weights in {quantization or "float32"}. `pip install ctranslate2 {"tokenizers" if tokenizer else "sentencepiece"}`, and:

```python
{code}```

{added} It divides the log probability of n tokens by n^length_penalty.
{target_tags(package)}{origin(package.facts)}"""


def _text_generator(package: Package, quantization: str | None) -> str:
    """How to run a language model in a CTranslate2 folder."""
    vocabulary = package.processors["text"]
    start = vocabulary.tokenizer.id_to_token(vocabulary.special.last)
    return f"""# {title(package)}, for CTranslate2

Written by heed, with weights in {quantization or "float32"}. `pip install ctranslate2 tokenizers`, and:

```python
{TEXT_GENERATOR.replace("START", start)}```

Every text follows `{start}`. Decoding is greedy and stops at that token; use `sampling_topk` and `sampling_temperature` of `generate_batch` to sample instead.
{origin(package.facts)}"""


def _encoder(package: Package, quantization: str | None) -> str:
    """How to run an encoder in a CTranslate2 folder; its head is computed separately."""
    model, last, more = package.model, STATES, ""
    part = next((name for name in ("text", "choice") if name in model.head), None)
    own = model.head[part] if part else None
    if isinstance(own, PooledText) or (isinstance(own, FirstToken) and own.activation is torch.tanh):
        vector = POOLED if isinstance(own, PooledText) else FIRST_TOKEN
        last, more = (HEAD_WEIGHTS + vector + LOGITS).replace("PART", part), ", safetensors.numpy"
    code = ENCODER.replace("MORE", more).replace("LAST", f"{last}\n")
    head = (
        "\n`head.safetensors` contains the weights of the head, which CTranslate2 does not support.\n"
        if model.head
        else ""
    )
    packages = f"ctranslate2 numpy{' safetensors' if more else ''} tokenizers"
    return f"""# {title(package)}, for CTranslate2

Written by heed, with weights in {quantization or "float32"}. `pip install {packages}`, and:

```python
{code}```
{head}{origin(package.facts)}"""


def _around(source: Vocabulary) -> tuple[list[str], list[str]]:
    """The tokens before and after the pieces of a source that is given with its special tokens."""
    [ids] = source.encode([""])
    return source.pieces(source.special.before), source.pieces([*ids, source.special.last])


def _options(package: Package, pair: Pair) -> str:
    """The search settings that CTranslate2 supports."""
    decoding, target = decoding_settings(package), pair[1]
    options = {"beam_size": decoding["beam"], "length_penalty": decoding["length_penalty"]}
    names = {
        "no_repeat_ngram_size": "no_repeat", "min_decoding_length": "min_length", "max_decoding_length": "max_length",
    }  # fmt: skip
    options |= {theirs: decoding[ours] for theirs, ours in names.items() if decoding[ours]}
    if target.special.before and decoding["force_begin"]:
        options["target_prefix"] = [target.pieces(target.special.before)]
    return ", ".join(f"{name}={value!r}" for name, value in options.items())
