"""What a run leaves behind: the model folder with its card, and the sentences that were watched."""

import dataclasses
from pathlib import Path

from torch import nn

from heed import __version__
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
            "subwords": self._write_subwords(folder),
            "languages": {"source": data.source_language, "target": data.target_language},
            "max_source": self.max_source,
            "decoding": dataclasses.asdict(self.recipe.decoding),
            "alignment": self.validation.alignment_rows(model)._asdict(),
            "trained": {
                "weights": made_of,
                "valid_bleu": found.bleu,
                "valid_chrf": found.chrf,
                "valid_loss": found.loss,
            },
        }
        facts = model_folder.save(folder, model, facts)
        text = card.write(self.recipe, facts, self.prepared.corpus.report, self.validation)
        model_folder.write_text(folder / "README.md", text)

    def _write_subwords(self, folder: Path) -> dict[str, str]:
        joint = self.prepared.joint
        names = {side: "subwords.spm" if joint else f"{side}.spm" for side in ("source", "target")}
        for name, part in zip(names.values(), self.prepared.subwords, strict=True):
            part.save(folder / name)
        return names
