"""Load a model from a folder, or by its name on the Hugging Face hub."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heed.convert import ctranslate2, hub
from heed.data import shortlist
from heed.device import choose_device
from heed.models import MODELS
from heed.models import folder as model_folder
from heed.models.package import Package
from heed.products.packages import find_model, read_package, task_of
from heed.products.product import Product
from heed.tasks import TASKS
from heed.version import __version__
from heed.vocabularies import processors
from heed.vocabularies.labels import Labels, Numbers


def load(
    folders: str | Path | Sequence[str | Path],
    device: str = "auto",
    engine: str = "auto",
    verb: str | Sequence[str] | None = None,
) -> Any:
    """Load the translator, generator, classifier or summarizer of a run, a folder or a name on the hub; several form
    an ensemble. `verb`: what it is for, if it supports several verbs. An unsupported verb is refused before the
    weights are read.
    """
    names = [str(f) for f in ([folders] if isinstance(folders, str | Path) else folders)]
    chosen = choose_device(device)
    known = [product_of(name, verb) for name in names if Path(name).is_dir()]  # a name on the hub is downloaded first
    packages = [open_package(name) for name in names]
    product = (known or [_product(packages[0].task, names[0], verb, type(packages[0].model))])[0]
    for package, name in zip(packages, names, strict=True):
        _check_fit(package, product, name)
    packages = [package._replace(model=package.model.to(chosen)) for package in packages]
    return product.open(packages, names, engine=engine)


def product_of(name: str | Path, verb: str | Sequence[str] | None = None) -> type[Product] | None:
    """What a folder or a name on the hub holds, without reading its weights."""
    path = _folder(name, None)
    if ctranslate2.is_one(path):
        _refuse_ctranslate2(path)
    facts = model_folder.read_config(path)
    if "model_type" in facts or "architectures" in facts:
        from heed.convert import huggingface

        return _product(huggingface.task_of(path, facts), str(name), verb, huggingface.model_of(path, facts))
    system = MODELS.get(facts.get("model", {}).get("name"))
    return _product(task_of(path, facts), str(name), verb, system.model if system else object)


def _product(task: str, name: str, verb: str | Sequence[str] | None, model: type) -> type[Product]:
    bodies = [body for body in _bodies(verb) if issubclass(model, body.needs)]
    if bodies:
        return bodies[0]
    products = _products(task)
    if not products:
        raise ValueError(f"{name}: its task is {task!r}; heed has {', '.join(TASKS)}")
    if verb is None:
        return products[0]
    verbs = [verb] if isinstance(verb, str) else verb
    able = [product for own in verbs for product in products if own in product.verbs]
    if not able:
        raise ValueError(products[0].refusal(name, verbs[0]))
    return able[0]


def _products(task: str) -> Sequence[type[Product]]:
    """What models of a task are opened as; none for an unknown task."""
    if task == "sentence-pairs":  # these two are trained for another task
        from heed.products.pair_classifier import PairClassifier

        return (PairClassifier,)
    if task == "image-features":
        from heed.products.image_classifier import ImageEmbedder

        return (ImageEmbedder,)
    return TASKS[task].products if task in TASKS else ()


def _bodies(verb: str | Sequence[str] | None) -> list[type[Any]]:
    """The products with this verb that need no head: any suitable model will do."""
    if verb not in ("embed", "evaluate"):
        return []
    from heed.products.embedder import Embedder
    from heed.products.image_classifier import ImageEmbedder

    return [body for body in (Embedder, ImageEmbedder) if verb in body.verbs]


def _check_fit(package: Package, product: type[Product], name: str) -> None:
    """Refuse a model that does not match its task, or lacks processors of its product: config.json is damaged."""
    task, own = TASKS.get(package.task), package.processors
    needs = getattr(product, "needs", task.needs if task is not None and "target" in product.reads else object)
    if not isinstance(package.model, needs):
        raise ValueError(
            f"{name}: its task is {package.task!r}, which a {type(package.model).__name__} does not support: its "
            "config.json is damaged"
        )
    right = [part for part, one in own.items() if isinstance(one, Labels | Numbers) == (part == "labels")]
    lacking = [part for part in product.reads if part not in right]
    if lacking and not (lacking == ["source", "target"] and "text" in right):
        raise ValueError(
            f"{name}: {product.noun} needs {' and '.join(product.reads)}, and its config.json lists no {lacking[0]} in "
            "processors: it is damaged"
        )


def open_package(name: str | Path, revision: str | None = None) -> Package:
    """A model with its processors and metadata, from any folder that heed reads, or from the hub."""
    path = _folder(name, revision)
    if hub.origin(path):
        return _read_huggingface(path)
    if ctranslate2.is_one(path):
        _refuse_ctranslate2(path)
    facts = model_folder.read_config(path)
    if "model_type" in facts or "architectures" in facts:
        return _read_huggingface(path)
    return read_package(path, facts)


def may_be_model(name: str) -> bool:
    """Whether a name is a folder or, if there is no such file, looks like a name on the hub."""
    path, (plain, _, revision) = Path(name), name.partition("@")
    return path.is_dir() or (not path.exists() and hub.is_name(plain) and bool(revision or not hub.is_path(plain)))


def _folder(name: str | Path, revision: str | None) -> Path:
    """The folder of a model, which is downloaded if it is on the hub."""
    path = Path(name)
    if path.is_file():
        raise ValueError(f"{name} is a file: give a run, a model folder, or a name on the hub")
    if not path.is_dir() and revision is None and "@" in str(name):
        name, _, revision = str(name).rpartition("@")  # a name on the hub at a commit, a tag or a branch
    if not path.is_dir() and hub.is_name(str(name)) and (revision is not None or not hub.is_path(str(name))):
        try:
            return hub.fetch(str(name), revision)
        except ValueError as error:
            if not path.parent.is_dir():
                raise
            raise ValueError(f"{name}: no such folder, and on the hub: {error}") from error
    if revision is not None:
        raise ValueError(f"{name} is a local folder: a revision is for names on the hub")
    return find_model(path)


def read_task(name: str | Path) -> str:
    """The task of a model, without reading its weights."""
    path = _folder(name, None)
    facts = model_folder.read_config(path)
    if "model_type" in facts or "architectures" in facts:
        from heed.convert import huggingface

        return huggingface.task_of(path, facts)
    return task_of(path, facts)


def _read_huggingface(folder: Path) -> Package:
    from heed.convert import huggingface

    return huggingface.read(folder)


def write_package(package: Package, folder: Path) -> None:
    """A model folder in Heed's format."""
    folder.mkdir(parents=True, exist_ok=True)
    own = {"task": {"name": package.task}, "processors": processors.write(folder, package.processors)}
    texts = {} if package.shortlist is None else {shortlist.FILE: package.shortlist}
    model_folder.save(folder, package.model, {**own, **package.facts, "heed": __version__}, texts)


def _refuse_ctranslate2(path: Path) -> None:
    raise ValueError(
        f"{path} is a CTranslate2 folder, which heed can export but not read: its README.md explains how to use it"
    )
