"""Small translators trained by the lab in seconds, with Heed's own model, vocabulary, batches, loss and training
loop.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count

import torch
from torch import nn

from heed.data.batching import Batch, collate
from heed.decoding.sample import stepwise_search
from heed.models.transformer import Transformer, TransformerConfig
from heed.training.loop import train
from heed.training.loss import Loss, smoothed_cross_entropy
from heed.training.schedule import cosine
from heed.vocabularies.sentencepiece import SPECIAL_PAIR, SubwordsConfig
from heed.vocabularies.words import Words, learn

Pairs = Sequence[tuple[str, str]]
SIZES = {"dim": 64, "heads": 4, "hidden": 128, "encoder_layers": 1, "decoder_layers": 1, "max_length": 12}
WORDS = SubwordsConfig(kind="words", size=None, least=1, cut="punctuation", lower=True)
RATE, WARMUP, ROWS = 0.004, 30, 64  # the learning rate at its peak, the steps to it, and the sentences of a batch


class SmallTranslator:
    """A small Transformer over whole words, and its two vocabularies."""

    def __init__(self, pairs: Pairs, positions: str, seed: int):
        self.source, self.target = (learn([pair[side] for pair in pairs], WORDS) for side in (0, 1))
        torch.manual_seed(seed)
        own = {"source_vocab_size": len(self.source), "tied": "target", "norm": "pre", "dropout": 0.0}
        self.model = Transformer(TransformerConfig(len(self.target), **own, **SIZES, positions=positions))

    @torch.inference_mode()
    def translate(self, texts: Sequence[str]) -> list[str]:
        """Greedy decoding of all texts at once."""
        batch = collate(self.source.encode(texts), [[] for _ in texts])
        special, model = SPECIAL_PAIR[1], self.model.eval()
        longest = torch.full((len(texts),), SIZES["max_length"] - 1)
        state = model.start(batch.source, batch.valid)
        found = stepwise_search(model, state, longest, first=special.first, last=special.last)
        return [self.target.decode(own[0].tokens) for own in found]


def train_translator(pairs: Pairs, positions: str, steps: int, seed: int) -> SmallTranslator:
    """Train a small translator; the same seed gives the same weights and batches for all kinds of positions."""
    made = SmallTranslator(pairs, positions, seed)
    optimizer = torch.optim.Adam(made.model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    batches = _batches(made.source, made.target, pairs, seed)
    schedule = cosine(RATE, min(WARMUP, steps), steps)
    with _one_thread():
        train(made.model, batches, _loss, optimizer, schedule, steps=range(1, steps + 1), clip=1.0, seed=seed)
    return made


@contextmanager
def _one_thread() -> Iterator[None]:
    """A single thread: matrices this small gain nothing from a second one, and on a busy machine each waits for the
    other.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _batches(source: Words, target: Words, pairs: Pairs, seed: int) -> Iterator[tuple[int, Batch]]:
    """Sentences in random order, epoch after epoch."""
    sides = [words.encode([pair[side] for pair in pairs]) for side, words in enumerate((source, target))]
    for epoch in count():
        order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch)).tolist()
        for start in range(0, len(order), ROWS):
            rows = order[start : start + ROWS]
            yield start, collate(*([side[row] for row in rows] for side in sides))


def _loss(model: nn.Module, batch: Batch) -> Loss:
    states = model.decode(batch.target, model.encode(batch.source, batch.valid), batch.valid)
    logits = model.project(states.flatten(0, 1).index_select(0, batch.positions))
    return smoothed_cross_entropy(logits, batch.expected, 0.0)[0]
