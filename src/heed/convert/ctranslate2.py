"""Export to CTranslate2, which translates, generates and encodes fast without torch. Write-only."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.config import parse_json
from heed.convert import ctranslate2_import
from heed.convert.ctranslate2_names import names
from heed.files import atomic_folder, write_text
from heed.models.decoder import Decoder
from heed.models.encoder import Encoder
from heed.models.encoder_decoder import EncoderDecoder
from heed.models.folder import CONFIG, write_weights
from heed.models.marian import Marian
from heed.models.package import Package
from heed.nn.attention import Attention
from heed.nn.capabilities import declares
from heed.nn.transformer import Layer, PreNorm, Stack, gelu_tanh
from heed.vocabularies.multilingual import languages_of
from heed.vocabularies.vocabulary import Vocabulary

QUANTIZATIONS = ("int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16", "float32")
ACTIVATIONS = {F.relu: "RELU", F.gelu: "GELU", F.silu: "SWISH", gelu_tanh: "GELUTanh"}
HEAD = "head.safetensors"  # of an encoder: CTranslate2 has no place for heads
BANNED = -1e4  # the output bias of a token that must not be generated; float16 can still hold it


def write(package: Package, folder: Path, quantization: str | None = None) -> None:
    """Write a folder for ctranslate2.Translator, Generator or Encoder, with tokenizer files and a README."""
    from heed.convert import ctranslate2_card, tokenizers

    if quantization not in (None, *QUANTIZATIONS):
        raise ValueError(f"quantization is {quantization!r}; CTranslate2 supports {', '.join(QUANTIZATIONS)}")
    if refusal := _refusal(package.model):
        raise ValueError(refusal)
    _specs()  # fails before there is a folder
    with atomic_folder(folder) as part:
        write_model(package, part, quantization)
        tokenizers.write(package.vocabularies, part, package.model.config.max_length)
        if tokenizer := getattr(package.vocabularies[0], "tokenizer", None):
            write_text(part / "tokenizer.json", tokenizer.to_str(pretty=True))
        if isinstance(package.model, Encoder) and package.model.head:
            write_weights(part / HEAD, package.model.head.state_dict())
        write_text(part / "README.md", ctranslate2_card.write(package, quantization))


def write_model(package: Package, folder: Path, quantization: str | None = None) -> None:
    """Write what ctranslate2 itself needs into an existing folder: weights, settings, vocabularies."""
    kinds = {Decoder: _text_spec, Encoder: _encoder_spec}
    make = next((own for kind, own in kinds.items() if isinstance(package.model, kind)), _spec)
    spec = make(package, _specs())
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(folder))
    if package.shortlist is not None:
        write_text(folder / "vmap.txt", package.shortlist)  # used by translate_batch(use_vmap=True)


def able(model: nn.Module) -> bool:
    """Whether CTranslate2 supports a model."""
    return _refusal(model) is None


def _refusal(model: nn.Module) -> str | None:
    """CTranslate2 supports Transformers that generate text, with full attention in the encoder, and such encoders
    alone.
    """
    encoder = getattr(model.config, "encoder", "attention")
    if not declares(model, "ctranslate2") or encoder != "attention":
        how = "" if encoder == "attention" else f" with encoder = {encoder!r}"
        return f"CTranslate2 cannot compute what a {type(model).__name__}{how} does: it cannot be exported"
    if not all(part.heads_fill_dim for part in model.modules() if isinstance(part, Attention)):
        return "CTranslate2 supports only head_dim = dim / heads: this model cannot be exported"
    if isinstance(model, Encoder):
        return _encoder_refusal(model)
    if getattr(model.config, "labels", 0):
        return "a classifier generates no text, which CTranslate2 needs: it cannot be exported"
    if getattr(model.config, "choices", False) or getattr(model.config, "prompt_length", 0):
        return "CTranslate2 does not support multiple-choice heads or prompts: the model cannot be exported"
    return None


def _encoder_refusal(model: Encoder) -> str | None:
    if model.widen is None and model.config.head != "causal":
        return None
    what = "embeddings narrower or wider than its layers" if model.widen is not None else "a causal head"
    return f"CTranslate2 does not support {what}, which this {type(model).__name__} has: it cannot be exported"


def is_one(folder: Path) -> bool:
    """Whether a folder is in CTranslate2's format, which heed cannot read."""
    if not ((folder / "model.bin").is_file() and (folder / CONFIG).is_file()):
        return False
    try:
        settings = parse_json((folder / CONFIG).read_text("utf-8"))
    except ValueError:
        return False
    return isinstance(settings, dict) and not settings.keys() & {"model", "model_type", "architectures"}


