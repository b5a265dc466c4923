"""heed evaluate: warnings about what is probably a mistake: swapped test files, empty translations."""

import argparse


def warn(args: argparse.Namespace, translator, sources: list[str] | None, translations: list[str]) -> None:
    """Warn on standard error; the scores are computed all the same. `translator` is None for a file of translations."""
    from heed.cli.common import errors

    found = [] if translator is None else [_swapped(args.source, args.reference[0], translator.facts)]
    found.append(_empty(sources, translations))
    for sentence in filter(None, found):
        errors().print(f"Warning: {sentence}", markup=False, highlight=False, soft_wrap=True)


def _swapped(source: str, reference: str, facts: dict) -> str | None:
    """Whether the file names give the languages of the model the wrong way round."""
    from heed.text.languages import language_of_files

    languages = facts.get("languages") or {}
    own = languages.get("source"), languages.get("target")
    files = language_of_files([source]), language_of_files([reference])
    if None in own or own[0] == own[1] or files != own[::-1]:
        return None
    return (
        f"the model translates {own[0]} to {own[1]}, but by their names --source {source} is {files[0]} and --reference "
        f"{reference} is {files[1]}: they may be swapped."
    )


def _empty(sources: list[str] | None, translations: list[str]) -> str | None:
    """How many translations are empty; those of empty lines do not count."""
    if sources is not None and len(sources) == len(translations):
        translations = [own for text, own in zip(sources, translations, strict=True) if text.strip()]
    count = sum(not text.strip() for text in translations)
    hint = ": the model may need more training" if sources is not None and 2 * count > len(translations) else ""
    return f"{count:,} of {len(translations):,} translations are empty{hint}." if count else None
