"""Settings for initializing embeddings with word vectors."""

from dataclasses import dataclass


@dataclass(frozen=True)
class VectorsConfig:
    source: str | None = None  # a file of word2vec, GloVe or fastText (.vec), plain or gzipped
    target: str | None = None
    text: str | None = None  # for a language model
    frozen: bool = False  # freeze the vectors; not possible if the matrix is also the output layer
    lowercase: bool = False  # fall back to the vector of the lowercase form
    scale: float | None = None  # scale factor (default: match the initial weights)

    @property
    def files(self) -> dict[str, str]:
        """The files that are set, by setting name."""
        return {name: path for name in ("source", "target", "text") if (path := getattr(self, name))}

    def __post_init__(self):
        if self.text and len(self.files) > 1:
            raise ValueError(
                "vectors.text is for monolingual models, source and target are for translators: set one or the other"
            )
        if self.scale is not None and not self.scale > 0:
            raise ValueError(f"vectors.scale is {self.scale}; it must be above 0")
        for name, default in (("frozen", False), ("lowercase", False), ("scale", None)):
            if not self.files and getattr(self, name) != default:
                raise ValueError(f"vectors.{name} is {getattr(self, name)!r}, but [vectors] has no file")
