"""Word vectors from a text: skip-gram with negative sampling (Mikolov et al., 2013), GloVe (Pennington et al., 2014), fastText (Bojanowski et al., 2017).

Each has its objective in a few lines, and all are minimized by AdaGrad, like GloVe: in a sparse step only the rows of
the words in a batch change, rare ones by more.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32, Float64, Int
from torch import Tensor, nn

from heed.data.vectors.word_text import CHUNK, Counts, Row, WordText, cooccurrences, index_ngrams, skipgram_pairs
from heed.training.word_vectors_config import WordVectorsConfig

Tell = Callable[[float], None]  # how many epochs are done


class Trained(NamedTuple):
    """The vectors of all words; of GloVe also those of contexts and both biases; of fastText also n-grams and their vectors."""

    matrix: Float32[np.ndarray, "words dim"]
    losses: list[float]  # the mean of each epoch
    contexts: Float32[np.ndarray, "words dim"] | None = None
    biases: Float32[np.ndarray, "2 words"] | None = None
    ngrams: list[str] | None = None
    ngram_matrix: Float32[np.ndarray, "ngrams dim"] | None = None


def negative_sampling_loss(
    centre: Float[Tensor, "b dim"], context: Float[Tensor, "b dim"], noise: Float[Tensor, "b k dim"]
) -> Float[Tensor, ""]:
    """-log σ(u_o·v_c) - Σ_k log σ(-u_k·v_c), summed over the pairs: the context is likely, the sampled words are
    not.
    """
    likely = (centre * context).sum(-1)
    unlikely = (noise * centre[:, None]).sum(-1)  # quicker than many small matrix products
    return -F.logsigmoid(likely).sum() - F.logsigmoid(-unlikely).sum()


def glove_loss(
    product: Float[Tensor, " b"], biases: Float[Tensor, " b"], count: Float[Tensor, " b"], cap: float
) -> Float[Tensor, ""]:
    """Σ f(X_ij) (w_i·w̃_j + b_i + b̃_j - log X_ij)², where f(X) = min(1, X / cap)^¾."""
    weight = (count / cap).clamp(max=1) ** 0.75
    return (weight * (product + biases - count.log()).square()).sum()


class Skipgram(nn.Module):
    """A vector for each word as a centre, and one as a context."""

    def __init__(self, size: int, dim: int):
        super().__init__()
        self.centres, self.contexts = (nn.Embedding(size, dim, sparse=True) for _ in range(2))
        nn.init.uniform_(self.centres.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.contexts.weight)

    def vectors(self, words: Int[Tensor, " b"]) -> Float[Tensor, "b dim"]:
        return self.centres(words)


class FastText(nn.Module):
    """The vector of a word is the mean of its own and of those of its n-grams."""

    def __init__(self, size: int, dim: int, rows: list[Row], ngram_count: int):
        super().__init__()
        self.parts = nn.EmbeddingBag(size + ngram_count, dim, mode="mean", sparse=True)
        self.contexts = nn.Embedding(size, dim, sparse=True)
        nn.init.uniform_(self.parts.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.contexts.weight)
        bags = [np.concatenate([[word], size + row]) for word, row in enumerate(rows)]
        self.bags, self.lengths = torch.from_numpy(np.concatenate(bags)), torch.tensor([len(bag) for bag in bags])
        self.starts = self.lengths.cumsum(0) - self.lengths

    def vectors(self, words: Int[Tensor, " b"]) -> Float[Tensor, "b dim"]:
        words, back = words.unique(return_inverse=True)  # a batch has many words more than once
        lengths = self.lengths[words]
        offsets = lengths.cumsum(0) - lengths
        within = torch.arange(int(lengths.sum())) - offsets.repeat_interleave(lengths)
        return self.parts(self.bags[self.starts[words].repeat_interleave(lengths) + within], offsets)[back]


class GloVe(nn.Module):
    """Two vectors and two biases for each word: as the word, and as the context."""

    def __init__(self, size: int, dim: int):
        super().__init__()
        self.centres, self.contexts = (nn.Embedding(size, dim, sparse=True) for _ in range(2))
        self.centre_bias, self.context_bias = (nn.Embedding(size, 1, sparse=True) for _ in range(2))
        for part in (self.centres, self.contexts, self.centre_bias, self.context_bias):
            nn.init.uniform_(part.weight, -0.5 / dim, 0.5 / dim)

    def loss(self, words: Tensor, contexts: Tensor, count: Tensor, cap: float) -> Float[Tensor, ""]:
        product = (self.centres(words) * self.contexts(contexts)).sum(-1)
        return glove_loss(product, (self.centre_bias(words) + self.context_bias(contexts))[:, 0], count, cap)


def train_vectors(text: WordText, config: WordVectorsConfig, tell: Tell = lambda epochs: None) -> Trained:
    """Train on the CPU; the same text, settings and threads give the same numbers."""
    if len(text.words) < 2:
        raise ValueError(
            f"the text has only one word that is frequent enough, {text.words[0]!r}: vectors need at least two"
        )
    if not (text.lines[1:] == text.lines[:-1]).any():
        raise ValueError("no line of the text has two words that are frequent enough, so no word has a context")
    with torch.random.fork_rng(devices=[]), torch.sparse.check_sparse_tensor_invariants(False):  # else torch warns
        torch.manual_seed(config.seed)
        return (_train_glove if config.method == "glove" else _train_skipgram)(text, config, tell)


def noise_shares(counts: Counts) -> Float64[np.ndarray, " words"]:
    """The negative sampling distribution: counts to the power of ¾."""
    shares = counts**0.75
    return shares / shares.sum()


def keep_shares(counts: Counts, subsample: float) -> Float64[np.ndarray, " words"]:
    """The probability of keeping a running word: √(subsample / its frequency), at most 1."""
    if not subsample:
        return np.ones(len(counts))
    return np.minimum(1.0, np.sqrt(subsample / (counts / counts.sum())))


def _train_skipgram(text: WordText, c: WordVectorsConfig, tell: Tell) -> Trained:
    size, rng = len(text.words), np.random.default_rng(c.seed)
    grams, rows = index_ngrams(text.words, c.shortest, c.longest) if c.method == "fasttext" else (None, None)
    model = Skipgram(size, c.dim) if grams is None else FastText(size, c.dim, rows, len(grams))
    drawn_until, keep = np.cumsum(noise_shares(text.counts)), keep_shares(text.counts, c.subsample)

    def epoch() -> Iterator[tuple[Tensor, int, float]]:
        chunks = len(range(0, len(text.ids), CHUNK))
        for centres, contexts in skipgram_pairs(text, c.window, keep, rng):
            for start in range(0, len(centres), c.batch):
                part = slice(start, start + c.batch)
                draws = np.searchsorted(drawn_until, rng.random((len(centres[part]), c.negatives)) * drawn_until[-1])
                words, near, noise = map(torch.from_numpy, (centres[part], contexts[part], draws))
                loss = negative_sampling_loss(model.vectors(words), model.contexts(near), model.contexts(noise))
                yield loss, len(words), len(words) / max(1, len(centres)) / chunks

    losses = _minimize(model, epoch, c, tell)
    with torch.no_grad():
        matrix = model.vectors(torch.arange(size)).numpy()
        ngram_matrix = None if grams is None else model.parts.weight[size:].numpy()
    return Trained(matrix, losses, ngrams=grams, ngram_matrix=ngram_matrix)


def _train_glove(text: WordText, c: WordVectorsConfig, tell: Tell) -> Trained:
    rng, model = np.random.default_rng(c.seed), GloVe(len(text.words), c.dim)
    centres, contexts, counts = map(torch.from_numpy, cooccurrences(text, c.window, by_distance=True))
    counts = counts.float()

    def epoch() -> Iterator[tuple[Tensor, int, float]]:
        for part in torch.from_numpy(rng.permutation(len(counts))).split(c.batch):
            yield model.loss(centres[part], contexts[part], counts[part], c.cap), len(part), len(part) / len(counts)

    losses = _minimize(model, epoch, c, tell)
    matrices = [part.weight.detach() for part in (model.centres, model.contexts)]
    biases = torch.stack([part.weight.detach()[:, 0] for part in (model.centre_bias, model.context_bias)])
    return Trained(sum(matrices).numpy(), losses, matrices[1].numpy(), biases.numpy())


def _minimize(
    model: nn.Module, epoch: Callable[[], Iterator[tuple[Tensor, int, float]]], c: WordVectorsConfig, tell: Tell
) -> list[float]:
    """AdaGrad over the batches of all epochs; returns the mean loss per pair of each epoch."""
    optimizer, losses, done = torch.optim.Adagrad(model.parameters(), lr=c.rate), [], 0.0
    for _ in range(c.epochs):
        total, pairs = 0.0, 0
        for loss, count, share in epoch():
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, pairs, done = total + loss.item(), pairs + count, done + share
            tell(done)
        losses.append(total / max(1, pairs))
    return losses
