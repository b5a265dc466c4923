"""Strings that end a generated text, wherever they are divided into tokens."""

from collections.abc import Sequence


class StopStrings:
    """A text ends before the first of these strings."""

    def __init__(self, strings: Sequence[str]):
        if isinstance(strings, str):
            strings = [strings]
        if "" in strings:
            raise ValueError("a stop string is empty: every text would end at once; give one of at least one character")
        self.strings = tuple(strings)

    def __bool__(self) -> bool:
        return bool(self.strings)

    def found(self, text: str) -> bool:
        return any(own in text for own in self.strings)

    def cut(self, text: str) -> str:
        """The text before the first stop string."""
        return text[: min((at for own in self.strings if (at := text.find(own)) >= 0), default=len(text))]

    def settled(self, text: str) -> str:
        """The text without an end that may become a stop string."""
        text = self.cut(text)
        for begin in range(max(0, len(text) - max(map(len, self.strings), default=1) + 1), len(text)):
            if any(own.startswith(text[begin:]) for own in self.strings):
                return text[:begin]
        return text
