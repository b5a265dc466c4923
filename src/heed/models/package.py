"""A model with all that its folder says."""

from typing import Any, NamedTuple

from torch import nn


class Package(NamedTuple):
    """`subwords` are the vocabularies of the source and the target; `facts` the further sections of config.json.

    `shortlist` is the text of shortlist.txt (heed.data.shortlist), where there is one.
    """

    model: nn.Module
    subwords: tuple[Any, Any]
    facts: dict[str, Any]
    shortlist: str | None = None
