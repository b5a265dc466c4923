"""Models with their vocabularies: shared by search, scoring and tracing."""

import copy
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from heed.data.batching import collate, pad
from heed.decoding.beam import Pick, SearchStep
from heed.decoding.config import DecodingConfig, forced_start, max_output_length
from heed.decoding.ensemble import Ensemble
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.limits import Rule
from heed.decoding.steps import State
from heed.models.outputs import check_outputs
from heed.models.package import Package
from heed.products.search import search
from heed.products.translator.faults import Tables, strip
from heed.vocabularies.vocabulary import Pair, SpecialTokens

Sentences = list[list[int]]  # token ids without special tokens
IdPair = tuple[list[int], list[int]]  # a source and its target
Hypotheses = list[list[Hypothesis]]  # for each source, best first
# the sources of a batch, how long each translation may be, and whether terms are required -> rules
MakeRules = Callable[[Sentences, Tensor, bool], list[Rule]]


class ModelBundle:
    """Models with a common pair of vocabularies; several search as an ensemble, and the first one is traced."""

    def __init__(self, models: Sequence[nn.Module], vocabularies: Pair, shortlist: str | None = None):
        self.models, self.vocabularies, self.shortlist = list(models), vocabularies, shortlist
        self.model = self.models[0]
        self.search_model = self.model if len(self.models) == 1 else Ensemble(self.models)
        self.source, self.target = vocabularies
        self.special: tuple[SpecialTokens, SpecialTokens] = self.source.special, self.target.special
        self.max_length = min(model.config.max_length for model in self.models)  # positions, special tokens included
        self.max_target = self.max_length - 1  # the end token needs a position too
        self.make_rules: MakeRules | None = None  # more rules, which depend on the sources
        self.undirected: Callable[[], Any] | None = None  # raises, where the models need to know a direction first

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @cached_property
    def tables(self) -> Tables:
        """What fault detection needs to know."""
        return Tables(self.vocabularies, self.model.config.vocab_size)

    @torch.inference_mode()
    def start(self, sources: Sentences) -> State:
        """The state of a search after reading the sources."""
        tokens, valid = (torch.from_numpy(part).to(self.device) for part in pad(sources, self.special[0]))
        return self.search_model.start(tokens, valid)

    def search(
        self,
        sources: Sentences,
        config: DecodingConfig,
        *,
        prefixes: Sentences | None = None,
        rules: Sequence[Rule] = (),
        keys: Sequence[tuple] = (),
        pick: Pick | None = None,
        on_step: Callable[[SearchStep], None] | None = None,
    ) -> Hypotheses:
        """The best hypotheses for one batch of sources (`heed.products.search`)."""
        prefixes = prefixes or [[] for _ in sources]
        max_lengths = torch.tensor(self.max_lengths(sources, config, prefixes), device=self.device)
        if self.make_rules is not None:
            draws = config.nbest if config.sample else 1
            drawn = [source for source in sources for _ in range(draws)]
            rules = [*self.make_rules(drawn, max_lengths.repeat_interleave(draws), pick is not None), *rules]
        options = {"prefixes": prefixes, "rules": rules, "keys": keys, "pick": pick, "on_step": on_step}
        return search(self.search_model, self.start(sources), config, self.special[1], max_lengths, **options)

    def with_rules(self, make: MakeRules) -> "ModelBundle":
        """The same models with more search rules."""
        own = copy.copy(self)
        own.make_rules = make
        return own

    def max_lengths(self, sources: Sentences, config: DecodingConfig, prefixes: Sentences) -> list[int]:
        """The maximum number of tokens per translation; there is always room for its prefix and the end."""
        sizes = list(map(len, sources))
        limits = {size: max_output_length(config, size + 1, self.max_target) for size in set(sizes)}
        start = len(forced_start(config, self.special[1]))
        return [max(limits[size], start + len(prefix) + 1) for size, prefix in zip(sizes, prefixes, strict=True)]

    def encode_pairs(self, sources: Sequence[str], targets: Sequence[str]) -> list[IdPair]:
        """Texts with given translations as ids; those too long for the models are refused."""
        if self.undirected:
            self.undirected()
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources):,} sources and {len(targets):,} targets: there must be as many of both")
        ids = self.source.encode(sources), self.target.encode(targets)
        self.check_lengths("source", ids[0], self.special[0])
        self.check_lengths("target", ids[1], self.special[1])
        return list(zip(*ids, strict=True))

    def check_lengths(self, name: str, sentences: Sentences, special: SpecialTokens) -> None:
        allowed = self.max_length - len(special.before) - 1
        for number, ids in enumerate(sentences, 1):
            if len(ids) > allowed:
                raise ValueError(f"{name} {number} has {len(ids)} subwords; the model allows {allowed}")

    @torch.inference_mode()
    def token_logprobs(self, pairs: Sequence[IdPair]) -> list[list[float]]:
        """The log probability of each token of given targets, including special tokens."""
        batch = collate([s for s, _ in pairs], [t for _, t in pairs], self.special).to(self.device)
        each = [model(batch.source, batch.target, batch.valid).log_softmax(dim=-1) for model in self.models]
        logp = (torch.stack(each).logsumexp(dim=0) - math.log(len(each))).flatten(0, 1)[batch.positions]
        scores = logp.gather(1, batch.expected[:, None])[:, 0].cpu()
        check_outputs(scores, infinite=True)
        return [part.tolist() for part in scores.split([len(self.special[1].before) + len(t) + 1 for _, t in pairs])]

    def strip(self, ids: list[int]) -> tuple[list[int], tuple[SpecialTokens, SpecialTokens]]:
        """A translation without its special tokens, and these tokens: it may lack the usual beginning."""
        text, target = strip(ids, self.special[1])
        return text, (self.special[0], target)

    def source_pieces(self, ids: list[int]) -> list[str]:
        """A source as the model reads it, including special tokens."""
        return self.source.pieces([*self.special[0].before, *ids, self.special[0].last])


def check_ensemble(packages: Sequence[Package], names: Sequence[str]) -> None:
    """Refuse models that do not share their vocabularies."""
    first = packages[0]
    for name, package in zip(names[1:], packages[1:], strict=True):
        if [part.key() for part in package.vocabularies] != [part.key() for part in first.vocabularies]:
            raise ValueError(
                f"{names[0]} and {name} have different subwords: the models of an ensemble must have the same"
            )
    sizes = [package.model.config.vocab_size for package in packages]
    if len(set(sizes)) > 1:
        each = f"{', '.join(names)} have {', '.join(map(str, sizes))} subword embeddings"
        raise ValueError(f"{each}: the models of an ensemble must have the same")
