"""Advice based on the data of a run and on errors in its translations."""

from heed.evaluation.analysis import WordGroup
from heed.runs.report.findings import Advice, Findings
from heed.runs.report.settings import can_sample_subwords, either

RARE, UNSEEN = 0.01, 0.05  # share of the reference words from which rare and unseen words matter
LENGTH = 0.05  # how far the outputs may be shorter or longer than the references
NUMBERS, KEPT = 10, 0.9  # fewer numbers say nothing; of those in the references, the share that should be kept
COMMON = 0.01  # share of the sentences from which loops, copies, empty outputs and overlap matter
HALVED = 2000  # subwords of a vocabulary: half of fewer hardly holds the characters
FEW = 20  # sentences or words: from fewer, nothing is concluded
LONG, WORSE = 16, 0.8  # source words, and how much of the chrF of all sentences the long ones should have
WIDE = 2.0  # BLEU points: a half-width above it hides most differences between runs
FILTERED = 0.1  # share of the pairs that were filtered, from which it is worth looking at them


def overlap(f: Findings) -> Advice | None:
    seen = f.seen
    if seen is None or not f.sets or seen.either < max(1, COMMON * seen.total):
        return None
    return Advice(
        "overlap",
        f"On the {f.sets[-1].name}, the model {seen.describe()} ({seen.either / seen.total:.1%} of the pairs).",
        "Remove them from one of the two, and do not compare these scores with others until then.",
    )


def wide_interval(f: Findings) -> Advice | None:
    width = f.sets[0].half_widths.get("bleu", 0.0) if f.sets else 0.0
    if width <= WIDE:
        return None
    scores = f.sets[0].scores
    own = f.recipe.data
    more = "Validate on more sentences" if own.validated or own.phrasebook else "Set more pairs aside"
    command = "" if own.validated or own.phrasebook else f"--set data.holdout={4 * own.holdout}"
    return Advice(
        "wide interval",
        f"The {f.sets[0].name} has {scores.lines:,} sentences, and its BLEU is {scores.bleu.value:.1f} ± {width:.1f}: "
        "smaller differences between two runs may be due to chance.",
        f"{more}: four times as many sentences halve the interval.",
        command,
    )


def filtered(f: Findings) -> Advice | None:
    if f.filters is None or not (taken := sum(f.filters.taken.values())) > FILTERED * f.filters.read:
        return None
    return Advice(
        "filtered",
        f"{taken:,} of {f.filters.read:,} pairs ({taken / f.filters.read:.0%}) were filtered out: "
        f"{f.filters.describe()}.",
        "Check them: they may be good pairs in the wrong columns, or a filter may be too strict.",
        "--set filters.rejected=rejected.tsv",
    )


def unseen_words(f: Findings) -> Advice | None:
    groups = f.analysis.words if f.analysis else ()
    total = sum(group.words for group in groups)
    if not groups or groups[0].words < max(FEW, UNSEEN * total):
        return None
    return Advice(
        "unseen words",
        f"{groups[0].words / total:.1%} of the reference words never occur in {_counted(f)}, and {groups[0].recall:.0%} "
        "of them are in the outputs.",
        "Add text from the same domain as these sentences.",
    )


def rare_words(f: Findings) -> Advice | None:
    groups = f.analysis.words if f.analysis else ()
    total = sum(group.words for group in groups)
    often = next((group for group in reversed(groups) if group.words >= FEW), None)
    rare = groups[1] if len(groups) > 1 else WordGroup(0, 0, 0, 0)
    if often is None or often is rare or rare.words < max(FEW, RARE * total) or rare.recall >= 0.5 * often.recall:
        return None
    ways = _ways_to_split(f)
    return Advice(
        "rare words",
        f"Of the words that occur {rare.first} to {rare.last} times in {_counted(f)}, {rare.recall:.0%} are in the "
        f"outputs; of those that occur {_often(often)}, {often.recall:.0%}.",
        f"Use {either([*ways, 'more data'])}.",
        next(reversed(ways.values()), ""),
    )


def _ways_to_split(f: Findings) -> dict[str, str]:
    """Changes of the vocabulary that this run can make, with their commands."""
    subwords, size = f.recipe.subwords, f.model.get("vocab_size", 0)
    if f.recipe.model.folder:  # it comes with its vocabulary
        return {}
    if subwords.kind == "words":
        return {"subwords instead of whole words": '--set subwords.kind="bpe"'}
    ways = {"BPE-dropout": "--set subwords.sampling=0.1"} if can_sample_subwords(f) else {}
    if size >= HALVED and not (subwords.source_model or subwords.target_model):
        ways[f"a smaller vocabulary (it has {size:,} subwords)"] = f"--set subwords.size={size // 2}"
    return ways


def _counted(f: Findings) -> str:
    if f.text is None or f.text.counted == f.text.pairs:
        return "the training text"
    return f"the first {f.text.counted:,} of the {f.text.pairs:,} training pairs"


