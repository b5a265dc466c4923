"""The model card: what a model was made of, and how good it is."""

from pathlib import Path
from typing import Any

from heed.data.filters import FilterReport
from heed.evaluation.translation import metrics
from heed.runs.recipe import Recipe
from heed.training.report import SCORES

KINDS = {
    "translation": ("Translator, {source} to {target}", "heed translate FOLDER < text"),
    "denoising": ("Pre-trained by denoising", "heed train --from FOLDER"),
    "gap-sentences": ("Pre-trained by gap sentences", "heed train --from FOLDER"),
    "classification": ("Classifier", "heed classify FOLDER < text"),
    "language": ("Language model", "heed generate FOLDER"),
}


def write(recipe: Recipe, facts: dict[str, Any], report: FilterReport, size: int) -> str:
    """README.md of a model folder. `size` is that of the validation set."""
    data, model, trained = recipe.data, facts["model"], facts["trained"]
    languages = {side: facts["languages"][side] or side for side in ("source", "target")}
    title, use = KINDS[recipe.task.name]
    files = [Path(f).name for f in (*data.source, *data.target, *data.tsv)] or [f"phrasebook ({data.phrasebook} pairs)"]
    started = f"\n| started from | {Path(recipe.model.folder).name} |" if recipe.model.folder else ""
    labels = f"\n| labels | {', '.join(facts['labels'])} |" if "labels" in facts else ""
    rows = [
        f"| {SCORES[name]} | {trained[f'valid_{name}']:.4g} | {_signature(name)} |"
        for name in SCORES
        if f"valid_{name}" in trained
    ]
    return f"""# {title.format(**languages)}

Made by heed {facts["heed"]}. Use it with `{use}`.

| | |
|---|---|
| model | {_shape(model)} |
| weights | {trained["weights"]} |{started}{labels}
| data | {", ".join(files)} |
| {"texts" if recipe.task.one_sided else "pairs"} | {report.kept} of {report.read}; left out: {report.describe()} |
| licence of the data | {data.licence or "not stated"} |

## Scores on the validation set ({size} sentences, beam {recipe.training.valid_beam})

| metric | value | signature |
|---|---|---|
{chr(10).join(rows)}

The settings of the run are in `recipe.toml` of its folder.
"""


def _shape(model: dict[str, Any]) -> str:
    if "encoder_layers" not in model:
        layers, words = f"{model['layers']} layers of {model['hidden']}", f"{model['vocab_size']} words or subwords"
        return f"{model['name']} ({model['cell']}), {layers}, embeddings of {model['dim']}, {words}"
    layers, width = f"{model['encoder_layers']}+{model['decoder_layers']} layers", f"width {model['dim']}"
    kind = f"{model['heads']} heads" if "heads" in model else f"{model['cell']}, attention {model['attention']}"
    return f"{model['name'].capitalize()}, {layers}, {width}, {kind}, {model['vocab_size']} subwords"


def _signature(name: str) -> str:
    """Of a score of sacreBLEU, its signature; of another, what it means."""
    if name not in ("bleu", "chrf"):
        meaning = {"loss": "-log p a token, or a label", "rouge": "F1, words lower-cased", "accuracy": "per cent"}
        return meaning[name]
    metric = dict(zip(("bleu", "chrf"), metrics(False, "13a"), strict=False))[name]
    metric.corpus_score(["a"], [["a"]])  # so that it knows how many references it had, which its signature tells
    return "`" + str(metric.get_signature()).replace("|", "\\|") + "`"  # a bar would end the cell
