"""Text in, text out: a model with its subwords and its search."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from heed import config as settings
from heed.data.batching import by_length, collate, pad
from heed.decoding.config import DecodingConfig
from heed.decoding.ensemble import Ensemble
from heed.decoding.steps import Hypothesis
from heed.lab.attention import Look
from heed.models.package import Package
from heed.products.product import Product
from heed.products.translator import attention_trace, lazy_scores
from heed.products.translator.alignment import first_words
from heed.products.translator.engines.cuda import CudaEngine
from heed.products.translator.engines.engine import ENGINES, Engine, TorchEngine, searched
from heed.products.translator.results import Candidate, Score, TermUse, Translation, joined
from heed.products.translator.split import cut, split
from heed.products.translator.term_tokens import Spelling, Wanted, with_lost_terms
from heed.text.glossary import Glossary, merged
from heed.vocabularies.vocabulary import Pair, SpecialTokens


class Translator(Product):
    """One model, or several as one, ready to be given text."""

    noun, verbs = "a translator", ("translate", "evaluate", "score", "look", "serve", "distill")

    def __init__(
        self,
        models: Sequence[nn.Module],
        subwords: Pair,
        *,
        decoding: DecodingConfig | None = None,
        max_source: int | None = None,
        facts: dict[str, Any] | None = None,
        shortlist: str | None = None,
    ):
        self.models = list(models)
        self.model = self.models[0]
        self.search = self.model if len(self.models) == 1 else Ensemble(self.models)
        self.engines: list[Engine] = [TorchEngine(self)]  # asked in this order; the last takes every search
        self.source, self.target = subwords
        self.marks = self.source.marks, self.target.marks
        self.decoding = decoding or DecodingConfig()
        self.most = min(model.config.max_length for model in self.models)
        self.longest = self.most - 1  # of what is said: the end mark needs a place too
        self.max_source = min(max_source or self.most, self.most)
        self.facts, self.shortlist = facts or {}, shortlist
        self.spelling = Spelling(subwords, self.model.config.vocab_size, self.longest)
        last = attention_trace.AlignmentRows(self.model.config.decoder_layers - 1, after=False)
        self.alignment_rows = attention_trace.AlignmentRows(**self.facts.get("alignment", last._asdict()))

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], *, engine: str = "auto") -> Any:
        first = packages[0]
        for name, package in zip(names[1:], packages[1:], strict=True):
            if [part.key() for part in package.vocabularies] != [part.key() for part in first.vocabularies]:
                raise ValueError(f"{names[0]} and {name} have different subwords: an ensemble needs the same in all")
        sizes = [package.model.config.vocab_size for package in packages]
        if len(set(sizes)) > 1:
            raise ValueError(
                f"{', '.join(names)} have room for {', '.join(map(str, sizes))} subwords: an ensemble needs the same in all"
            )
        facts = first.facts
        translator = cls(
            [package.model for package in packages],
            first.vocabularies,
            decoding=settings.read(DecodingConfig, facts.get("decoding", {}), f"{names[0]}/config.json: decoding."),
            max_source=facts.get("max_source"),
            facts=facts,
            shortlist=first.shortlist,
        )
        translator.use(engine)
        return translator

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def use(self, engine: str, kind: str | None = None) -> None:
        """Who searches: "torch" is Heed's own search; "ctranslate2", for one model on the CPU, is faster and rounds weights.

        "auto" is CTranslate2 where it can be used. What an engine cannot do Heed's own search does all the same.
        `kind` is how CTranslate2 keeps weights: "int8" unless said, where the CPU has that, or "float32".
        """
        from heed.products.translator.engines import ctranslate2 as other

        if engine not in ENGINES:
            raise ValueError(f"engine is {engine!r}; it is {', '.join(ENGINES[:-1])} or {ENGINES[-1]}")
        self.engines = [TorchEngine(self)] if engine == "torch" else [CudaEngine(self), TorchEngine(self)]
        reason = other.unfit(self)
        if engine == "ctranslate2" and reason:
            raise ValueError(f"engine is 'ctranslate2', but {reason}; use auto or torch")
        if engine != "torch" and not reason:
            self.engines.insert(0, other.CTranslate2(self, kind, required=engine == "ctranslate2"))

    def engine(self, **decoding: Any) -> str:
        """The name of the engine that does such a search."""
        return next(e for e in self.engines if e.takes(self._chosen(decoding), [])).name

    def translate(
        self,
        texts: str | Sequence[str],
        *,
        prefix: str | Sequence[str] | None = None,
        too_long: str = "split",
        batch_tokens: int = 4096,
        glossary: Glossary | Mapping[str, str] | None = None,
        keep: Sequence[str] = (),
        **decoding: Any,
    ) -> Any:
        """Translations of texts, in their order; of one text, one translation.

        `decoding` are settings of DecodingConfig (beam, nbest, length_penalty, sample, ...). `prefix` is what a
        translation must begin with. A text of more subwords than the model allows is translated in parts, cut with
        too_long="cut" (`source` is what was read), or refused with too_long="refuse". Where a term of `glossary` stands in a
        text its translation says what it is to become, and what is in `keep` stays (docs/glossary.md); `terms` tells.
        """
        if isinstance(texts, str):
            options = {"prefix": prefix, "too_long": too_long, "batch_tokens": batch_tokens}
            return self.translate([texts], glossary=glossary, keep=keep, **options, **decoding)[0]
        chosen, known = self._chosen(decoding), merged(glossary, keep)
        parts, owner = self._parts(texts, too_long)
        forced = self._forced(prefix, texts, owner)
        ids, wanted = self.source.encode(parts), self.spelling.wanted(parts, known, chosen)
        found = self.search_ids(ids, chosen, forced, batch_tokens, wanted)
        results: list[list[Translation]] = [[] for _ in texts]
        scores = lazy_scores.scores(self, ids, found, batch_tokens)
        for i, own, *each in zip(owner, wanted, parts, ids, found, scores, strict=True):
            results[i].append(self._translation(*each, self.spelling.used(own, each[2][0].tokens)))
        both = [(self.source.clean(text), own) for text, own in zip(texts, results, strict=True)]
        return [with_lost_terms(joined(text, own, chosen.nbest, self), known) for text, own in both]

    def score(self, sources: Sequence[str], targets: Sequence[str], batch_tokens: int = 4096) -> list[Score]:
        """How likely each target is, given its source."""
        self._refuse_long(sources, "it cannot be scored as one; leave it out, or cut it")
        ids = self.encode_pairs(sources, targets)
        results: list[Any] = [None] * len(ids)
        for rows in by_length([len(s) + len(t) for s, t in ids], batch_tokens):
            for row, parts in zip(rows, self.forced_scores([ids[row] for row in rows]), strict=True):
                tokens = self.target.pieces([*self.marks[1].before, *ids[row][1], self.marks[1].last])
                results[row] = Score(sources[row], targets[row], sum(parts), tokens, parts)
        return results

    def align(self, translations: Sequence[Translation], batch_tokens: int = 4096) -> list[list[tuple[int, int]]]:
        """Word alignments of translations, as (source word, target word)."""
        whole = [t.parts or [t] for t in translations]
        flat = [part for parts in whole for part in parts]
        found = iter(self.align_pairs([p.source for p in flat], [p.text for p in flat], batch_tokens))
        results = []
        for translation, parts in zip(translations, whole, strict=True):
            links, target, lead = [], 0, self.source.lead(translation.source)
            starts = first_words(translation.source, [part.source[len(lead) :] for part in parts])
            for part, source in zip(parts, starts, strict=True):
                before = len(lead.split())  # a tag is a word of each part, but of the whole text once
                links += [(i if i < before else i - before + source, j + target) for i, j in next(found)]
                target += len(part.text.split())
            results.append(links)
        return results

    def align_pairs(
        self, sources: Sequence[str], targets: Sequence[str], batch_tokens: int = 4096
    ) -> list[list[tuple[int, int]]]:
        """Word alignments of texts with given translations."""
        ids = self.encode_pairs(sources, targets)
        results: list[list[tuple[int, int]]] = [[] for _ in ids]
        spoken = [i for i, (source, target) in enumerate(ids) if source and target]
        for rows in by_length([len(ids[i][0]) + len(ids[i][1]) for i in spoken], batch_tokens):
            own = [ids[spoken[row]] for row in rows]
            found = attention_trace.aligned(self.model, own, (self.source, self.target), self.alignment_rows)
            for row, links in zip(rows, found, strict=True):
                results[spoken[row]] = links
        return results

    def attentions(self, source: str, target: str) -> dict[str, np.ndarray]:
        """Every attention of the (first) model while it reads `source` and writes `target`."""
        return attention_trace.stacked(self.model, self.encode_pairs([source], [target])[0], self.marks)[0]

    def attentions_of(self, translation: Translation) -> dict[str, np.ndarray]:
        """Every attention of the (first) model while it wrote a translation: a row for each of its tokens."""
        if translation.parts:
            raise ValueError(
                f"the text was translated in {len(translation.parts)} parts: ask each of them for its attentions"
            )
        rows, (said, marks) = len(translation.ids), self.stripped(translation.ids)
        maps = attention_trace.stacked(self.model, (self.source.encode([translation.source])[0], said), marks)[0]
        return maps | {"decoder": maps["decoder"][:, :, :rows, :rows], "cross": maps["cross"][:, :, :rows]}

    def look(self, text: str, target: str | None = None, name: str = "", **decoding: Any) -> Look:
        """All there is to see of a translation: attentions, likely words, the search, the alignment."""
        return attention_trace.look(self, text, target, self._chosen(decoding), name)

    def encode_pairs(self, sources: Sequence[str], targets: Sequence[str]) -> list[attention_trace.Ids]:
        """Texts with given translations as ids; what the model has no place for is refused."""
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources):,} sources and {len(targets):,} targets: they go in pairs")
        ids = self.source.encode(sources), self.target.encode(targets)
        for name, side in zip(("source", "target"), ids, strict=True):
            self._refuse_without_place(name, side)
        return list(zip(*ids, strict=True))

    def _refuse_without_place(self, name: str, ids: Sequence[list[int]]) -> None:
        marks = len(self.marks[name != "source"].before) + 1
        for number, own in enumerate(ids, 1):
            if len(own) + marks > self.most:
                raise ValueError(f"{name} {number} has {len(own)} subwords; the model allows {self.most - marks}")

    def stripped(self, ids: list[int]) -> tuple[list[int], tuple[SpecialTokens, SpecialTokens]]:
        """What was said without its marks, and the marks that it had: it may have begun without any."""
        source, target = self.marks
        if tuple(ids[: len(target.before)]) != target.before:
            target = target._replace(before=())
        return [i for i in ids[len(target.before) :] if i != target.last], (source, target)

    def source_pieces(self, ids: list[int]) -> list[str]:
        """A source as the model reads it, its marks included."""
        return self.source.pieces([*self.marks[0].before, *ids, self.marks[0].last])

    def start(self, sources: Sequence[list[int]]) -> Any:
        """The state of a search that has read these and said nothing."""
        tokens, valid = pad(sources, self.marks[0])
        return self.search.start(torch.from_numpy(tokens).to(self.device), torch.from_numpy(valid).to(self.device))

    def _chosen(self, changes: dict[str, Any]) -> DecodingConfig:
        return settings.read(DecodingConfig, {**dataclasses.asdict(self.decoding), **changes})

    def _parts(self, texts: Sequence[str], too_long: str) -> tuple[list[str], list[int]]:
        """Texts cut into what the model allows, and which text each part is of. Empty texts have no parts."""
        if too_long not in ("split", "cut", "refuse"):
            raise ValueError(f"too_long is {too_long!r}; it is 'split', 'cut' or 'refuse'")
        if too_long == "refuse":
            advice = "shorten it, or let it be translated in parts (too_long='split', --too-long split)"
            self._refuse_long(texts, advice)
        parts, owner = [], []
        for i, text in enumerate(texts):
            text = self.source.clean(text)
            lead = self.source.lead(text)  # before each part, since none is translated without it

            def size(part: str, lead: str = lead) -> int:
                return self._size(lead + part)

            text = text[len(lead) :]
            if too_long == "cut":
                text = cut(text, size, self.max_source)
            own = [lead + part for part in split(text, size, self.max_source)] if text.strip() else []
            parts += own
            owner += [i] * len(own)
        return parts, owner

    def parts(self, text: str) -> list[str]:
        """A text cut into what the model allows."""
        return self._parts([text], "split")[0]

    def _size(self, text: str) -> int:
        return len(self.marks[0].before) + len(self.source.encode([text])[0]) + 1

    def _refuse_long(self, texts: Sequence[str], advice: str) -> None:
        for number, text in enumerate(texts, 1):
            if (size := self._size(text)) > self.max_source:
                raise ValueError(
                    f"text {number} has {size} subwords, and the model was made for {self.max_source}: {advice}"
                )

    def _forced(self, prefix, texts: Sequence[str], owner: Sequence[int]) -> list[list[int]]:
        """The tokens that each part must begin with: of a text's first part, its prefix."""
        if prefix is None:
            return [[] for _ in owner]
        each = [prefix] * len(texts) if isinstance(prefix, str) else list(prefix)
        if len(each) != len(texts):
            raise ValueError(f"{len(each):,} prefixes for {len(texts):,} texts: give one for each, or one for all")
        tokens = self.target.encode(each)
        self._refuse_without_place("prefix", tokens)
        return [tokens[i] if place == 0 or owner[place - 1] != i else [] for place, i in enumerate(owner)]

    def search_ids(
        self,
        ids: list[list[int]],
        config: DecodingConfig,
        forced: list[list[int]],
        batch_tokens: int = 4096,
        wanted: Sequence[Wanted] = (),
    ) -> list[list[Hypothesis]]:
        """The best that a search finds for each source, each beginning with what is forced and saying its terms."""
        return searched(self, ids, config, forced, batch_tokens, wanted)

    @torch.inference_mode()
    def forced_scores(self, ids: list[attention_trace.Ids]) -> list[list[float]]:
        """The log probability of each token of given targets, their marks included."""
        batch = collate([s for s, _ in ids], [t for _, t in ids], self.marks).to(self.device)
        each = [model(batch.source, batch.target, batch.valid).log_softmax(dim=-1) for model in self.models]
        logp = (torch.stack(each).logsumexp(dim=0) - math.log(len(each))).flatten(0, 1)[batch.places]
        scores = logp.gather(1, batch.expected[:, None])[:, 0].cpu()
        return [part.tolist() for part in scores.split([len(self.marks[1].before) + len(t) + 1 for _, t in ids])]

    def _text(self, tokens: list[int]) -> str:
        """One line: a vocabulary with bytes can spell a line break."""
        return " ".join(self.target.decode(tokens).split())

    def _translation(
        self,
        part: str,
        source: list[int],
        hypotheses: list[Hypothesis],
        scores: list[lazy_scores.Scores],
        terms: list[TermUse],
    ) -> Translation:
        nbest = [
            Candidate(self._text(h.tokens), h.score, self.target.pieces(h.tokens), own)
            for h, own in zip(hypotheses, scores, strict=True)
        ]
        best, ids = nbest[0], hypotheses[0].tokens
        pieces = self.source_pieces(source)
        return Translation(part, best.text, best.score, best.tokens, ids, pieces, nbest, [], self, terms)
