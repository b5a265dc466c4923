"""The settings of a run whose embeddings are initialized with word vectors."""

from dataclasses import dataclass


@dataclass(frozen=True)
class VectorsConfig:
    """Files of word vectors to initialize embeddings with, for each side; `text` is for models of one language.

    `frozen`: they are not trained. `lowercase`: a word that is not in the file may take the vector of its lowercase form.
    `scale`: a factor for the vectors; None: the one that gives them the scale of the model's initialization.
    """

    source: str | None = None
    target: str | None = None
    text: str | None = None
    frozen: bool = False
    lowercase: bool = False
    scale: float | None = None

    @property
    def files(self) -> dict[str, str]:
        """The files that are set, by the name of their setting."""
        paths = {name: getattr(self, name) for name in ("source", "target", "text")}
        return {name: path for name, path in paths.items() if path}

    def __post_init__(self):
        if self.text and len(self.files) > 1:
            raise ValueError("vectors.text is for models of one language, source and target for translators: not both")
        if self.scale is not None and not self.scale > 0:
            raise ValueError(f"vectors.scale is {self.scale}; it must be above 0")
        for name, default in (("frozen", False), ("lowercase", False), ("scale", None)):
            if not self.files and getattr(self, name) != default:
                raise ValueError(f"vectors.{name} is {getattr(self, name)!r}, but [vectors] names no file")
