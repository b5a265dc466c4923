"""CTranslate2 as an engine for language models on the CPU, for greedy search and scores only."""

from collections.abc import Sequence

from heed.decoding.config import DecodingConfig
from heed.decoding.hypothesis import Hypothesis
from heed.products.ctranslate2_model import CTranslate2Model
from heed.products.prompts import Prompt

MAX_ROWS = 32  # texts in a batch


class TextEngine(CTranslate2Model):
    """One language model on the CPU."""

    opens = "Generator"

    def takes(self, config: DecodingConfig, longest: int) -> bool:
        """Whether it supports a search that begins with at most `longest` tokens."""
        plain = (config.beam, config.min_length, config.no_repeat, config.repetition_penalty) == (1, 0, 0, 1.0)
        fits = longest + config.max_length - 1 <= self.model.config.max_length
        return plain and fits and not config.sample and self.ready()

    def scores(self) -> bool:
        return self.ready()

    budget = 0  # tokens that a batch should have at least

    def search(self, prompts: Sequence[Prompt], config: DecodingConfig, last: int) -> list[list[Hypothesis]]:
        """The greedy continuation of each prompt, which ends with the token `last`."""
        (pool, _), groups, submitted = self.pool(len(prompts)), {}, []
        for row, own in enumerate(prompts):
            groups.setdefault(len(own.ids), []).append(row)
        for rows in groups.values():  # of texts of different lengths it would return a part of the prompts too
            futures = pool.generate_batch(
                [[self.names[i] for i in prompts[row].ids] for row in rows], max_batch_size=MAX_ROWS, beam_size=1,
                max_length=config.max_length, min_length=0, end_token=[last if last >= 0 else len(self.names)], return_end_token=True,
                include_prompt_in_result=False, asynchronous=True,
                suppress_sequences=[[self.names[i]] for i in self.vocabulary.special.never],
            )  # fmt: skip
            submitted += zip(rows, futures, strict=True)
        results = {row: future.result().sequences_ids[0] for row, future in submitted}
        scores = self.score([own.ids + results[row] for row, own in enumerate(prompts)])
        return [[_hypothesis(results[row], own)] for row, own in enumerate(scores)]

    def score(self, texts: Sequence[Sequence[int]]) -> list[list[float]]:
        """The log probability of each token of a text but the first."""
        named = [[self.names[i] for i in text] for text in texts]
        found = self.pool(len(named))[0].score_batch(named, max_batch_size=MAX_ROWS, max_input_length=0)
        return [list(result.log_probs) for result in found]


def _hypothesis(ids: list[int], scores: list[float]) -> Hypothesis:
    own = scores[len(scores) - len(ids) :]
    return Hypothesis(ids, sum(own), own)
