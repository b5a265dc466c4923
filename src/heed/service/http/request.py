"""The translations of one request. It runs in its own thread and waits for the models, which run in theirs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from heed.products.translator.word_links import WordLinks, word_links
from heed.service.http.models import ServedModel, TranslatedSentence, TranslationOptions, count_terms
from heed.service.http.progress import Progress
from heed.service.http.queue import Ticket, wait_for_results
from heed.service.http.segmenter import ALIGN, TRANSLATE, Answers, ModelQuery, TextTask, to_request
from heed.service.http.segmenter_pool import SegmenterPool
from heed.text.passages import Passage
from heed.text.protected import ModelRequest


@dataclass
class RouteTranslator:
    """Translates the sentences of one request through the models of a route, each distinct one once."""

    ticket: Ticket
    segmenters: SegmenterPool
    route: Sequence[ServedModel]
    options: TranslationOptions
    # by request, the output of each model of the route
    outputs: dict[ModelRequest, list[TranslatedSentence]] = field(default_factory=dict)
    progress: Progress | None = None

    def translate(self, requests: Sequence[ModelRequest]) -> list[TranslatedSentence]:
        """The last model's translation of each text, beginning with its prefix. All models apply the required terms."""
        new = [request for request in dict.fromkeys(requests) if request not in self.outputs]
        by_text: list[list[TranslatedSentence]] = [[] for _ in new]
        inputs = new
        if self.progress:
            self.progress.expect(len(new) * len(self.route))
        for number, model in enumerate(self.route):
            last = number == len(self.route) - 1
            options = self.options if last else TranslationOptions()
            translated = self._translate_with(
                model, options, [own if last else own._replace(prefix="") for own in inputs]
            )
            for outputs, one in zip(by_text, translated, strict=True):
                outputs.append(one)
            inputs = [own._replace(text=one.text) for own, one in zip(inputs, translated, strict=True)]
        for request, outputs in zip(new, by_text, strict=True):
            # where there is no room for both, the terms of a glossary come first: the rest can still be put in
            lacking = request.required and outputs and outputs[-1].lacks_terms
            self.outputs[request] = self.outputs[request._replace(required=())] if lacking else outputs
        if not self.route:
            return [TranslatedSentence(own.text, 0.0, [], [(own.text, 0.0)]) for own in requests]
        return [self.outputs[own][-1] for own in requests]

    def _translate_with(
        self, model: ServedModel, options: TranslationOptions, requests: Sequence[ModelRequest]
    ) -> list[TranslatedSentence]:
        """One model. A text too long for it is translated in parts, of which the first has the prefix."""
        parts = [model.translator.parts(own.text) for own in requests]
        glossaries = {own.required: model.glossary(options, own.required) for own in requests}
        flat = [
            (part, "" if i else own.prefix, glossaries[own.required])
            for own, texts in zip(requests, parts, strict=True)
            for i, part in enumerate(texts)
        ]
        sizes = [len(ids) + 1 for ids in model.translator.source.encode([part for part, _, _ in flat])]
        plain = options._replace(glossary=None)  # for those without terms, which are far cheaper
        counts = [count_terms(terms, part) for part, _, terms in flat]
        chosen = [options._replace(glossary=own[2]) if n else plain for own, n in zip(flat, counts, strict=True)]
        costs = [model.cost(*own) for own in zip(sizes, chosen, counts, strict=True)]
        futures: list[Any] = []
        jobs = zip(flat, sizes, chosen, costs, strict=True)
        for _, group in groupby(jobs, lambda job: (bool(job[0][1]), job[2] is plain, id(job[2].glossary))):
            own = list(group)
            key = own[0][2].batch_key(bool(own[0][0][1]))
            items = [(part, own_prefix, chosen) for (part, own_prefix, _), _, chosen, _ in own]
            futures += model.submit(self.ticket, key, items, [job[1] for job in own], [job[3] for job in own])
        if self.progress:
            self.progress.expect(len(futures) - len(requests))  # long texts have several parts
            for future in futures:
                future.add_done_callback(self.progress.finish)
        results = iter(wait_for_results(futures, self.ticket))
        return [_join([next(results) for _ in own]) for own in parts]

    def align(self, sources: Sequence[str], targets: Sequence[str]) -> list[WordLinks]:
        """The word links of each pair; none if they cannot be known."""
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
        """The output of the first of two models; None if the target is not the second model's output for it."""
        found = [own for request, own in self.outputs.items() if request.text == source]
        return next((own[0].text for own in found if own[-1].text == target), None)

    def _align_with(self, model: ServedModel, sources: Sequence[str], targets: Sequence[str]) -> list[WordLinks]:
        def align(sources: list[str], targets: list[str], sizes: list[int]) -> list[WordLinks]:
            pairs = list(zip(sources, targets, strict=True))
            return wait_for_results(model.submit(self.ticket, ("align",), pairs, sizes), self.ticket)

        return word_links(model.translator, sources, targets, align)

    def run(self, task: TextTask, rank: int = 0, check: Callable[[int], Any] | None = None) -> Any:
        """The output of a task; for each sentence, the best translation (`rank` 0) or one of the next. `check` is
        called with the number of characters to translate.
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
        for kind in (TRANSLATE, ALIGN):
            own = [query for query in queries if query[0] == kind]
            if not own:
                continue
            if kind == ALIGN:
                results = self.align([query[1] for query in own], [query[2] for query in own])
            else:
                translated = self.translate(list(map(to_request, own)))
                results = [one.nbest[min(rank, len(one.nbest) - 1)][0] for one in translated]
            answers |= dict(zip(own, results, strict=True))
        return answers

    def sentences(self, passages: Sequence[Passage]) -> list[TranslatedSentence | None]:
        """The model's output for each passage; a translation that was changed afterwards is rescored. None if it is
        too long for the model.
        """
        found = {i: self.outputs[own.shown][-1] for i, own in enumerate(passages) if own.shown in self.outputs}
        changed = [i for i in range(len(passages)) if i not in found]
        if changed and self.route:
            pairs = [(self._given(passages[i]), passages[i].target) for i in changed]
            model, tokens = self.route[-1], self.options.tokens
            sizes = [len(ids) + 1 for ids in model.translator.source.encode([source for source, _ in pairs])]
            items = [(source, target, self.options) for source, target in pairs]
            scored = wait_for_results(model.submit(self.ticket, ("score", tokens), items, sizes), self.ticket)
            found |= dict(zip(changed, scored, strict=True))
        return [found.get(i) for i in range(len(passages))]

    def _given(self, passage: Passage) -> str:
        """The last model's input for a passage."""
        if len(self.route) < 2:
            return passage.source
        outputs = (own for request, own in self.outputs.items() if request.text == passage.source)
        return next((own[-2].text for own in outputs), passage.source)


def _join(parts: list[TranslatedSentence]) -> TranslatedSentence:
    if len(parts) == 1:
        return parts[0]
    ranks = range(max((len(part.nbest) for part in parts), default=0))
    by_rank = [[part.nbest[min(rank, len(part.nbest) - 1)] for part in parts] for rank in ranks]
    nbest = [(" ".join(text for text, _ in own), sum(score for _, score in own)) for own in by_rank] or [("", 0.0)]
    tokens, lacking = [token for part in parts for token in part.tokens], any(part.lacks_terms for part in parts)
    return TranslatedSentence(*nbest[0], tokens, nbest, lacking)