def length(f: Findings) -> Advice | None:
    if f.analysis is None or f.analysis.sentences < FEW or abs(f.analysis.length_ratio - 1) <= LENGTH:
        return None
    ratio, decoding, beam = f.analysis.length_ratio, f.recipe.decoding, f.sets[-1].beam
    if ratio > 1 and loops(f) is not None:
        return None  # that is why they are long
    short = ratio < 1
    alpha = decoding.length_penalty + 0.4 if short else max(0.0, decoding.length_penalty - 0.4)
    greedy = (
        " These outputs are from greedy search (beam 1), which the penalty does not affect: compare with a larger beam."
        * (beam == 1)
    )
    return Advice(
        "too short" if short else "too long",
        f"The outputs have {ratio:.2f} times as many tokens as the references: they are too {'short' if short else 'long'}.",
        f"Try a {'larger' if short else 'smaller'} length penalty (it is {decoding.length_penalty:g}).{greedy}",
        f"heed evaluate {f.folder} --source FILE --reference FILE --beam 5 --length-penalty {alpha:g}",
    )


def loops(f: Findings) -> Advice | None:
    if f.analysis is None or not f.sets or f.analysis.loops < max(2, COMMON * f.analysis.sentences):
        return None
    own, folder = f.sets[-1], f.folder
    again = "A model trained long enough rarely does this."
    if own.guarded and f.recipe.decoding.no_repeat:
        action, command = f"{again} Train it longer, or on more data.", ""
    elif own.guarded:
        action, command = (
            f"{again} The guard against loops has broken longer ones; until then, block repetitions, too.",
            f"heed translate {folder} --no-repeat 4 < text",
        )
    elif f.recipe.decoding.avoid_loops:
        action, command = (
            f"{again} Validation searches without guards: heed translate breaks loops by a second search. What is left "
            "of them shows on a test set.",
            f"heed report {folder} --source FILE --reference FILE",
        )
    else:
        action, command = (
            f"{again} Until then, switch on the guard against loops.",
            f"heed translate {folder} --avoid-loops < text",
        )
    return Advice(
        "loops",
        f"{f.analysis.loops:,} of {f.analysis.sentences:,} outputs ({f.analysis.loops / f.analysis.sentences:.1%}) repeat the "
        "same words or letters over and over.",
        action,
        command,
    )


def copies(f: Findings) -> Advice | None:
    if f.analysis is None or f.analysis.copies < max(2, COMMON * f.analysis.sentences):
        return None
    same = not f.recipe.filters.same
    return Advice(
        "copies",
        f"{f.analysis.copies:,} of {f.analysis.sentences:,} outputs ({f.analysis.copies / f.analysis.sentences:.1%}) "
        "consist mostly of source words that are not in the reference.",
        "Check for untranslated lines in the target side of the training text"
        + (", and filter pairs with the same text on both sides." if same else "."),
        "--set filters.same=true" if same else "",
    )


def empty(f: Findings) -> Advice | None:
    if f.analysis is None or f.analysis.empty < max(2, COMMON * f.analysis.sentences):
        return None
    return Advice(
        "empty",
        f"{f.analysis.empty:,} of {f.analysis.sentences:,} outputs ({f.analysis.empty / f.analysis.sentences:.1%}) are empty.",
        "Check for misaligned pairs; until then, require at least one token.",
        f"heed translate {f.folder} --min-length 2 < text",
    )


def numbers(f: Findings) -> Advice | None:
    a = f.analysis
    if a is None or a.numbers_in_references < NUMBERS or a.numbers_kept >= KEPT * a.numbers_in_references:
        return None
    return Advice(
        "numbers",
        f"{a.numbers_kept:,} of the {a.numbers:,} numbers in the sources appear in the outputs; the references have "
        f"{a.numbers_in_references:,}.",
        "Add pairs with numbers. Where a number must be right, add it as a term to keep (docs/guides/glossary.md).",
    )


def long_sources(f: Findings) -> Advice | None:
    if f.analysis is None or not f.sets:
        return None
    long = [group for group in f.analysis.lengths if group.first >= LONG and group.sentences >= FEW]
    whole = f.sets[-1].scores.chrf.value
    if not long or long[-1].chrf >= WORSE * whole:
        return None
    worst = long[-1]
    size = f"{worst.first} words or more" if worst.last is None else f"{worst.first} to {worst.last} words"
    return Advice(
        "long sources",
        f"Sources of {size} have a chrF of {worst.chrf:.1f}; overall it is {whole:.1f}.",
        f"Add longer pairs (filters.max_length is {f.recipe.filters.max_length} subwords), or split long sources into sentences.",
    )


def _often(group: WordGroup) -> str:
    return f"{group.first} times or more" if group.last is None else f"{group.first} to {group.last} times"
