"""The output of a run: the model folder with its card, checkpoints, and samples."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from heed.data import contamination
from heed.files import sha256, write_bytes, write_text
from heed.models import folder as model_folder
from heed.models.package import Package
from heed.runs import final_validation, model_card, saved_recipe, trained_texts
from heed.runs.final_validation import FinalValidation
from heed.runs.recipe import Recipe
from heed.runs.validation_history import ValidationHistory
from heed.tasks.base import Prepared, Validation, ValidationResult
from heed.training import average, checkpoints
from heed.training.average import Weights
from heed.version import __version__
from heed.vocabularies import processors

RECIPE = "recipe.toml"


class RunFolder:
    """The folder of a run. Its contents are complete and usable at any time."""

    def __init__(
        self, folder: Path, recipe: Recipe, prepared: Prepared, validation: Validation, base: Package | None = None
    ):
        self.folder, self.recipe, self.prepared, self.validation = folder, recipe, prepared, validation
        self.base = base.facts if base is not None else {}
        self.trained_before = trained_texts.before(recipe, folder)  # now, since that model may be gone later
        self.checkpoints = folder / "checkpoints"
        self.named = saved_recipe.check(folder / RECIPE)  # the identifier of the run, if its recipe states it
        self.run = self.named or saved_recipe.identifier(recipe.to_toml())
        self.recorded: set[int] = set()  # steps whose weights the last checkpoint says are there

    def write_recipe(self, recipe: Recipe, by_data: Mapping[str, Any]) -> None:
        """Write the recipe, and as a comment the rest of the model's config, which the data determine."""
        rest = ", ".join(f"{name} {value}" for name, value in by_data.items() if value is not None)
        last = f"# The data determine the rest of the model: {rest}.\n" if rest else ""
        saved_recipe.write(self.folder / RECIPE, recipe.to_toml() + last, self.run)

    def check_run(self, run: str | None) -> None:
        """Refuse a checkpoint of another run than the recipe; without a recipe, the run is that of the checkpoint."""
        saved_recipe.check_run(self.folder / RECIPE, run)
        self.run = self.named or run or self.run

    def write_samples(self, step: int, found: ValidationResult) -> None:
        text = "".join(f"{source}\n= {reference}\n> {output}\n\n" for source, reference, output in found.samples)
        write_text(self.folder / "samples" / f"step-{step:06d}.txt", text)

    def write_model(
        self, model: nn.Module, found: ValidationResult, made_of: str, final: bool = False, search: Any = None
    ) -> None:
        """Write the model with its current weights. `made_of` describes them; the `final` one has all its files.
        `search`, if given, overrides the search settings of the recipe.
        """
        folder, task = self.folder / "model", self.recipe.task
        folder.mkdir(exist_ok=True)
        facts = {
            "heed": __version__,
            "task": {"name": task.name},
            "processors": processors.write(folder, self.prepared.processors),
            **task.facts(self.recipe, self.prepared, self.base),
            **({} if search is None else {"decoding": asdict(search)}),
            **self.validation.facts(model),
            "trained": {
                "task": task.name,
                "weights": made_of,
                **{f"valid_{name}": value for name, value in found.scores.items()},
                **task.trained_on(self.recipe, self.prepared),
            },
        }
        facts = self._save(folder, model, facts, self._final_texts(model) if final else {})
        write_text(folder / "README.md", model_card.write(self.recipe, facts, self.prepared, self.validation.size))
        data = task.card_rows(self.recipe, self.prepared, facts)
        kept = FinalValidation(dict(found.scores), list(found.outputs), data, dict(found.directions))
        final_validation.write(self.folder, kept)

    def _save(
        self, folder: Path, model: nn.Module, facts: Mapping[str, Any], texts: Mapping[str, str]
    ) -> dict[str, Any]:
        """Write the model and the files of a finished one, replacing those of another model; returns config.json."""
        saved = model_folder.save(folder, model, facts, texts, self._keep_files())
        for name in {*self.recipe.task.final_names} - {*texts}:
            (folder / name).unlink(missing_ok=True)
        return saved

    def _keep_files(self) -> dict[str, str]:
        """Copy what is kept of the prepared data, since the cache may be cleared; returns the hashes of the copies,
        by name.
        """
        kept = {path.name: self._kept(path) for path in self.recipe.task.kept_files(self.prepared)}
        for name, content in kept.items():
            if not (self.folder / name).is_file() or (self.folder / name).read_bytes() != content:
                write_bytes(self.folder / name, content)
        return {name: sha256(self.folder / name) for name in kept}

    def _kept(self, path: Path) -> bytes:
        """A file of the prepared data; the hashes of texts are joined by those of the model that the run started from."""
        if path.name != contamination.FILE or self.trained_before is None:
            return path.read_bytes()
        return contamination.read(path).after(self.trained_before).to_bytes()

    def _final_texts(self, model: nn.Module) -> dict[str, str]:
        """The files that the task adds to a finished model. None for a fine-tuned one, which knows more than this
        corpus shows.
        """
        return {} if self.base else self.recipe.task.final_files(model, self.prepared, self.validation)

    def write_checkpoint(
        self, step: int, weights: Mapping[str, Tensor], training: Mapping[str, Tensor], state: Mapping[str, Any]
    ) -> None:
        """Write everything needed to resume, and remove what is no longer needed of older checkpoints."""
        history = ValidationHistory(**state["record"])
        self.recorded = {own for own in self.needed(history) if own == step or own in self.kept(history)}
        own = {"key": self.prepared.key, "run": self.run, "kept": sorted(self.recorded)}
        checkpoints.write(self.checkpoints, step, weights, training, {**state, **own})
        before_end = [history.cooldown_from] if history.ends_at else []  # from where a finished run can be extended
        checkpoints.prune(self.checkpoints, step, self.recipe.training.keep, self.needed(history), before_end)

    def read_best(self, history: ValidationHistory) -> tuple[dict[str, Tensor], ValidationResult | None, str]:
        """The weights of the model folder, which are those of the best validation, its results if stored, and their
        description. Those of another step are refused: a newer one may have been written without a checkpoint.
        """
        folder, found, step = self.folder / "model", None, f"step {history.best_model()[1]:,}"
        weights, trained = model_folder.read_verified(folder), model_folder.read_config(folder)["trained"]
        made_of = f"moving average at {step}"
        if trained["weights"] not in (step, made_of):
            raise ValueError(
                f"{folder} has the weights of {trained['weights']}, but the best validation was at {step}: the final "
                "model cannot be made from it; restore it, or use the last weights with --resume --set "
                "training.final=ema"
            )
        scores = {name.removeprefix("valid_"): value for name, value in trained.items() if name.startswith("valid_")}
        with suppress(ValueError):  # a damaged one is made again
            kept = final_validation.read(self.folder)
            found = kept and ValidationResult(scores, [], list(kept.outputs), kept.directions)
        return weights, found, made_of

    def needed(self, history: ValidationHistory) -> list[int]:
        """The steps whose weights may be part of the final model."""
        t = self.recipe.training
        wanted = {
            "best": history.best_steps(1),
            "average-best": history.best_steps(t.average),
            "average-last": history.saved[-t.average :],
        }
        return wanted.get(t.final, [])

    def kept(self, history: ValidationHistory) -> dict[int, Path]:
        """Those of them that exist or should; `mean` refuses what is damaged or missing."""
        paths = {step: self.checkpoints / f"step-{step:06d}" for step in self.needed(history)}
        return {step: path for step, path in paths.items() if path.is_dir() or step in self.recorded}

    def mean(self, kept: Collection[Path]) -> Weights:
        """The mean of the weights of these checkpoints, each verified."""
        try:
            return average.mean(list(kept), checkpoints.read_weights)
        except ValueError as error:
            raise ValueError(
                f"{error}: the final model cannot be made from it; restore it, or use the last weights with --resume "
                "--set training.final=last"
            ) from error
