"""What a run leaves behind: the model folder with its card, and the sentences that were watched."""

import dataclasses
from pathlib import Path

from torch import nn

from heed import __version__
from heed.data.vocabularies import folder as vocabularies
from heed.models import folder as model_folder
from heed.runs import card
from heed.runs.prepare import Prepared
from heed.runs.recipe import Recipe
from heed.runs.validation import Validation, Validity


class Product:
    """Writes into the folder of a run, so that whatever is there can be used at any time."""

    def __init__(self, folder: Path, recipe: Recipe, prepared: Prepared, validation: Validation):
        self.folder, self.recipe, self.prepared, self.validation = folder, recipe, prepared, validation
        # a text longer than any it has learned from is cut, not guessed at
        self.max_source = int(prepared.corpus.source.lengths.max()) + 1

    def write_samples(self, step: int, found: Validity) -> None:
        folder = self.folder / "samples"
        folder.mkdir(exist_ok=True)
        text = "".join(f"{source}\n= {reference}\n> {said}\n\n" for source, reference, said in found.samples)
        model_folder.write_text(folder / f"step-{step:06d}.txt", text)

    def write_model(self, model: nn.Module, found: Validity, made_of: str) -> None:
        """The model with the weights it has now. `made_of` says where those are from."""
        folder = self.folder / "model"
        folder.mkdir(exist_ok=True)
        data = self.recipe.data
        facts = {
            "heed": __version__,
            "subwords": vocabularies.write(folder, self.prepared.subwords),
            "languages": {"source": data.source_language, "target": data.target_language},
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
        text = card.write(self.recipe, facts, self.prepared.corpus.report, self.validation.size)
        model_folder.write_text(folder / "README.md", text)
