"""The translations of one request. It runs in its own thread and waits for the models, which run in theirs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from heed.products.translator.word_links import WordLinks, word_links
from heed.service.http.models import ServedModel, TranslatedSentence, TranslationOptions, count_terms
from heed.service.http.queue import Ticket, wait_for_results
from heed.service.http.segmenter import ALIGN, TRANSLATE, TRANSLATE_WITH_PREFIX, Answers, ModelQuery, Passage, TextTask
from heed.service.http.segmenter_pool import SegmenterPool


@dataclass
class RouteTranslator:
    """Translates the sentences of one request through the models of a route, each distinct one once."""

    ticket: Ticket
    segmenters: SegmenterPool
    route: Sequence[ServedModel]
    options: TranslationOptions
    prefix: str = ""
    # by sentence and prefix, the output of each model of the route
    outputs: dict[tuple[str, str], list[TranslatedSentence]] = field(default_factory=dict)

    def translate(self, texts: Sequence[str], prefix: str = "") -> list[TranslatedSentence]:
        """The last model's translation of each text, beginning with the prefix."""
        new = [text for text in dict.fromkeys(texts) if (text, prefix) not in self.outputs]
        by_text: list[list[TranslatedSentence]] = [[] for _ in new]
        inputs = new
        for number, model in enumerate(self.route):
            last = number == len(self.route) - 1
            options = self.options if last else TranslationOptions()
            translated = self._translate_with(model, options, inputs, prefix if last else "")
            for outputs, one in zip(by_text, translated, strict=True):
                outputs.append(one)
            inputs = [one.text for one in translated]
        self.outputs |= {(text, prefix): outputs for text, outputs in zip(new, by_text, strict=True)}
        if not self.route:
            return [TranslatedSentence(text, 0.0, [], [(text, 0.0)]) for text in texts]
        return [self.outputs[text, prefix][-1] for text in texts]

    def _translate_with(
        self, model: ServedModel, options: TranslationOptions, texts: Sequence[str], prefix: str
    ) -> list[TranslatedSentence]:
        """One model. A text longer than it allows is translated in parts, of which the first has the prefix."""
        parts = [model.translator.parts(text) for text in texts]
        flat = [(part, "" if i else prefix) for own in parts for i, part in enumerate(own)]
        sizes = [len(ids) + 1 for ids in model.translator.source.encode([part for part, _ in flat])]
        plain = options._replace(glossary=None)  # for those without terms, which are far cheaper
        own_options = [options if count_terms(options.glossary, part) else plain for part, _ in flat]
        futures: list[Any] = []
        jobs = zip(flat, sizes, own_options, strict=True)
        for (has_prefix, _), group in groupby(jobs, lambda job: (bool(job[0][1]), job[2] is plain)):
            own = list(group)
            key = own[0][2].batch_key(has_prefix)
            items = [(part, own_prefix, chosen) for (part, own_prefix), _, chosen in own]
            costs = [model.cost(size, chosen) for _, size, chosen in own]
            futures += model.worker.submit(self.ticket, key, items, [size for _, size, _ in own], costs)
        results = iter(wait_for_results(futures, self.ticket))
        return [_join([next(results) for _ in own]) for own in parts]

    def align(self, sources: Sequence[str], targets: Sequence[str]) -> list[WordLinks]:
        """The word links of each pair; none where they cannot be known."""
        if not self.route:
            return [[(i, i) for i in range(len(text.split()))] for text in sources]
        if len(self.route) == 1:
            return self._align_with(self.route[0], sources, targets)
        pivots = [self._pivot(source, target) for source, target in zip(sources, targets, strict=True)]
        known = [i for i, pivot in enumerate(pivots) if pivot is not None]
        to_pivot = self._align_with(self.route[0], [sources[i] for i in known], [pivots[i] for i in known])
        from_pivot = self._align_with(self.route[1], [pivots[i] for i in known], [targets[i] for i in known])
        links: list[WordLinks] = [[] for _ in sources]
        for i, first, second in zip(known, to_pivot, from_pivot, strict=True):
            links[i] = sorted({(s, t) for s, m in first for n, t in second if m == n})
        return links

    def _pivot(self, source: str, target: str) -> str | None:
        """The output of the first of two models; None if the target is not what the second made of it."""
        outputs = self.outputs.get((source, "")) or self.outputs.get((source, self.prefix))
        return outputs[0].text if outputs and outputs[-1].text == target else None

    def _align_with(self, model: ServedModel, sources: Sequence[str], targets: Sequence[str]) -> list[WordLinks]:
        def align(sources: list[str], targets: list[str], sizes: list[int]) -> list[WordLinks]:
            pairs = list(zip(sources, targets, strict=True))
            return wait_for_results(model.worker.submit(self.ticket, ("align",), pairs, sizes), self.ticket)

        return word_links(model.translator, sources, targets, align)

    def run(self, task: TextTask, rank: int = 0, check: Callable[[int], Any] | None = None) -> Any:
        """The output of a task; of each sentence, the best translation (`rank` 0) or one of the next.

        `check` is called with the number of characters to translate.
        """
        answers: Answers = {}
        while (step := self.segmenters.run_step(task, answers, self.ticket)).missing:
            if check:
                check(step.characters)
            answers |= self._answer(step.missing, rank)
        return step.output

    def _answer(self, queries: Sequence[ModelQuery], rank: int) -> Answers:
        """All queries of one kind at once."""
        answers: Answers = {}
        for kind in (TRANSLATE, TRANSLATE_WITH_PREFIX, ALIGN):
            own = [query for query in queries if query[0] == kind]
            sources, targets = [query[1] for query in own], [query[2] for query in own]
            if not own:
                continue
            if kind == ALIGN:
                results = self.align(sources, targets)
            else:
                translated = self.translate(sources, self.prefix if kind == TRANSLATE_WITH_PREFIX else "")
                results = [one.nbest[min(rank, len(one.nbest) - 1)][0] for one in translated]
            answers |= dict(zip(own, results, strict=True))
        return answers

    def output_of(self, passage: Passage, first: bool) -> TranslatedSentence | None:
        """The model's output for a passage; None if its text was changed afterwards, by putting protected parts back."""
        outputs = self.outputs.get((passage.source, self.prefix if first else ""))
        return outputs[-1] if outputs and outputs[-1].text == passage.target else None


def _join(parts: list[TranslatedSentence]) -> TranslatedSentence:
    if len(parts) == 1:
        return parts[0]
    ranks = range(max((len(part.nbest) for part in parts), default=0))
    by_rank = [[part.nbest[min(rank, len(part.nbest) - 1)] for part in parts] for rank in ranks]
    nbest = [(" ".join(text for text, _ in own), sum(score for _, score in own)) for own in by_rank] or [("", 0.0)]
    return TranslatedSentence(*nbest[0], [token for part in parts for token in part.tokens], nbest)
