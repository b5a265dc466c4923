"""`generate` of Hugging Face's transformers."""

from collections.abc import Callable
from pathlib import Path

import torch
from transformers import GenerationConfig, MarianMTModel

from bench.rows import FIRST, LAST, PAD, UNKNOWN, TranslateRow


def build(folder: Path, device: str, how: str) -> Callable[[list[list[int]], TranslateRow], list[list[int]]]:
    """What translates sources as a row says; `how` is a number format, or "compiled"."""
    compiled = how == "compiled"
    dtype = torch.bfloat16 if compiled else getattr(torch, how)
    model = MarianMTModel.from_pretrained(folder / "huggingface", dtype=dtype).to(device).eval()
    more = {"cache_implementation": "static"} if compiled else {}

    @torch.inference_mode()
    def translate(sources: list[list[int]], row: TranslateRow) -> list[list[int]]:
        model.generation_config = GenerationConfig(
            num_beams=row.beam, min_new_tokens=row.target, max_new_tokens=row.target, do_sample=False,
            bad_words_ids=[[PAD], [UNKNOWN], [FIRST]], pad_token_id=PAD, eos_token_id=LAST,
            decoder_start_token_id=FIRST, **more,
        )  # fmt: skip
        tokens = torch.tensor([[*own, LAST] for own in sources], device=device)
        return model.generate(tokens, attention_mask=torch.ones_like(tokens))[:, 1:].tolist()

    return translate
