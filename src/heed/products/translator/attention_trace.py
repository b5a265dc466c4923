"""A translator's attentions, alignments and search, step by step."""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from heed.data.batching import collate
from heed.decoding.beam import SearchStep
from heed.decoding.config import DecodingConfig
from heed.lab.attention import Candidate, Look
from heed.models.encoder_decoder import Trace
from heed.products.translator.alignment import Links, WordPooling, agreement, links
from heed.products.translator.guards import Guards
from heed.products.translator.model_bundle import IdPair
from heed.vocabularies.vocabulary import Pair, SpecialTokens

LIKELY = 8  # tokens that are shown for each step


@torch.inference_mode()
def trace_batch(model: nn.Module, pairs: Sequence[IdPair], special: tuple[SpecialTokens, SpecialTokens]) -> Trace:
    """The attentions and states of a model over a batch of pairs."""
    batch = collate([s for s, _ in pairs], [t for _, t in pairs], special).to(next(model.parameters()).device)
    return model.trace(batch.source, batch.target, batch.valid)


class PairTrace(NamedTuple):
    """One pair: attentions, (layers, heads, q, k) each, log-probabilities (t, vocab) and, of a recurrent model, the
    states of its encoder and decoder, (tokens, hidden). Attention that a model lacks has no layers.
    """

    maps: dict[str, np.ndarray]
    logp: Tensor
    states: dict[str, np.ndarray] | None


def trace_pair(model: nn.Module, pair: IdPair, special: tuple[SpecialTokens, SpecialTokens]) -> PairTrace:
    """The trace of one pair as arrays."""
    trace = trace_batch(model, [pair], special)
    with torch.inference_mode():
        logp = model.project(trace.output[0]).log_softmax(dim=-1)
    s, t = len(special[0].before) + len(pair[0]) + 1, trace.output.shape[1]
    sizes = {"encoder": (s, s), "decoder": (t, t), "cross": (t, s)}
    maps = {
        name: _array(torch.cat(layers)) if layers else np.zeros((0, 0, *sizes[name]))
        for name, layers in trace.maps.items()
    }
    return PairTrace(maps, logp, trace.states and {name: _array(states[0]) for name, states in trace.states.items()})


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.float().cpu().numpy()


class AlignmentRows(NamedTuple):
    """Where alignments are read: in a decoder layer (from 0), in the rows that produced each token, or (`after`) in
    those that take it as input, when the model knows the token (Chen et al., 2020).
    """

    layer: int
    after: bool

    def of(self, cross: Sequence[Tensor]) -> np.ndarray:
        """(b, t, s), the mean over heads, row i for target token i."""
        layer = min(self.layer, len(cross) - 1)  # a recurrent decoder attends once, however many layers it has
        weights = _array(cross[layer].mean(dim=1))
        return weights[:, 1:] if self.after else weights[:, :-1]


def align_batch(model: nn.Module, pairs: Sequence[IdPair], vocabularies: Pair, rows: AlignmentRows) -> list[Links]:
    """Word alignments of a batch of pairs."""
    cross = trace_batch(model, pairs, (vocabularies[0].special, vocabularies[1].special)).maps["cross"]
    if not cross:
        raise ValueError(
            "the model has no attention to its source (model.attention is 'off'), so it cannot align words"
        )
    return [links(table) for table in _word_tables(rows.of(cross), _poolings(pairs, vocabularies), vocabularies)]


def choose_rows(model: nn.Module, pairs: Sequence[IdPair], vocabularies: Pair) -> AlignmentRows:
    """The rows in which source and target words agree most often; this needs no gold alignments."""
    cross = trace_batch(model, pairs, (vocabularies[0].special, vocabularies[1].special)).maps["cross"]
    if not cross:
        return AlignmentRows(0, after=False)
    every = [AlignmentRows(layer, after) for layer in reversed(range(len(cross))) for after in (False, True)]
    poolings = _poolings(pairs, vocabularies)
    return max(every, key=lambda rows: np.mean([*map(agreement, _word_tables(rows.of(cross), poolings, vocabularies))]))


def _poolings(pairs: Sequence[IdPair], vocabularies: Pair) -> list[WordPooling]:
    return [WordPooling.of(vocabularies[0].pieces(source), vocabularies[1].pieces(target)) for source, target in pairs]


def _word_tables(weights: np.ndarray, poolings: Sequence[WordPooling], vocabularies: Pair) -> list[np.ndarray]:
    """(target words, source words) of each pair, without special tokens."""
    left, top = (len(vocabulary.special.before) for vocabulary in vocabularies)
    return [pooling(own[top:, left:]) for own, pooling in zip(weights, poolings, strict=True)]


def look(guards: Guards, rows: AlignmentRows, text: str, target: str | None, config: DecodingConfig, name: str) -> Look:
    """Everything about one translation, the model's own or a given one."""
    bundle = guards.bundle
    text = bundle.source.clean(text)
    source, ids = bundle.encode_pairs([text], [target or ""])[0]
    special, steps = bundle.special, []
    if target is None:
        ids, special = bundle.strip(search_one(guards, source, config, steps))
    first, last, before = special[1].first, special[1].last, special[1].before
    maps, logp, states = trace_pair(bundle.model, (source, ids), special)
    pieces = bundle.target.pieces
    can_align = ids and source and maps["cross"].size
    top = logp.exp().topk(min(LIKELY, logp.shape[-1]))
    return Look(
        source_text=text,
        target_text=bundle.target.decode(ids),
        source=bundle.source_pieces(source),
        target=pieces([*before, *ids, last]),
        inputs=pieces([first, *before, *ids]),
        **maps,
        scores=[float(logp[i, token]) for i, token in enumerate([*before, *ids, last])],
        predictions=[
            [(pieces([token])[0], p) for token, p in zip(tokens, probabilities, strict=True)]
            for tokens, probabilities in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ],
        search=_candidates(steps, config.beam, pieces),
        alignment=align_batch(bundle.model, [(source, ids)], bundle.vocabularies, rows)[0] if can_align else [],
        model=name,
        states=states,
    )


def search_one(guards: Guards, source: list[int], config: DecodingConfig, steps: list[SearchStep]) -> list[int]:
    """The tokens that the search finds; its steps are appended to `steps`."""
    config = dataclasses.replace(config, nbest=1, sample=False, rerank="none")
    return guards.search_one(source, config, steps.extend).tokens


def _candidates(steps: Sequence[SearchStep], beams: int, pieces) -> list[list[Candidate]]:
    """A search as shown on the page: which candidates were kept, ended or dropped at each step."""
    shown = []
    for number, step in enumerate(steps):
        columns = (step.beam, step.token, step.logp, step.ends)
        kept, candidates = 0, []
        for rank, (beam, token, logp, ends) in enumerate(zip(*(part[0].tolist() for part in columns), strict=True)):
            if not math.isfinite(logp):
                continue
            state = "dropped"
            if ends and rank < beams:
                state = "ended"
            elif not ends and kept < beams:
                state, kept = "kept", kept + 1
            candidates.append(Candidate(pieces([token])[0], logp, beam if number else -1, state))
        shown.append(candidates)
    return shown
