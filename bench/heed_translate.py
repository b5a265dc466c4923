"""Heed's translator, given ids: as `heed.load` makes it ("auto"), or with torch alone in a number format."""

import os
from collections.abc import Callable
from pathlib import Path

import torch

import heed
from bench.rows import TranslateRow
from heed.decoding.config import DecodingConfig


def build(folder: Path, device: str, how: str) -> Callable[[list[list[int]], TranslateRow], list[list[int]]]:
    """What translates sources as a row says."""
    os.environ["HEED_CACHE"] = str(folder / "cache")  # drawn weights are not worth keeping
    own = folder / ("heed-shortlist" if how == "shortlist" else "heed")
    translator = heed.load(own, device, "auto" if how in ("auto", "shortlist") else "torch")
    if how in ("float32", "bfloat16"):
        translator.model.to(getattr(torch, how))

    def translate(sources: list[list[int]], row: TranslateRow) -> list[list[int]]:
        # drawn weights say the same again and again, and would be searched twice
        config = DecodingConfig(beam=row.beam, min_length=row.target, max_length=row.target, avoid_loops=False)
        slots = row.batch * row.source
        found = translator.search_ids(sources, config, [[] for _ in sources], batch_tokens=slots)
        return [hypotheses[0].tokens for hypotheses in found]

    return translate
