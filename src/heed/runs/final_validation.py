"""The model's outputs on its validation set, kept in the run folder for `heed report`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from heed.config import parse_json
from heed.files import json_digest, sha256, write_text
from heed.models.folder import WEIGHTS

FILE = "validation.json"


@dataclass(frozen=True)
class FinalValidation:
    """`outputs` are (input, expected, output), empty if the task generates no text; `data` are rows of the model
    card. With several `directions`, the outputs of each follow each other, in these numbers.
    """

    scores: Mapping[str, float]
    outputs: Sequence[tuple[str, str, str]]
    data: Mapping[str, str]
    directions: Mapping[str, int] = field(default_factory=dict)

    def by_direction(self) -> dict[str, Sequence[tuple[str, str, str]]]:
        """The outputs of each direction; empty if there is one."""
        rows = iter(self.outputs)
        return {name: list(islice(rows, count)) for name, count in self.directions.items()}


def write(folder: Path, found: FinalValidation) -> None:
    """Write the results, with the hash of the model's weights."""
    values = {
        "model": sha256(folder / "model" / WEIGHTS),
        "scores": dict(found.scores),
        "data": dict(found.data),
        "directions": dict(found.directions),
        "outputs": [list(row) for row in found.outputs],
    }
    values["sha256"] = json_digest(values)
    write_text(folder / FILE, json.dumps(values, ensure_ascii=False, indent=0) + "\n")


def _check(found: FinalValidation) -> None:
    """Raise if a value has the wrong type."""
    kinds = ((found.scores, (int, float)), (found.data, str), (found.directions, int))
    right = all(isinstance(own, dict) and all(isinstance(one, kind) for one in own.values()) for own, kind in kinds)
    if (
        not right
        or min(found.directions.values(), default=0) < 0
        or max(found.directions.values(), default=0) > len(found.outputs)
        or not all(len(row) == 3 and all(isinstance(text, str) for text in row) for row in found.outputs)
    ):
        raise TypeError


def read(folder: Path) -> FinalValidation | None:
    """The results; None if there are none, or if the model's weights have changed."""
    path, weights = folder / FILE, folder / "model" / WEIGHTS
    if not path.is_file() or not weights.is_file():
        return None
    try:
        values = parse_json(path.read_text("utf-8"))
        if values.pop("sha256", None) not in (None, json_digest(values)):  # an earlier version wrote none
            raise ValueError
        if values["model"] != sha256(weights):
            return None
        outputs = [tuple(row) for row in values["outputs"]]
        found = FinalValidation(values["scores"], outputs, values["data"], values.get("directions", {}))
        _check(found)
        return found
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{path} is damaged: remove it, and heed report will translate the validation set again"
        ) from None
