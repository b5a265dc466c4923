"""GPT2LMHeadModel of Hugging Face's transformers: trained with its own loss, and its `generate`."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel

from bench import text
from bench.rows import TextRow
from heed.models.gpt2 import GPT2


def build(row: TextRow, device: str, how: str) -> Callable[[int], int]:
    """`how` is "compiled" or "eager" to train; to generate, "dynamic" is its default cache, "static" one that it compiles."""
    model = made(row)
    if row.training:
        return text.trainer(model, _objective, row, device, how)
    return _generating(model, row, device, how)


def made(row: TextRow) -> GPT2LMHeadModel:
    """With the weights of heed's model."""
    s = row.shape
    config = GPT2Config(
        vocab_size=s.vocab, n_positions=max(1024, row.length), n_embd=s.dim, n_layer=s.layers, n_head=s.heads, n_inner=s.hidden,
        resid_pdrop=s.dropout, embd_pdrop=s.dropout, attn_pdrop=s.dropout, attn_implementation="sdpa",
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    copy_weights(text.model(row), model)
    return model


@torch.no_grad()
def copy_weights(ours: GPT2, theirs: GPT2LMHeadModel) -> None:
    body = theirs.transformer
    pairs = [(body.wte, ours.tokens.weight, None), (body.wpe, ours.positions.places.weight, None)]
    for own, block in zip(ours.stack.layers, body.h, strict=True):
        a, m = own.attention.body, own.mlp.body
        fused = [torch.cat([getattr(part, name) for part in (a.q, a.k, a.v)]) for name in ("weight", "bias")]
        pairs += [(block.attn.c_attn, fused[0].T, fused[1]), (block.attn.c_proj, a.out.weight.T, a.out.bias)]
        pairs += [(block.mlp.c_fc, m.up.weight.T, m.up.bias), (block.mlp.c_proj, m.down.weight.T, m.down.bias)]
        pairs += [(block.ln_1, own.attention.norm.weight, own.attention.norm.bias)]
        pairs += [(block.ln_2, own.mlp.norm.weight, own.mlp.norm.bias)]
    pairs.append((body.ln_f, ours.stack.norm.weight, ours.stack.norm.bias))
    for part, weight, bias in pairs:
        part.weight.copy_(weight)
        if bias is not None:
            part.bias.copy_(bias)
    theirs.tie_weights()


def _objective(model: nn.Module, tokens: Tensor, expected: Tensor) -> Tensor:
    return model(input_ids=tokens, labels=expected, shift_labels=expected, use_cache=False).loss


def _generating(model: GPT2LMHeadModel, row: TextRow, device: str, how: str) -> text.Generating:
    model = model.to(device, torch.bfloat16 if device == "cuda" else torch.float32).eval()
    options = {"do_sample": True, "top_k": text.TOP_K} if row.sampled else {"do_sample": False}
    config = GenerationConfig(
        min_new_tokens=row.length, max_new_tokens=row.length, pad_token_id=0, bos_token_id=None, eos_token_id=None,
        suppress_tokens=list(text.vocabulary(4).special.never) or None, **options,
        **({"cache_implementation": "static"} if how == "static" else {}),
    )  # fmt: skip
    model.generation_config = config
    tokens = torch.tensor(text.prompts(row), device=device)

    @torch.inference_mode()
    def generate() -> list[list[int]]:
        return model.generate(tokens, attention_mask=torch.ones_like(tokens))[:, row.prompt :].tolist()

    return text.Generating(generate)
