"""All tasks, by their name in recipes and model folders."""

from heed.lazy import LazyMapping
from heed.tasks.base import Task

TASKS: LazyMapping[type[Task]] = LazyMapping(
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
    """The display names of all metrics; a run's log uses the task's names."""
    return {metric.name: metric.label for task in TASKS.values() for metric in task.metrics}
