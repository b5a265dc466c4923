"""The languages of training texts: the direction in which a multilingual model is trained, and the resulting
directions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from heed.data.config import DataConfig
from heed.products.translator.directions import Directions, Options, direction_of
from heed.vocabularies.multilingual import languages_of
from heed.vocabularies.vocabulary import Pair

SETTINGS = Options("data.source_language", "data.target_language", python=False)


def in_direction(pair: Pair, data: DataConfig, base: Mapping[str, Any], one_sided: bool) -> Pair:
    """Multilingual vocabularies for the languages of the data, or else of the model `base`; others unchanged."""
    directions = Directions(pair, {}, SETTINGS)
    if not directions.codes:
        return pair
    if len(data.directions) > 1:
        raise ValueError(
            "data.corpora has several directions, and a multilingual model is fine-tuned in one at a time: give the "
            "corpora of one direction"
        )
    source, target = data.languages(base.get("languages") or {}).values()
    if one_sided:
        code = directions.language(source)
        return directions.pair((code, code))
    return directions.pair(directions.choose(source, target))


def direction_facts(data: DataConfig, processors: Sequence[Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """What a model folder states: its languages and, if it has several directions by tags, those of `base` and of the
    data.
    """
    languages = direction_of(processors) or data.languages(base.get("languages") or {})
    before = base.get("directions") or []
    own = [data.direction(one) for one in data.parts] if before else data.directions
    found = list(dict.fromkeys([*map(tuple, before), *(pair for pair in own if None not in pair)]))
    several = {"directions": [list(pair) for pair in found]} if len(found) > 1 else {}
    return {"languages": languages, **several}


def languages_row(processors: Sequence[Any]) -> dict[str, str]:
    """A row of the model card of a multilingual model."""
    codes = languages_of(processors[-1])
    chosen = direction_of(processors)
    if not codes or chosen is None:
        return {}
    return {"languages": f"{len(codes)} (`--from`, `--to`); trained here from {chosen['source']} to {chosen['target']}"}
