"""The hashes in config.json of a model folder, of itself and of the files next to it. Earlier versions had none."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heed.files import json_digest, sha256

CONFIG = "config.json"


def signed(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata, including a hash of all of it."""
    plain = json.loads(json.dumps(facts))  # as they are read again
    return {**facts, "sha256": {**facts["sha256"], CONFIG: json_digest(plain)}}


def check(path: Path, facts: Mapping[str, Any]) -> None:
    """Refuse a config.json that has changed since it was written."""
    stated = facts.get("sha256", {})
    rest = {name: value for name, value in stated.items() if name != CONFIG}
    if stated.get(CONFIG) not in (None, json_digest({**facts, "sha256": rest})):
        raise ValueError(
            f"{path} is damaged: its hash does not match the recorded one; copy it again, or remove its sha256 if you "
            "changed it yourself"
        )


def check_beside(path: Path, facts: Mapping[str, Any]) -> bool:
    """Whether a file belongs to the model with this metadata; a damaged one is refused. For earlier versions, any
    existing file does.
    """
    stated = facts.get("sha256", {})
    if CONFIG not in stated:
        return path.is_file()
    if path.name not in stated:
        return False
    if not path.is_file() or sha256(path) not in stated.values():
        what = "is damaged or belongs to another model" if path.is_file() else "is missing"
        raise ValueError(f"{path} {what}: {CONFIG} records its hash; copy it again, or remove sha256 from {CONFIG}")
    return True
