"""What differs from task to task: how batches are made, what is minded, how it is validated."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torch import nn

from heed.data.batching import Collate, Noise, collate, collate_labelled
from heed.data.corpus import Corpus
from heed.data.gaps import Gaps
from heed.data.noise import Denoise, sentence_ends, sentences
from heed.data.readers import Line
from heed.data.streams import Stream, Windows
from heed.runs.language import Continuing, windows
from heed.runs.recipe import Recipe
from heed.runs.validation import Classifying, Restoring, Translating, Validation
from heed.tasks.classification import Classification
from heed.tasks.config import TaskConfig
from heed.tasks.gap_sentences import GapSentences
from heed.tasks.language import LanguageModelling
from heed.tasks.translation import RDrop, Taught, Translation
from heed.vocabularies.vocabulary import Pair, Vocabulary

METRICS = {  # the first is what "best" means unless said
    "translation": ("chrf", "bleu", "rouge", "loss"),
    "denoising": ("loss",),
    "gap-sentences": ("loss",),
    "classification": ("accuracy", "loss"),
    "language": ("loss",),
}


class Job(NamedTuple):
    """`metric` is what "best" means."""

    objective: Callable
    validation: Validation
    metric: str
    together: Collate = collate
    noise: Noise | None = None
    windows: Callable[[Stream, tuple[int, int]], Windows] | None = None  # where one text is read, not many

    def says(self, most: int, corpus: Corpus | Stream) -> list[str]:
        """What a user should know before it begins; a model has `most` places."""
        said = [corpus.summary()] if isinstance(corpus, Stream) else []
        if long := self.validation.too_long(most):
            said.append(
                f"{long:,} of {self.validation.size:,} validation texts are too long for the model: they do not count in the loss."
            )
        if isinstance(self.objective, Taught):
            who = "the teacher thinks" if len(self.objective.teachers) == 1 else "the teachers think together"
            said.append(f"{self.objective.share:.0%} of the loss is about what {who} of each next word.")
        if isinstance(self.noise, Gaps):
            some = range(0, len(corpus), max(1, len(corpus) // 1000))
            single = sum(len(sentences(corpus.source[i], self.noise.ends)) < 2 for i in some)
            if single == len(some):
                raise ValueError(
                    "task.name is 'gap-sentences', but no text has two sentences: an article should be one line of several"
                )
            if single:
                said.append(
                    f"About {100 * single / len(some):.0f} % of the texts are one sentence, which has no gap: they are to be said whole."
                )
        return said


def job(recipe: Recipe, lines: Sequence[Line], subwords: Pair, teachers: tuple[nn.Module, ...] = ()) -> Job:
    """The parts of a run that its task decides. `lines` are the validation set; teachers are listened to."""
    t, task = recipe.training, recipe.task
    watched: dict[str, Any] = {"budget": t.valid_tokens, "samples": t.samples}
    metric = METRICS[task.name][0] if t.metric == "auto" else t.metric
    if metric not in METRICS[task.name]:
        raise ValueError(f"training.metric is {metric!r}; {task.name} has {', '.join(METRICS[task.name])}")
    if task.name == "translation":
        objective = RDrop(t.label_smoothing, t.r_drop) if t.r_drop else Translation(t.label_smoothing)
        if teachers:
            objective = Taught(teachers, t.label_smoothing, t.distillation_loss)
        return Job(objective, Translating(lines, subwords, **watched), metric)
    if t.r_drop:
        raise ValueError(f"training.r_drop is {t.r_drop}; it is for translation alone, not for {task.name}")
    if task.name == "classification":
        objective = Classification(t.label_smoothing)
        return Job(objective, Classifying(lines, subwords, **watched), metric, together=collate_labelled)
    if task.name == "language":
        validation = Continuing(lines, subwords[0], **watched)
        return Job(LanguageModelling(t.label_smoothing), validation, metric, windows=windows(recipe))
    noise = _noise(task, subwords[0])
    objective = GapSentences(t.label_smoothing) if task.name == "gap-sentences" else Translation(t.label_smoothing)
    return Job(objective, Restoring(lines, subwords, noise, **watched), metric, noise=noise)


def _noise(task: TaskConfig, subwords: Vocabulary) -> Noise:
    pieces = subwords.pieces(range(len(subwords)))
    ends = sentence_ends(pieces)
    # <unk_7> and the like are no words: neither hidden nor said instead of one
    keep = tuple(i for i, piece in enumerate(pieces) if re.fullmatch(r"<(?!0x)\w+>", piece))
    if task.name == "gap-sentences":
        return Gaps(
            subwords.marks,
            ends,
            keep,
            choice=task.choice,
            gap_share=task.gap_share,
            word_share=task.word_share,
            masked=task.masked,
            swapped=task.swapped,
        )
    return Denoise(
        subwords.marks,
        ends,
        keep,
        infill=task.infill,
        mask=task.mask,
        delete=task.delete,
        permute=task.permute,
        rotate=task.rotate,
    )
