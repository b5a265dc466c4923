"""Every task, by the name that recipes and model folders call it."""

from heed.tasks.base import Task
from heed.tasks.classification import Classification
from heed.tasks.denoising import Denoising
from heed.tasks.gap_sentences import GapSentences
from heed.tasks.language import LanguageModelling
from heed.tasks.translation import Translation

TASKS: dict[str, type[Task]] = {
    "translation": Translation,
    "denoising": Denoising,
    "gap-sentences": GapSentences,
    "classification": Classification,
    "language": LanguageModelling,
}
