"""Served language models. Texts are generated in short time slices, between which other requests run."""

from collections.abc import Iterator, Sequence
from typing import Any

from heed.products.generator import Generator
from heed.products.prompts import Prompt
from heed.products.text_trace import TextTrace
from heed.products.writing import Piece, Token
from heed.service.http.asked_model import AskedModel, next_slice
from heed.service.http.queue import Ticket

SLICE_TOKENS = 8  # that a slice counts as in the queue, for each text


class ServedLanguageModel(AskedModel):
    """One language model and the worker that runs it."""

    @property
    def generator(self) -> Generator:
        return self.product

    def warm_up(self) -> None:
        """Build now what the first call would build."""
        self.generator.generate_ids([], length=1)

    def write(self, ticket: Ticket, prompts: Sequence[Prompt], count: int, **options: Any) -> Iterator[list[Piece]]:
        """What each step adds to the texts, `count` per prompt."""
        found = self.generator.write(prompts, count=count, **options)
        size = sum(len(own.ids) for own in prompts)
        while pieces := self.ask(ticket, "write", lambda: next_slice(found), size):
            yield from pieces
            size = SLICE_TOKENS * len(prompts) * count

    def read_prompt(self, ticket: Ticket, prompt: Prompt, likely: int) -> list[Token]:
        """The tokens of a prompt, with how likely each was."""
        found, tokens, size = self.generator.read_prompt(prompt, likely), [], len(prompt.ids)
        while part := self.ask(ticket, "read", lambda: next_slice(found), size):
            tokens += part
            size = SLICE_TOKENS
        return tokens

    def look(self, ticket: Ticket, text: str, code: str | None) -> TextTrace:
        tokens = len(self.generator.prompt(text, code).ids)
        self.check_inspectable(tokens)
        return self.ask(ticket, "call", lambda: self.generator.trace(text, code, name=self.caption()), 4 * tokens)

    def facts(self) -> dict[str, Any]:
        """Its entry in /v1/models."""
        return {**super().facts(), "codes": self.generator.codes}