def _specs() -> Any:
    try:
        return ctranslate2_import.ctranslate2().specs
    except ImportError as error:
        raise ValueError("exporting to CTranslate2 needs the ctranslate2 package: pip install ctranslate2") from error


def _spec(package: Package, specs: Any) -> Any:
    model, (source, target) = package.model, package.vocabularies
    layer = model.decoder.layers[0]
    spec = specs.TransformerSpec.from_config(
        (len(model.encoder.layers), len(model.decoder.layers)),
        model.config.heads,
        pre_norm=isinstance(layer.attention, PreNorm),
        no_final_norm=model.decoder.norm is None,
        activation=specs.common_spec.Activation[ACTIVATIONS[layer.mlp.body.activation]],
        layernorm_embedding=model.norm is not None,
    )
    encoder, decoder, tokens = spec.encoder, spec.decoder, model.source_tokens or model.tokens
    positions, norm = model.source_positions or model.positions, model.source_norm or model.norm
    _fill_embeddings(encoder, encoder.embeddings[0], model, tokens, positions, norm)
    _fill_stack(encoder, model.encoder)
    _fill_embeddings(decoder, decoder.embeddings, model, model.tokens, model.positions, model.norm)
    _fill_stack(decoder, model.decoder)
    _fill_output(decoder.projection, model, target.special.never if type(model) is Marian else ())
    spec.register_source_vocabulary(names(source, tokens.num_embeddings))
    spec.register_target_vocabulary(names(target, model.tokens.num_embeddings))
    _fill_config(spec.config, target, layer.mlp.norm.eps)
    return spec


def _text_spec(package: Package, specs: Any) -> Any:
    """A decoder-only language model."""
    model, vocabulary = package.model, package.processors["text"]
    layer = model.stack.layers[0]
    spec = specs.TransformerDecoderModelSpec.from_config(
        len(model.stack.layers),
        model.config.heads,
        pre_norm=isinstance(layer.attention, PreNorm),
        no_final_norm=model.stack.norm is None,
        activation=specs.common_spec.Activation[ACTIVATIONS[layer.mlp.body.activation]],
    )
    decoder = spec.decoder
    _fill_embeddings(decoder, decoder.embeddings, model, model.tokens, model.positions, None)
    _fill_stack(decoder, model.stack)
    decoder.projection.weight = _plain(model.tokens.weight)
    if model.bias is not None:
        decoder.projection.bias = _plain(model.bias)
    tokens, special = names(vocabulary, model.tokens.num_embeddings), vocabulary.special
    spec.register_vocabulary(tokens)
    spec.config.bos_token, spec.config.eos_token = tokens[special.first], tokens[special.last]
    spec.config.unk_token = tokens[special.unknown if special.unknown >= 0 else special.last]
    spec.config.layer_norm_epsilon = layer.mlp.norm.eps
    return spec


