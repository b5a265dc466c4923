"""The model card: what a model was made of, and how good it is."""

from pathlib import Path
from typing import Any

from heed.data.corpus import describe
from heed.data.filters import Report
from heed.evaluation.translation import metrics
from heed.runs.recipe import Recipe
from heed.runs.validation import Validation


def write(recipe: Recipe, facts: dict[str, Any], report: Report, validation: Validation) -> str:
    """README.md of a model folder."""
    data, model, trained = recipe.data, facts["model"], facts["trained"]
    source, target = facts["languages"]["source"] or "source", facts["languages"]["target"] or "target"
    files = [Path(f).name for f in (*data.source, *data.target, *data.tsv)] or [f"phrasebook ({data.phrasebook} pairs)"]
    bleu, chrf = (str(m.get_signature()).replace("|", "\\|") for m in _signed(validation))  # a bar would end the cell
    return f"""# Translator, {source} to {target}

Made by heed {facts["heed"]}. Use it with `heed translate FOLDER < text`.

| | |
|---|---|
| model | Transformer, {model["encoder_layers"]}+{model["decoder_layers"]} layers, width {model["dim"]}, {model["heads"]} heads, {model["vocab_size"]} subwords |
| weights | {trained["weights"]} |
| data | {", ".join(files)} |
| pairs | {report.kept} of {report.read}; left out: {describe(report)} |
| licence of the data | {data.licence or "not stated"} |

## Scores on the validation set ({len(validation.sources)} sentences, beam {recipe.training.valid_beam})

| metric | value | signature |
|---|---|---|
| BLEU | {trained["valid_bleu"]:.2f} | `{bleu}` |
| chrF2 | {trained["valid_chrf"]:.2f} | `{chrf}` |
| -log p a token | {trained["valid_loss"]:.4f} | |

The settings of the run are in `recipe.toml` of its folder.
"""


def _signed(validation: Validation) -> tuple:
    """Metrics that know how many references they had, which their signature tells."""
    bleu, chrf, _ = metrics(False, "13a")
    for metric in (bleu, chrf):
        metric.corpus_score(validation.references[:1], [validation.references[:1]])
    return bleu, chrf
