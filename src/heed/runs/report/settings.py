"""What several pieces of advice ask of the settings of a run."""

from heed.runs.report.findings import Findings


def can_sample_subwords(f: Findings) -> bool:
    """Whether BPE-dropout is off and could be on."""
    task, subwords = f.recipe.task, f.recipe.subwords
    able = getattr(task, "samples_subwords", False) and not f.recipe.model.vocabulary and not f.recipe.model.folder
    return able and subwords.kind != "words" and not subwords.sampling


def either(ways: list[str]) -> str:
    """One of the ways, in words."""
    return ways[0] if len(ways) == 1 else f"{', '.join(ways[:-1])} or {ways[-1]}"
