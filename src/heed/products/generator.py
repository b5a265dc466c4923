"""Text generation and scoring with a language model."""

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from heed.decoding.config import DecodingConfig
from heed.decoding.sample import Step
from heed.evaluation.perplexity import WINDOW, Context, Perplexity, has_memory, has_positions, measure_perplexity
from heed.lab.surprisal import Surprisal
from heed.models.package import Package
from heed.products.attribution import Attribution, attribute
from heed.products.ctranslate2_text import TextEngine
from heed.products.cuda_text import CudaTextEngine, cuda_engine
from heed.products.int8_text import search_copies
from heed.products.product import Product, as_texts, single
from heed.products.prompts import Prompt, count_overflow, describe_overflow, make_prompt
from heed.products.search import steps
from heed.products.stops import StopStrings
from heed.products.text_scores import surprisal
from heed.products.text_search import NO_END, decoding_config, search_arguments
from heed.products.text_stages import Continuation, Generation, Scoring
from heed.products.text_trace import TextTrace, trace_text
from heed.products.translator.results import Score
from heed.products.writing import Piece, Token, read_prompt, write
from heed.vocabularies.codes import code_id, codes_of
from heed.vocabularies.vocabulary import Vocabulary
from heed.vocabularies.words import Words


class Generator(Product):
    """Generates and scores text with a language model. A line end is a token, and every text follows one."""

    noun, verbs, reads = "a language model", ("generate", "evaluate", "score", "look"), ("text",)

    def __init__(self, model: nn.Module, vocabulary: Vocabulary, facts: dict[str, Any] | None = None):
        self.model, self.vocabulary, self.facts = model.eval(), vocabulary, facts or {}
        self.special = vocabulary.special
        self.engine: TextEngine | CudaTextEngine | None = None
        self.copies = search_copies(self.model, "torch")
        self.code: str | None = None  # the control code that texts begin with

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> Any:
        own = single(packages, names, cls.noun)
        generator = cls(own.model, own.processors["text"], own.facts)
        generator.use(options.get("engine", "auto"))
        return generator

    def use(self, engine: str, kind: str | None = None) -> None:
        """Choose the engine: "torch", "native" (searches in C code on a CPU), "int8" (the same with weights in 8-bit
        integers, on a CPU with instructions for them), "auto" (CUDA graphs in bfloat16 on an NVIDIA GPU; on a CPU int8
        for large models and native for others), or "ctranslate2" for a GPT-2 on the CPU. Searches that it does not
        support run on torch. `kind` is the format of CTranslate2's weights (default: float32).
        """
        self.copies = search_copies(self.model, engine)
        self.engine = cuda_engine(self.model, self.vocabulary) if engine == "auto" else None
        if engine == "ctranslate2":
            self.engine = TextEngine(self.model, self.vocabulary, kind)

    def with_code(self, code: str) -> "Generator":
        """The same model with a control code before its texts."""
        code_id(self.vocabulary, code)  # refuses one that there is not
        coded = copy.copy(self)
        coded.code = code
        return coded

    @property
    def before(self) -> int:
        """The token before a text that is scored or shown: its control code, or a line end."""
        return self.special.last if self.code is None else code_id(self.vocabulary, self.code)

    @property
    def codes(self) -> list[str]:
        """The control codes of the model."""
        return list(codes_of(self.vocabulary))

    @property
    def window(self) -> int:
        """The window length used in training; if the folder does not say, the number of positions."""
        return self.facts.get("window") or min(self.model.config.max_length, WINDOW)

    def attribute(self, texts: Sequence[str], codes: Sequence[str] = ()) -> list[Attribution]:
        """The most likely control code of each text, of `codes` or all: source attribution as in CTRL."""
        return attribute(self.model, self.vocabulary, texts, self.window, codes)

    def perplexity(self, lines: Iterable[str], context: Context = Context()) -> Perplexity:  # noqa: B008 (frozen)
        """The perplexity of a text; windows are as long as in training, unless `context` says otherwise."""
        window = self.window if has_positions(self.model) or has_memory(self.model) else None
        return measure_perplexity(
            self.model, self.vocabulary, list(lines), replace(context, window=context.window or window)
        )

    @property
    def engine_name(self) -> str:
        """What runs the model, as far as its engine takes a search: results of another may differ by rounding."""
        return type(self.engine).__name__ if self.engine else "torch"

    @property
    def search_engine_name(self) -> str:
        """The same for searches, which may run on a copy while scores are the model's own."""
        found = next((own.described for own in self.copies if own.supported()), "torch")
        return self.engine_name if found == "torch" else found

    @property
    def searched(self) -> nn.Module:
        """The model that searches run on: one of its copies for them, where there are any."""
        return next((own.copy for own in self.copies if own.takes()), self.model)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def generate(
        self,
        prompt: str = "",
        *,
        length: int = 100,
        count: int = 1,
        one_line: bool = False,
        code: str | None = None,
        stop: Sequence[str] = (),
        **decoding: Any,
    ) -> list[Continuation]:
        """`count` continuations of a text, of up to `length` tokens; with `one_line`, at most to the end of the line.
        Each ends before the first of the strings `stop`. `code` is the control code, for CTRL models. `decoding` are
        settings of DecodingConfig: sampled (temperature, top_k, top_p, seed, …) by default; with sample=False greedy
        (beam=1) or a beam search.
        """
        options = {"code": code, "length": length, "count": count, "one_line": one_line, "stop": stop}
        return self.generate_many([prompt], **options, **decoding)[0]

    def generate_many(
        self, prompts: Sequence[str], *, code: str | None = None, batch_tokens: int = 4096, **options: Any
    ) -> list[list[Continuation]]:
        """The same for several prompts, in batches of at most `batch_tokens` tokens; results do not depend on the
        batch.
        """
        own = [self.prompt(prompt, code) for prompt in prompts]
        return self.generate_prompts(own, batch_tokens, **options)

    def generate_ids(self, ids: list[int], **options: Any) -> list[Continuation]:
        """Like `generate` for a prompt of token ids, which follow a line end."""
        return self.generate_prompts([Prompt(list(ids), self.special.last)], 1, **options)[0]

    def stream(
        self,
        prompt: str = "",
        *,
        length: int = 100,
        one_line: bool = False,
        code: str | None = None,
        stop: Sequence[str] = (),
        **decoding: Any,
    ) -> Iterator[str]:
        """The text of one continuation, piece by piece as it is generated: the same text as `generate`."""
        options = {"length": length, "one_line": one_line, "stop": stop, **decoding}
        for pieces in self.write([self.prompt(prompt, code)], **options):
            if pieces[0].text:
                yield pieces[0].text

    def write(
        self,
        prompts: Sequence[Prompt],
        *,
        length: int = 100,
        count: int = 1,
        one_line: bool = False,
        stop: Sequence[str] = (),
        likely: int = 0,
        **decoding: Any,
    ) -> Iterator[list[Piece]]:
        """The same texts as `generate_many`, token by token, with the `likely` most likely tokens at each position."""
        config, stops = decoding_config(length, count, decoding), StopStrings(stop)
        if not config.sample and config.beam > 1:
            raise ValueError(f"beam is {config.beam}: beam search cannot stream; use generate")
        found = self._steps(prompts, config, one_line, stops)
        last = self.special.last if one_line else NO_END
        yield from write(found, prompts, count, self.vocabulary, self.decode, stops, last, likely)

    def prompt(self, text: str | Sequence[int], code: str | None = None) -> Prompt:
        """A prompt from a text or token ids, with its control code if the model has any."""
        ids = self.encode(text) if isinstance(text, str) else text
        return make_prompt(self.vocabulary, ids, code or self.code)

    def read_prompt(self, prompt: Prompt, likely: int = 0) -> Iterator[Token]:
        """The tokens of a prompt, with how likely each was."""
        self.check_length(len(prompt.text), "the prompt and the token before it")
        return read_prompt(self.model, self.vocabulary, self.decode, prompt, likely)

    def trace(self, text: str, code: str | None = None, likely: int = 8, name: str = "") -> TextTrace:
        """The attention of every head over a text, and the `likely` most likely tokens at each position."""
        prompt = self.prompt(text, code)
        self.check_length(len(prompt.ids), "the text and the token before it")
        return trace_text(self.model, self.vocabulary, text, prompt.ids, likely, name)

    def beyond_positions(self, prompts: Iterable[str], length: int, code: str | None = None) -> str | None:
        """What happens to the prompts that do not fit into the model's positions with `length` more tokens; None if all do."""
        own, most = (self.prompt(prompt, code) for prompt in prompts), self.model.config.max_length
        return describe_overflow(count_overflow(own, length, most), most)

    def score(self, texts: Iterable[str], batch_tokens: int = 4096) -> list[Score]:
        """How likely each text is as one line, its end included."""
        scoring = Scoring(self, batch_tokens)
        lines = scoring.prepare(as_texts(texts))
        return scoring.finish(lines, scoring.score(lines))

    def look(self, text: str, likely: int = 8, name: str = "") -> Surprisal:
        """The surprisal of each token of a text, and the `likely` most likely tokens there."""
        ids = self.encode(text)
        if not ids:
            raise ValueError("the text is empty")
        self.check_length(len(ids) + 1, "the text and the end before it")
        return surprisal(self.model, self.vocabulary, text, [self.before, *ids], likely, name)

    def unknown(self, text: str) -> list[str]:
        """The words of a text that are not in a word vocabulary."""
        if not isinstance(self.vocabulary, Words):
            return []
        return [word for word in self.vocabulary.split(text) if word not in self.vocabulary.ids]

    def encode(self, prompt: str) -> list[int]:
        """A text as ids; each of its lines but the last has an end."""
        lines = self.vocabulary.encode(prompt.split("\n"))
        ids = [i for line in lines[:-1] for i in (*line, self.special.last)] + lines[-1]
        words = [i for i in ids if i != self.special.last]
        if words and all(i == self.special.unknown for i in words):
            raise ValueError(f"the model knows no word of {prompt!r}: start with words from its training text")
        return ids

    def check_length(self, tokens: int, what: str) -> None:
        most = self.model.config.max_length
        if tokens > most:
            raise ValueError(f"{what} have {tokens:,} tokens, but the model has only {most:,} positions: shorten them")

    def generate_prompts(
        self, prompts: Sequence[Prompt], batch_tokens: int, **options: Any
    ) -> list[list[Continuation]]:
        generation = Generation(self, batch_tokens=batch_tokens, **options)
        return generation.finish(prompts, generation.search(prompts))

    def _steps(
        self, prompts: Sequence[Prompt], config: DecodingConfig, one_line: bool, stops: StopStrings
    ) -> Iterator[Step]:
        """One token after another, as `search` chooses them."""
        return steps(**search_arguments(self.searched, self.vocabulary, self.decode, prompts, config, one_line, stops))

    def decode(self, ids: Sequence[int]) -> str:
        """Text with a line break for each end."""
        ends = [-1, *(i for i, token in enumerate(ids) if token == self.special.last), len(ids)]
        return "\n".join(self.vocabulary.decode(ids[start + 1 : end]) for start, end in pairwise(ends))
