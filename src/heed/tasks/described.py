"""What heed info tells of the tasks, without torch, which the tasks import, and of what heed opens but does not train.
A test compares both.
"""

from collections.abc import Mapping
from typing import NamedTuple


class TaskDescription(NamedTuple):
    """The noun of a task's first product, how its folder is used, with {} for its path, and the labels of its metrics by name."""

    noun: str
    example: str
    metrics: Mapping[str, str]


DESCRIBED = {
    "translation": TaskDescription(
        "a translator",
        "heed translate {} < text",
        {"bleu": "BLEU", "chrf": "chrF", "rouge": "ROUGE-L", "loss": "loss"},
    ),
    "denoising": TaskDescription(
        "a translator",
        "heed train --from {} --source … --target … --out …",
        {"loss": "loss"},
    ),
    "gap-sentences": TaskDescription(
        "a summarizer",
        "heed train --from {} --source … --target … --out …",
        {"loss": "loss"},
    ),
    "classification": TaskDescription(
        "a classifier",
        "heed classify {} < text",
        {"accuracy": "accuracy", "f1": "F1", "matthews": "Matthews", "loss": "loss"},
    ),
    "regression": TaskDescription(
        "a regression model",
        "heed classify {} < text",
        {"pearson": "Pearson", "spearman": "Spearman", "loss": "loss"},
    ),
    "multiple-choice": TaskDescription(
        "a multiple-choice model",
        "heed classify {} < questions.tsv",
        {"accuracy": "accuracy", "loss": "loss"},
    ),
    "tagging": TaskDescription(
        "a tagger",
        "heed tag {} < text",
        {"f1": "F1", "precision": "precision", "recall": "recall", "accuracy": "accuracy", "loss": "loss"},
    ),
    "question-answering": TaskDescription(
        "a question-answering model",
        'heed answer {} --context FILE "question"',
        {"exact": "exact match", "f1": "F1", "loss": "loss"},
    ),
    "language": TaskDescription(
        "a language model",
        "heed generate {}",
        {"loss": "loss"},
    ),
    "masked": TaskDescription(
        "a masked language model",
        "heed fill {} TEXT",
        {"loss": "loss", "accuracy": "accuracy", "pairs": "accuracy of pairs"},
    ),
    "replaced-tokens": TaskDescription(
        "a masked language model",
        "heed fill {} TEXT",
        {
            "loss": "loss",
            "generator": "generator's loss",
            "discriminator": "discriminator's loss",
            "replaced": "replaced tokens found",
            "original": "original tokens found",
        },
    ),
    "embedding": TaskDescription(
        "an embedding model",
        "heed embed {} --input texts.txt --out vectors.npy",
        {"recall@1": "recall@1", "mrr": "MRR", "spearman": "Spearman", "loss": "loss"},
    ),
    "recommendation": TaskDescription(
        "a recommender",
        "heed recommend {} --user USER",
        {"ndcg@10": "NDCG@10", "hr@10": "HR@10", "mrr": "MRR", "coverage": "coverage", "loss": "loss"},
    ),
    "image-classification": TaskDescription(
        "an image classifier",
        "heed classify {} image.png",
        {"accuracy": "accuracy", "top5": "top 5", "loss": "loss"},
    ),
    "speech-recognition": TaskDescription(
        "a speech recognizer",
        "heed transcribe {} recording.wav",
        {"wer": "WER", "cer": "CER", "loss": "loss"},
    ),
    "image-generation": TaskDescription(
        "an image generator",
        "heed generate {} --out samples.png",
        {"bits": "bits/dim", "loss": "loss"},
    ),
    "speech-synthesis": TaskDescription(
        "a voice",
        'heed speak {} "Hello." --out hello.wav',
        {"mcd": "MCD", "ends": "ends", "loss": "loss"},
    ),
    "image-features": TaskDescription("an image model", "heed embed {} images --out vectors.npy", {}),
    "sentence-pairs": TaskDescription("a sentence-pair model", "heed classify {} < pairs.tsv", {}),
    "causal-encoder": TaskDescription(
        "an encoder with a causal head", "heed embed {} --input texts.txt --out vectors.npy", {}
    ),
}
