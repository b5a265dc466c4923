"""A model with everything in its folder."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Package(NamedTuple):
    """`processors` turn a user's input into tensors and back, by name: the vocabularies "source" and "target", or "text";
    "labels"; "items" and "histories"; "images"; "sound", "speakers" and "transcript".
    `facts` are the other sections of config.json. `shortlist` is the text of shortlist.txt, if any.
    """

    model: Any
    task: str
    processors: Mapping[str, Any]
    facts: dict[str, Any]
    shortlist: str | None = None

    @property
    def vocabularies(self) -> tuple[Any, Any]:
        """The source and target vocabularies; a model of one text has one for both."""
        text = self.processors.get("text")
        if text is None and "source" not in self.processors:
            kinds = {"items": "is a recommender", "images": "reads images"}
            what = next(
                (kinds[name] for name in kinds if name in self.processors), f"has {' and '.join(self.processors)}"
            )
            raise ValueError(f"the model does not read text: it {what}")
        return (text, text) if text is not None else (self.processors["source"], self.processors["target"])


def longest_text(package: Package) -> int:
    """The longest text that an encoder reads, in tokens: all of its positions, unless its pre-training was of shorter
    texts or its sentence-transformers folder names a limit. Earlier versions recorded the longest training text.
    """
    facts, positions = package.facts, package.model.config.max_length
    stated = facts.get("max_source") if "pretraining" in facts or "trained" not in facts else None
    return min(stated or positions, positions)
