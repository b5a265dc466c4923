"""Every task, by the name that recipes and model folders call it."""

from heed.tasks.base import Task
from heed.tasks.classification import Classification
from heed.tasks.denoising import Denoising
from heed.tasks.embedding import Embedding
from heed.tasks.gap_sentences import GapSentences
from heed.tasks.image_classification import ImageClassification
from heed.tasks.image_generation import ImageGeneration
from heed.tasks.language import LanguageModelling
from heed.tasks.masked import MaskedLanguage
from heed.tasks.multiple_choice import MultipleChoice
from heed.tasks.question_answering import QuestionAnswering
from heed.tasks.recommendation import Recommendation
from heed.tasks.regression import Regression
from heed.tasks.replaced_tokens import ReplacedTokens
from heed.tasks.speech import SpeechRecognition
from heed.tasks.tagging import Tagging
from heed.tasks.translation import Translation
from heed.tasks.voice import SpeechSynthesis

TASKS: dict[str, type[Task]] = {
    "translation": Translation,
    "denoising": Denoising,
    "gap-sentences": GapSentences,
    "classification": Classification,
    "regression": Regression,
    "multiple-choice": MultipleChoice,
    "tagging": Tagging,
    "question-answering": QuestionAnswering,
    "language": LanguageModelling,
    "masked": MaskedLanguage,
    "replaced-tokens": ReplacedTokens,
    "embedding": Embedding,
    "recommendation": Recommendation,
    "image-classification": ImageClassification,
    "speech-recognition": SpeechRecognition,
    "image-generation": ImageGeneration,
    "speech-synthesis": SpeechSynthesis,
}


def metric_labels() -> dict[str, str]:
    """The names of all metrics, as people read them; a run's log names them as the task does."""
    return {metric.name: metric.label for task in TASKS.values() for metric in task.metrics}
