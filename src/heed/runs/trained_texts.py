"""The hashes of the texts that a model was trained on, and of those that the model it started from was trained on."""

from pathlib import Path

from heed.data import contamination
from heed.data.contamination import BEFORE, NOT_KNOWN, TrainedTexts
from heed.models.folder_config import read_config
from heed.models.signature import CONFIG, check_beside
from heed.products.packages import find_model
from heed.runs.recipe import Recipe


def of_model(folder: Path) -> TrainedTexts | None:
    """Those of a run or of a model folder in it; None if there is no file. A damaged file is refused."""
    path = contamination.find(folder)
    if path is None:
        return None
    facts = read_config(find_model(folder))
    if not check_beside(path, facts):
        return None
    trained = contamination.read(path)
    told = BEFORE in trained.sides or "origin" not in facts  # earlier versions recorded nothing of a model on the hub
    return trained._replace(known=trained.known and told, several=len(facts.get("directions") or []) > 1)


def before(recipe: Recipe, folder: Path) -> TrainedTexts | None:
    """Those of the model that the run in `folder` starts from, as a resumed run has recorded them, or else from that
    model's own run; None without such a model.
    """
    base = recipe.model.folder
    if base is None:
        return None
    if recipe.model.fresh:
        return TrainedTexts({}, {}).as_before()
    return _recorded(folder, Path(base)) or (_of_base(Path(base)) if Path(base).is_dir() else NOT_KNOWN)


def _recorded(folder: Path, base: Path) -> TrainedTexts | None:
    """What an earlier part of the run has recorded, if anything; if that is damaged, the base must still be there."""
    if not (folder / "model" / CONFIG).is_file():
        return None
    try:
        own = of_model(folder)
    except ValueError:
        if not base.is_dir():
            raise
        return None
    if own is None or (own.known and BEFORE not in own.sides):
        return None
    return TrainedTexts(
        *({BEFORE: side[BEFORE]} if BEFORE in side else {} for side in (own.sides, own.ends)), own.known
    )


def _of_base(base: Path) -> TrainedTexts:
    own = of_model(base)
    return NOT_KNOWN if own is None else own.as_before()
