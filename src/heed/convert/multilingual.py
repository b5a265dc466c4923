"""The languages of a multilingual model in a transformers folder: its default direction, and the forced token."""

from collections.abc import Mapping
from typing import Any

from heed.convert import generation
from heed.text.language_codes import public_codes, resolve
from heed.vocabularies.multilingual import Multilingual
from heed.vocabularies.vocabulary import Pair, SpecialTokens

FORCED = "forced_bos_token_id"
COMMON = ("en", "de", "fr")  # languages for examples
Languages = Mapping[str, str | None]


def special_tokens(pair: Pair) -> SpecialTokens:
    """The special tokens of the output; until a language is chosen, those of the first."""
    target = pair[1]
    if isinstance(target, Multilingual) and target.language is None:
        return target.in_language(next(iter(target.languages)), source=False).special
    return target.special


def search_settings(search: dict[str, Any], pair: Pair) -> tuple[dict[str, Any], str | None]:
    """generation_config.json without the forced language, which heed derives from the direction; and that language."""
    forced = search.get(FORCED)
    if not isinstance(pair[1], Multilingual):
        return search, None
    code = next((code for code, number in pair[1].languages.items() if forced in (number, [number])), None)
    if forced is not None and code is None:
        raise ValueError(
            f"{FORCED} is {forced}, which is not a language of the vocabulary: heed can force only languages"
        )
    return {**search, FORCED: special_tokens(pair).before[0]}, code


def default_direction(settings: Mapping[str, Any], pair: Pair, forced: str | None) -> Languages:
    """The languages in tokenizer_config.json and generation_config.json, as people write them."""
    plain = {own: code for code, own in public_codes(tuple(pair[1].languages)).items()}
    return {
        "source": plain.get(settings.get("src_lang")),
        "target": plain.get(forced or settings.get("tgt_lang")),
    }


def choose(pair: Pair, languages: Languages) -> Pair:
    """The pair with the known languages; unchanged if texts do not begin with a language."""
    if not isinstance(pair[0], Multilingual):
        return pair
    codes = [
        resolve(code, tuple(pair[0].languages)) if code else None for code in map(languages.get, ("source", "target"))
    ]
    source, target = (
        side if code is None else side.in_language(code, source=i == 0)
        for i, (side, code) in enumerate(zip(pair, codes, strict=True))
    )
    return source, target


def settings_of(pair: Pair) -> dict[str, Any]:
    """The ids in config.json and generation_config.json, where <s> is not a language."""
    target = pair[1]
    own = {"bos_token_id": target.begin} if isinstance(target, Multilingual) else {}
    return {**generation.ids(target.neutral if own else target.special), **own}


def generation_settings(decoding: Mapping[str, Any], pair: Pair, max_length: int) -> dict[str, Any]:
    """generation_config.json; the target language is forced if it is known."""
    settings = generation.to_theirs(decoding, special_tokens(pair), max_length) | settings_of(pair)
    if isinstance(pair[1], Multilingual) and pair[1].language is None:
        settings.pop(FORCED, None)
    return settings


def example(pair: Pair, languages: Languages) -> Pair | None:
    """An example direction: that of the folder, or one between widely read languages; None if there is none."""
    if not isinstance(pair[0], Multilingual):
        return None
    codes = public_codes(tuple(pair[0].languages))
    known = [code for code in (*COMMON, *codes) if code in codes]
    source = languages.get("source") or next(code for code in known if code != languages.get("target"))
    target = languages.get("target") or next(code for code in known if code != source)
    return choose(pair, {"source": source, "target": target})