def _encoder_spec(package: Package, specs: Any) -> Any:
    """An encoder, up to the last state of each token, with the pooler if the model has one."""
    model, vocabulary = package.model, package.processors["text"]
    layer = model.stack.layers[0]
    encoder = specs.TransformerEncoderSpec(
        len(model.stack.layers),
        model.config.heads,
        pre_norm=False,
        activation=specs.common_spec.Activation[ACTIVATIONS[layer.mlp.body.activation]],
        layernorm_embedding=True,
        num_source_embeddings=2,
        embeddings_merge=specs.common_spec.EmbeddingsMerge.ADD,
    )
    spec = specs.TransformerEncoderModelSpec(encoder, pooling_layer=model.pooler is not None)
    _fill_embeddings(encoder, encoder.embeddings[0], model, model.tokens, model.positions, model.norm)
    encoder.embeddings[1].weight = _plain(model.segments.weight)
    _fill_stack(encoder, model.stack)
    if model.pooler is not None:
        _fill_linear(spec.pooler_dense, model.pooler.dense)
    tokens = names(vocabulary, model.tokens.num_embeddings)
    spec.register_vocabulary(tokens)
    spec.config.unk_token = tokens[vocabulary.special.unknown]
    spec.config.layer_norm_epsilon = model.config.norm_eps
    return spec


def _fill_embeddings(
    spec, table_spec, model: EncoderDecoder | Decoder | Encoder, tokens: nn.Embedding, positions: nn.Module, norm
) -> None:
    table_spec.weight = _plain(tokens.weight)
    spec.scale_embeddings = float(model.scale)
    spec.position_encodings.encodings = _plain(positions(0, model.config.max_length))
    if norm is not None:
        _fill_norm(spec.layernorm_embedding, norm)


def _fill_output(spec: Any, model: EncoderDecoder, banned: Sequence[int]) -> None:
    spec.weight = _plain((model.output or model.tokens).weight)
    if model.bias is None and not banned:
        return
    bias = spec.weight.new_zeros(len(spec.weight)) if model.bias is None else _plain(model.bias)
    bias[list(banned)] = BANNED
    spec.bias = bias


def _fill_stack(spec: Any, stack: Stack) -> None:
    for layer_spec, layer in zip(spec.layer, stack.layers, strict=True):
        _fill_layer(layer_spec, layer)
    if stack.norm is not None:
        _fill_norm(spec.layer_norm, stack.norm)


def _fill_layer(spec: Any, layer: Layer) -> None:
    attention: Attention = layer.attention.body
    _fill_linear(spec.self_attention.linear[0], attention.q, attention.k, attention.v)
    _fill_linear(spec.self_attention.linear[1], attention.out)
    _fill_norm(spec.self_attention.layer_norm, layer.attention.norm)
    if layer.cross is not None:
        cross: Attention = layer.cross.body
        _fill_linear(spec.attention.linear[0], cross.q)
        _fill_linear(spec.attention.linear[1], cross.k, cross.v)
        _fill_linear(spec.attention.linear[2], cross.out)
        _fill_norm(spec.attention.layer_norm, layer.cross.norm)
    _fill_linear(spec.ffn.linear_0, layer.mlp.body.up)
    _fill_linear(spec.ffn.linear_1, layer.mlp.body.down)
    _fill_norm(spec.ffn.layer_norm, layer.mlp.norm)


def _fill_linear(spec: Any, *parts: nn.Linear) -> None:
    """Several linear layers as one, their outputs concatenated."""
    spec.weight = torch.cat([_plain(part.weight) for part in parts])
    spec.bias = torch.cat([_plain(part.bias) for part in parts])


def _fill_norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _plain(norm.weight), _plain(norm.bias)


def _fill_config(config: Any, vocabulary: Vocabulary, eps: float) -> None:
    """CTranslate2 adds the special tokens of a source itself, except those of the direction (`given_ids`)."""
    special, tokens = vocabulary.fixed_special(), names(vocabulary)
    if len(special.before) > 1:
        raise ValueError(f"a text begins with {len(special.before)} special tokens; CTranslate2 supports one")
    config.unk_token, config.eos_token = tokens[special.unknown], tokens[special.last]
    config.decoder_start_token = tokens[special.first]
    config.bos_token = tokens[special.before[0] if special.before else special.first]
    config.add_source_bos, config.add_source_eos = bool(special.before), not languages_of(vocabulary)
    config.layer_norm_epsilon = eps


def _plain(weight: Tensor) -> Tensor:
    """A copy, because CTranslate2 quantizes in place."""
    return weight.detach().to("cpu", torch.float32, copy=True)
