"""CTranslate2. Its own compute types: float32, int8, float16, int8_float16."""

import json
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import torch

from bench.rows import FIRST, PAD, UNKNOWN, TranslateRow


def build(folder: Path, device: str, how: str) -> Callable[[list[list[int]], TranslateRow], list[list[int]]]:
    """What translates sources as a row says."""
    path = folder / "ctranslate2"
    model = ctranslate2.Translator(
        str(path), device=device, compute_type=how, inter_threads=1, intra_threads=torch.get_num_threads()
    )
    names = json.loads((path / "shared_vocabulary.json").read_text("utf-8"))
    ids = {name: i for i, name in enumerate(names)}
    never = [[names[i]] for i in (PAD, UNKNOWN, FIRST)]

    def translate(sources: list[list[int]], row: TranslateRow) -> list[list[int]]:
        found = model.translate_batch(
            [[names[i] for i in own] for own in sources], beam_size=row.beam, min_decoding_length=row.target,
            max_decoding_length=row.target, suppress_sequences=never,
        )  # fmt: skip
        return [[ids[name] for name in own.hypotheses[0]] for own in found]

    return translate
