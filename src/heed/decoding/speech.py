"""Speech decoding: attention, CTC and a language model jointly score each next token."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.decoding.beam import beam_search
from heed.decoding.ctc import PrefixScores
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.limits import BanTokens, end_at_limit
from heed.decoding.steps import State, StepModel
from heed.nn import masks
from heed.nn.cache import DecoderState, StackCache
from heed.vocabularies.vocabulary import SpecialTokens


@dataclass(frozen=True)
class SpeechDecoding:
    beam: int = 8  # beam size; 1 is greedy
    nbest: int = 1  # number of transcripts per recording
    ctc_weight: float = 0.3  # weight of CTC in the scores; 0 is attention only, 1 is CTC only
    length_penalty: float = 0.0  # alpha, the exponent of the length penalty; larger favours longer texts
    lm_weight: float = 0.3  # weight of the language model (--lm) in shallow fusion
    window: float = 30.0  # window length in seconds, at most the longest training recording
    overlap: float = 2.0  # context on either side of a window, in seconds

    def __post_init__(self):
        if not 1 <= self.nbest <= self.beam <= 1000:
            raise ValueError(
                f"beam is {self.beam} and nbest {self.nbest}; a beam is 1 to 1,000 and cannot return more than its size"
            )
        if not 0 <= self.ctc_weight <= 1:
            raise ValueError(f"ctc_weight is {self.ctc_weight}; it must be from 0 to 1")
        for name, most in (("lm_weight", 10), ("length_penalty", 10)):
            if not 0 <= getattr(self, name) <= most:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be from 0 to {most}")
        if not 0 <= 2 * self.overlap < self.window:
            raise ValueError(f"overlap is {self.overlap:g}; it must be less than half of window, {self.window:g}")


class LanguageScores:
    """A language model with the recognizer's tokens under other ids: `ids[i]` is its id of token i."""

    def __init__(self, model: Any, ids: Int[Tensor, " vocab"], first: int):
        self.model, self.ids, self.first = model, ids, first

    def start(self, rows: int) -> State:
        return self.model.start(rows)

    def step(self, tokens: Int[Tensor, " b"] | None, rows: int, state: State) -> Float[Tensor, "b vocab"]:
        own = self.ids[tokens] if tokens is not None else torch.full((rows,), self.first, device=self.ids.device)
        return self.model.step(own, state).float().log_softmax(dim=-1)[:, self.ids]


@dataclass
class JointState:
    """What attention, CTC and the language model keep between steps; `begun` says whether a token was found."""

    decoder: DecoderState
    prefixes: PrefixScores | None
    language: State | None
    begun: bool = False

    def reorder(self, rows: Tensor) -> None:
        self.decoder.reorder(rows)
        for part in (self.prefixes, self.language if self.begun else None):
            if part is not None:
                part.reorder(rows)


class JointSteps(StepModel):
    """A speech model that decodes one token at a time. Its scores are not logits: none is above 0."""

    def __init__(
        self, model: nn.Module, last: int, ctc_weight: float, language: LanguageScores | None, lm_weight: float
    ):
        self.model, self.last, self.ctc_weight = model, last, ctc_weight
        self.language, self.lm_weight = language, lm_weight

    def start(
        self, memory: Float[Tensor, "b s dim"], counts: Int[Tensor, " b"], logp: Float[Tensor, "b s classes"] | None
    ) -> JointState:
        valid = masks.from_lengths(counts, memory.shape[1])
        decoder = DecoderState(memory, valid, StackCache(self.model.config.decoder_layers))
        prefixes = PrefixScores(logp, counts) if self.ctc_weight else None
        return JointState(decoder, prefixes, None)

    def step(self, tokens: Int[Tensor, " b"], state: JointState) -> Float[Tensor, "b vocab"]:
        own, score = state.decoder, 0.0
        if self.ctc_weight < 1:
            states = self.model.decode(tokens[:, None], own.memory, own.valid, own.cache)[:, 0]
            logits = self.model.project(states)
            exact = logits if logits.dtype == torch.float64 else logits.float()
            score = (1 - self.ctc_weight) * exact.log_softmax(dim=-1)
        if state.prefixes is not None:
            if state.begun:
                state.prefixes.append(tokens)
            found = self.ctc_weight * state.prefixes.extensions(self.last)
            score = score + (found if self.ctc_weight == 1 else found.to(score.dtype))
        if self.language is not None:
            if state.language is None:
                state.language = self.language.start(len(tokens))
            asked = tokens if state.begun else None
            score = score + self.lm_weight * self.language.step(asked, len(tokens), state.language)
        state.begun = True
        return score


@torch.inference_mode()
def search_speech(
    model: Any,
    memory: Float[Tensor, "b s dim"],
    counts: Int[Tensor, " b"],
    special: SpecialTokens,
    config: SpeechDecoding,
    language: LanguageScores | None = None,
    logp: Float[Tensor, "b s classes"] | None = None,
) -> list[list[Hypothesis]]:
    """The best texts of each recording, best first. No text has more tokens than its recording has states."""
    if config.ctc_weight and logp is None:
        logp = ctc_logp(model, memory)
    steps = JointSteps(model, special.last, config.ctc_weight, language, config.lm_weight)
    longest = (counts + 1).clamp(max=model.config.max_length)
    banned: Sequence[int] = [token for token in special.never if token != special.last]
    return beam_search(
        steps,
        steps.start(memory, counts, logp),
        longest,
        first=special.first,
        last=special.last,
        beams=config.beam,
        nbest=config.nbest,
        alpha=config.length_penalty,
        rules=[BanTokens(banned), end_at_limit(longest, special.last)],
        scored=True,
    )


@torch.inference_mode()
def ctc_logp(model: Any, memory: Float[Tensor, "b s dim"]) -> Float[Tensor, "b s classes"]:
    """The log-probabilities of CTC, in full precision."""
    logits = model.ctc_logits(memory)
    return (logits if logits.dtype == torch.float64 else logits.float()).log_softmax(dim=-1)
