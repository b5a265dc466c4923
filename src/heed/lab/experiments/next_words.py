"""The next word of a sentence by n-grams, by a recurrent network and by a Transformer, all learned from one small text."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from heed.lab.small_models import without_onednn
from heed.models.gpt2 import GPT2, GPT2Config
from heed.models.rnn_lm import RNNLanguageModel, RNNLanguageModelConfig
from heed.training import schedule
from heed.training.config import TrainingConfig, make_optimizer
from heed.training.loop import train
from heed.training.loss import Loss, smoothed_cross_entropy

END = 0  # begins and ends every sentence
ADDED = 0.01  # to every count of an n-gram model
RATES = {"RNN": 1e-2, "Transformer": 4e-3}  # each learns best with its own, and with its own rows a step
ROWS = {"RNN": 32, "Transformer": 64}
Sentence = Sequence[str]


class Ngrams:
    """P(w | context) = (count(context w) + 0.01) / (count(context) + 0.01 |V|), for the longest context that the text has.

    A context has at most `order` - 1 words; where it was never seen, the model backs off to a shorter one.
    """

    def __init__(self, sentences: Sequence[Sentence], order: int):
        self.order, self.words = order, sorted({word for sentence in sentences for word in sentence} | {"</s>"})
        self.counts: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for sentence in sentences:
            padded = ["<s>"] * (order - 1) + [*sentence, "</s>"]
            for at in range(order - 1, len(padded)):
                for length in range(order):
                    self.counts[tuple(padded[at - length : at])][padded[at]] += 1

    def next_words(self, sentence: Sentence) -> dict[str, float]:
        padded = tuple(["<s>"] * (self.order - 1) + list(sentence))
        contexts = (padded[len(padded) - length :] for length in range(self.order - 1, -1, -1))
        counts = next(self.counts[context] for context in contexts if context in self.counts)
        total = counts.total() + ADDED * len(self.words)
        return {word: (counts[word] + ADDED) / total for word in self.words}


class Neural:
    """A language model of heed.models, trained by heed.training on sentences."""

    def __init__(self, model: nn.Module, words: Sequence[str]):
        self.model, self.words = model, words
        self.ids = {word: i for i, word in enumerate(words)}

    @without_onednn()
    def learn(self, sentences: Sequence[Sentence], steps: int, seed: int, rows: int, rate: float) -> float:
        """Train on random sentences; returns the mean loss of the last tenth of the steps."""
        losses: list[float] = []
        config, past = TrainingConfig(rate=rate, warmup=steps // 10, steps=steps), steps - max(1, steps // 10)
        optimizer = make_optimizer(config, self.model.parameters())
        train(
            self.model, self._batches(sentences, rows, seed), self._loss, optimizer,
            schedule.cosine(rate, max(1, config.warmup), steps), steps=range(1, steps + 1), clip=1.0, seed=seed,
            after_step=[lambda step: losses.append(step.nll.item() / step.count)],
        )  # fmt: skip
        return sum(losses[past:]) / len(losses[past:])

    def _batches(self, sentences: Sequence[Sentence], rows: int, seed: int) -> Iterator[tuple[None, Tensor]]:
        """Rows of ids from END to END, and -1 after that."""
        generator = torch.Generator().manual_seed(seed)
        encoded = [torch.tensor([END, *(self.ids[word] for word in sentence), END]) for sentence in sentences]
        while True:
            drawn = torch.randint(len(encoded), (rows,), generator=generator).tolist()
            yield None, nn.utils.rnn.pad_sequence([encoded[i] for i in drawn], batch_first=True, padding_value=-1)

    def _loss(self, model: nn.Module, batch: Tensor) -> Loss:
        tokens, expected = batch[:, :-1].clamp(min=0), batch[:, 1:]
        known = expected >= 0
        logits = model.project(model.hidden_states(tokens)[known])
        return smoothed_cross_entropy(logits, expected[known], 0.0)[0]

    @torch.no_grad()
    def next_words(self, sentence: Sentence) -> dict[str, float]:
        tokens = torch.tensor([[END, *(self.ids[word] for word in sentence)]])
        self.model.eval()
        logits = self.model.project(self.model.hidden_states(tokens)[0, -1])
        return dict(zip(self.words, logits.softmax(-1).tolist(), strict=True))


def learn(name: str, sentences: Sequence[Sentence], count: int, dim: int, seed: int) -> Neural:
    """One of the models of `build`, trained on `count` sentences drawn from these."""
    model = build(name, sorted({word for sentence in sentences for word in sentence}), dim, seed)
    model.learn(sentences, max(10, count // ROWS[name]), seed, ROWS[name], RATES[name])
    return model


def build(name: str, vocabulary: Sequence[str], dim: int, seed: int) -> Neural:
    """The recurrent network of the lecture notes, or a small GPT-2, for these words."""
    torch.manual_seed(seed)
    words, size = ["</s>", *vocabulary], len(vocabulary) + 1
    if name == "RNN":
        config = RNNLanguageModelConfig(size, cell="rnn", dim=dim, hidden=dim, layers=1, tied="none", dropout=0.0)
        return Neural(RNNLanguageModel(config), words)
    config = GPT2Config(
        size, dim=dim, heads=4, hidden=4 * dim, layers=2, max_length=32, dropout=0.0, attention_dropout=0.0
    )
    return Neural(GPT2(config), words)
