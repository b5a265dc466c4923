"""The kind of served model of each folder."""

from collections.abc import Sequence
from pathlib import Path

from heed.loading import find_model, load
from heed.products.generator import Generator
from heed.products.image_classifier import ImageClassifier, ImageEmbedder
from heed.products.image_generator import ImageGenerator
from heed.products.product import Product
from heed.products.recognizer import Recognizer
from heed.products.recommender import Recommender
from heed.products.translator.directions import Direction
from heed.products.translator.translator import Translator
from heed.products.voice import Voice
from heed.service.http.asked_model import AskedModel
from heed.service.http.encoders import VERBS, ServedEncoder
from heed.service.http.image_models import ServedImageGenerator, ServedImageModel
from heed.service.http.language_models import ServedLanguageModel
from heed.service.http.models import ServedModel
from heed.service.http.recognizers import ServedRecognizer
from heed.service.http.recommenders import ServedRecommender
from heed.service.http.voices import ServedVoice


def open_models(folders: Sequence[str], device: str, engine: str) -> list[ServedModel | AskedModel]:
    """Open models of all served kinds; commas separate the translators of an ensemble. `ko-en=FOLDER` sets the
    languages of a translator that does not specify them, or chooses one of several directions; `embed=FOLDER` chooses
    the task of a model that supports several.
    """
    models: list[ServedModel | AskedModel] = []
    for given in folders:
        before, equals, rest = given.partition("=")
        folder = rest if equals and not Path(given).is_dir() else given
        names, said = folder.split(","), before if folder is rest else None
        name = _name(names[0])
        name = name if name not in [one.name for one in models] else f"{name}-{len(models) + 1}"
        verb = said if said in VERBS else None
        product = load(
            names, device, engine, verb or ("translate", "generate", *VERBS, "recommend", "transcribe", "speak")
        )
        if not isinstance(product, Translator):
            models.append(_asked_model(name, product, verb or next(iter(product.verbs)), said, folder))
        else:
            models.append(_translator(name, product, said, folder))
    return models


def _asked_model(name: str, product: Product, verb: str, said: str | None, folder: str) -> AskedModel:
    if isinstance(product, ImageClassifier):
        return ServedImageModel(name, product)
    if isinstance(product, ImageGenerator):
        return ServedImageGenerator(name, product)
    if isinstance(product, ImageEmbedder):
        raise ValueError(
            f"{folder} cannot be served: heed serve has image classifiers and image generators; for vectors of images "
            f"use heed embed {folder} images --out vectors.npy"
        )
    if said is not None and said != verb:
        raise ValueError(f"{said}={folder}: {folder} is {product.noun}, which has no languages: give its name only")
    if isinstance(product, Recommender):
        return ServedRecommender(name, product)
    if isinstance(product, Recognizer):
        return ServedRecognizer(name, product)
    if isinstance(product, Voice):
        return ServedVoice(name, product)
    return ServedLanguageModel(name, product) if isinstance(product, Generator) else ServedEncoder(name, product, verb)


def _translator(name: str, translator: Translator, pair: str | None, folder: str) -> ServedModel:
    if pair and len(translator.directions) > 1:
        translator = translator.toward(*pair.split("-", 1))
        [(source, target)], several = translator.directions, []
    elif len(translator.directions) > 1:
        several = translator.directions
        source, target = _default(translator)
    else:
        (source, target), several = _languages(pair, folder, translator), []
        stated = {"source": source, "target": target}  # the guard against copies needs them
        translator.facts = {**translator.facts, "languages": stated}
    return ServedModel(name, source, target, translator, directions=several)


def _default(translator: Translator) -> Direction:
    """The default direction of a multilingual model: the one its folder states, or one with English, which most
    people can read.
    """
    languages, pairs = translator.facts.get("languages") or {}, translator.directions
    source, target = languages.get("source"), languages.get("target")
    named = [pair for pair in pairs if source in (None, pair[0]) and target in (None, pair[1])] or pairs
    return next((pair for pair in named if "en" in pair), named[0])


def _name(folder: str) -> str:
    path = Path(folder)
    if not path.is_dir():
        return folder.split("/")[-1]
    path = path.resolve()
    return path.parent.name if find_model(path) == path and (path.parent / "recipe.toml").is_file() else path.name


def _languages(pair: str | None, folder: str, translator: Translator) -> tuple[str, str]:
    known = translator.facts.get("languages") or {}
    source, target = pair.split("-", 1) if pair and "-" in pair else (known.get("source"), known.get("target"))
    if not source or not target:
        raise ValueError(f"{folder} does not specify its languages: prefix them, as in ko-en={folder}")
    return source, target
