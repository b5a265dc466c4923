"""MarianMTModel of Hugging Face's transformers in training."""

from collections.abc import Callable

from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from bench import plain
from bench.rows import FIRST, LAST, PAD, Shape, TrainRow


def build(row: TrainRow, device: str, how: str) -> Callable[[int], int]:
    config = configured(row.shape, max(256, row.length))
    return plain.trainer(MarianMTModel(config), objective, row, device, how)


def configured(s: Shape, longest: int) -> MarianConfig:
    return MarianConfig(
        vocab_size=s.vocab, d_model=s.dim, encoder_layers=s.layers, decoder_layers=s.layers, encoder_attention_heads=s.heads,
        decoder_attention_heads=s.heads, encoder_ffn_dim=s.hidden, decoder_ffn_dim=s.hidden, dropout=s.dropout,
        attention_dropout=0.0, activation_dropout=0.0, activation_function="relu", scale_embedding=True,
        max_position_embeddings=longest, pad_token_id=PAD, eos_token_id=LAST, decoder_start_token_id=FIRST,
        forced_eos_token_id=None,
    )  # fmt: skip


def objective(model: nn.Module, sources: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
    mask = plain.valid(sources).long()
    found = model(input_ids=sources, attention_mask=mask, decoder_input_ids=inputs, use_cache=False)
    return plain.loss(found.logits, labels)
