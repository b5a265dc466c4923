"""The settings of a run that begins with word vectors."""

from dataclasses import dataclass


@dataclass(frozen=True)
class VectorsConfig:
    """Files of word vectors to begin with, for each side; `text` is for models of one language.

    `frozen`: they stay as they are. `lowercase`: a word that is not there may take the vector of its small letters.
    `scale`: what the file's numbers are multiplied by; None: what makes them as large as the model's own.
    """

    source: str | None = None
    target: str | None = None
    text: str | None = None
    frozen: bool = False
    lowercase: bool = False
    scale: float | None = None

    @property
    def files(self) -> dict[str, str]:
        """Those that are named, by their setting."""
        every = {name: getattr(self, name) for name in ("source", "target", "text")}
        return {name: path for name, path in every.items() if path}

    def __post_init__(self):
        if self.text and len(self.files) > 1:
            raise ValueError("vectors.text is for models of one language, source and target for translators: not both")
        if self.scale is not None and not self.scale > 0:
            raise ValueError(f"vectors.scale is {self.scale}; it must be above 0")
        for name, usual in (("frozen", False), ("lowercase", False), ("scale", None)):
            if not self.files and getattr(self, name) != usual:
                raise ValueError(f"vectors.{name} is {getattr(self, name)!r}, but [vectors] names no file")
