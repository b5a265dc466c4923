"""All tasks, by their name in recipes and model folders."""

from typing import Any

from heed.lazy import LazyMapping
from heed.tasks.described import DESCRIBED

TASKS: LazyMapping[Any] = LazyMapping(
    {
        "translation": "heed.tasks.translation:Translation",
        "denoising": "heed.tasks.denoising:Denoising",
        "gap-sentences": "heed.tasks.gap_sentences:GapSentences",
        "classification": "heed.tasks.classification:Classification",
        "regression": "heed.tasks.regression:Regression",
        "multiple-choice": "heed.tasks.multiple_choice:MultipleChoice",
        "tagging": "heed.tasks.tagging:Tagging",
        "question-answering": "heed.tasks.question_answering:QuestionAnswering",
        "language": "heed.tasks.language:LanguageModelling",
        "masked": "heed.tasks.masked:MaskedLanguage",
        "replaced-tokens": "heed.tasks.replaced_tokens:ReplacedTokens",
        "embedding": "heed.tasks.embedding:Embedding",
        "recommendation": "heed.tasks.recommendation:Recommendation",
        "image-classification": "heed.tasks.image_classification:ImageClassification",
        "speech-recognition": "heed.tasks.speech:SpeechRecognition",
        "image-generation": "heed.tasks.image_generation:ImageGeneration",
        "speech-synthesis": "heed.tasks.voice:SpeechSynthesis",
    }
)


def metric_labels() -> dict[str, str]:
    """The names of all metrics, as people read them; a run's log names them as the task does."""
    described = [own.metrics for own in DESCRIBED.values()]
    others = [TASKS[name].metrics for name in TASKS if name not in DESCRIBED]
    return {name: label for own in described for name, label in own.items()} | {
        metric.name: metric.label for own in others for metric in own
    }
