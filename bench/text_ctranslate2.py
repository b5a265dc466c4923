"""CTranslate2's own generator on the CPU, with the weights of heed's model; `how` is a compute type of its own."""

import os

import torch

from bench import text
from bench.rows import TextRow
from heed.products.ctranslate2_text import TextEngine


def build(row: TextRow, device: str, how: str) -> text.Generating:
    os.environ["HEED_CACHE"] = ""  # drawn weights are not worth keeping
    vocabulary = text.vocabulary(row.shape.vocab)
    engine = TextEngine(text.model(row).eval(), vocabulary, how)
    generator, names = engine.open(1, torch.get_num_threads()), engine.names
    given = [[names[i] for i in own] for own in text.prompts(row)]
    options = {"sampling_topk": text.TOP_K} if row.sampled else {"beam_size": 1}

    def generate() -> list[list[int]]:
        found = generator.generate_batch(
            given, max_length=row.length, min_length=row.length, include_prompt_in_result=False, end_token=[len(names)],
            suppress_sequences=[[names[i]] for i in vocabulary.special.never], **options,
        )  # fmt: skip
        return [own.sequences_ids[0] for own in found]

    return text.Generating(generate)
