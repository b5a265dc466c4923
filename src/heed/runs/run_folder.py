"""What a run leaves behind: the model folder with its card, checkpoints, and the sentences that were watched."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from heed.convert.ctranslate2 import able, names
from heed.data import shortlist
from heed.files import write_text
from heed.models import folder as model_folder
from heed.models.package import Package
from heed.runs import model_card
from heed.runs.prepare import Prepared
from heed.runs.recipe import Recipe
from heed.runs.shortlist import choose
from heed.runs.validation import Translating, Validation, ValidationResult
from heed.runs.validation_history import ValidationHistory
from heed.training import checkpoints
from heed.version import __version__
from heed.vocabularies import folder as vocabularies

LARGE = 4000  # subwords of the target: with fewer a shortlist saves little


class RunFolder:
    """Writes into the folder of a run, so that whatever is there can be used at any time."""

    def __init__(
        self, folder: Path, recipe: Recipe, prepared: Prepared, validation: Validation, base: Package | None = None
    ):
        self.folder, self.recipe, self.prepared, self.validation = folder, recipe, prepared, validation
        self.base = base.facts if base is not None else {}
        self.languages = recipe.data.languages(self.base.get("languages") or {})
        # a text longer than any it has learned from is cut, not guessed at
        self.max_source = prepared.corpus.longest + len(prepared.subwords[0].marks.before) + 1
        self.checkpoints = folder / "checkpoints"

    def says(self) -> list[str]:
        """The languages, where nobody has said them."""
        data, (source, target) = self.recipe.data, self.languages.values()
        named = source and target and not (data.source_language and data.target_language)
        return (
            [f"A model from {source} to {target}, as the names of the files tell."] if named and not self.base else []
        )

    def write_samples(self, step: int, found: ValidationResult) -> None:
        folder = self.folder / "samples"
        folder.mkdir(exist_ok=True)
        text = "".join(f"{source}\n= {reference}\n> {said}\n\n" for source, reference, said in found.samples)
        write_text(folder / f"step-{step:06d}.txt", text)

    def write_model(self, model: nn.Module, found: ValidationResult, made_of: str, final: bool = False) -> None:
        """The model with the weights it has now. `made_of` says where those are from; the `final` one has a shortlist."""
        folder = self.folder / "model"
        folder.mkdir(exist_ok=True)
        facts = {
            "heed": __version__,
            "subwords": vocabularies.write(folder, self.prepared.subwords),
            "languages": self.languages,
            **{name: self.base[name] for name in ("origin",) if name in self.base},
            "max_source": self.max_source,
            "decoding": dataclasses.asdict(self.recipe.decoding),
            **self.validation.facts(model),
            "trained": {
                "task": self.recipe.task.name,
                "weights": made_of,
                **{f"valid_{name}": value for name, value in found.scores.items()},
            },
        }
        facts = model_folder.save(folder, model, facts)
        text = model_card.write(self.recipe, facts, self.prepared.corpus.report, self.validation.size)
        write_text(folder / "README.md", text)
        if final:
            self._write_shortlist(folder, model)

    def _write_shortlist(self, folder: Path, model: nn.Module) -> None:
        """For a fast search, where the vocabulary is large: if the validation set is translated as well with it.

        What a model has learned before from another corpus this one does not tell: then there is none.
        """
        source, target = self.prepared.subwords
        (folder / shortlist.FILE).unlink(missing_ok=True)
        if self.base or not isinstance(self.validation, Translating) or len(target) < LARGE or not able(model):
            return
        table = shortlist.learn(self.prepared.corpus, (source, target))
        few = choose(model, (source, target), table, self.validation.pairs, self.validation.budget)
        if few is not None:
            write_text(folder / shortlist.FILE, shortlist.to_text(few, (names(source), names(target))))

    def write_checkpoint(
        self,
        step: int,
        weights: Mapping[str, Tensor],
        training: Mapping[str, Tensor],
        state: Mapping[str, Any],
    ) -> None:
        """All that is needed to go on; of older ones, what is still needed."""
        checkpoints.write(self.checkpoints, step, weights, training, {**state, "key": self.prepared.key})
        checkpoints.prune(
            self.checkpoints, self.recipe.training.keep, self.needed(ValidationHistory(**state["record"]))
        )

    def needed(self, record: ValidationHistory) -> list[int]:
        """The steps whose weights the final model may be made of."""
        t = self.recipe.training
        wanted = {
            "best": record.best_steps(1),
            "average-best": record.best_steps(t.average),
            "average-last": record.saved[-t.average :],
        }
        return wanted.get(t.final, [])

    def kept(self, record: ValidationHistory) -> dict[int, Path]:
        """Of those, the weights that are still there."""
        paths = {step: self.checkpoints / f"step-{step:06d}" / checkpoints.MODEL for step in self.needed(record)}
        return {step: path for step, path in paths.items() if path.is_file()}
