"""Text to speech: learn one or several voices from recordings with their texts (Transformer TTS)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from heed.config import check_fraction, check_not_negative
from heed.data import pronunciations
from heed.data.audio import manifests
from heed.data.audio.batches import Speech
from heed.data.audio.prepare import SpeechCorpus, features_of, prepare
from heed.data.audio.voices import VoiceBatches, VoiceConfig, collate, spelled
from heed.data.batching import DataPosition, plan
from heed.data.prepare import digest
from heed.evaluation.voice import distortion
from heed.models.abilities import SpeaksText
from heed.models.package import Package
from heed.products.pronunciation import open_model
from heed.products.voice import Voice
from heed.tasks.base import Metric, Objective, Prepared, Task, Tell, Validation, ValidationResult
from heed.tasks.speech import hold_out
from heed.tasks.validation import sample_rows, trained_rows_too
from heed.tasks.voice_loss import VoiceLoss, last_steps
from heed.vocabularies import characters
from heed.vocabularies.labels import Labels
from heed.vocabularies.phonemes import of_dictionary
from heed.vocabularies.sentencepiece import SubwordsConfig
from heed.vocabularies.sound import SoundFeatures
from heed.vocabularies.vocabulary import Vocabulary

NEAR = 5  # frames: an end that is no farther from the true one is right
VALID_FRAMES = 20_000  # of a batch of validation


@dataclass(frozen=True)
class VoiceSettings:
    ends: float = 1.0  # weight of the stop-token loss
    end_weight: float = 5.0  # weight of the final step in that loss
    guided: float = 10.0  # weight of guided attention; 0 is off
    frame_dropout: float = (
        0.9  # up to this share of its earlier frames is hidden from the decoder in training; 0 is off
    )
    valid_spoken: int = 20  # number of validation texts synthesized for the mel-cepstral distortion

    def __post_init__(self):
        for name in ("ends", "end_weight", "guided"):
            check_not_negative(f"task.{name}", getattr(self, name))
        check_fraction("task.frame_dropout", self.frame_dropout)
        if self.valid_spoken < 1:
            raise ValueError(f"task.valid_spoken is {self.valid_spoken}; it must be at least 1")


class SpeechSynthesis(Task):
    name, title, example = "speech-synthesis", "Voice", 'heed speak {} "Hello." --out hello.wav'
    Settings, needs, products, unit = VoiceSettings, SpeaksText, (Voice,), "recordings"
    sections: ClassVar[Mapping[str, type]] = {"data": VoiceConfig}
    best = "loss"
    metrics = (
        Metric("mcd", "MCD", False, lambda: "mel-cepstral distortion of spoken texts, in decibels, aligned in time"),
        Metric("ends", "ends", True, lambda: f"per cent of recordings whose end is found within {NEAR} frames"),
        Metric("loss", "loss", False, lambda: "mean distance of the numbers of each next frame, given those before", 3),
    )

    # data

    def check(self, recipe: Any) -> None:
        if recipe.model.folder:
            raise ValueError(
                "model.folder (--from) is not supported, since a voice is trained from scratch: leave it out"
            )

    def prepare(self, recipe: Any, base: Package | None, tell: Tell) -> Prepared:
        data = recipe.data
        train = [own for name in data.audio for own in manifests.read(name, data.format, data.split)]
        valid = [own for name in data.valid_audio for own in manifests.read(name, data.format, data.split)]
        if not valid:
            train, valid = hold_out(train, data.holdout)
        features = base.processors["sound"] if base is not None else features_of(data, train)
        if features.settings.kind != "mel":
            raise ValueError("data.audio contains stored features, and a voice is trained on audio: give recordings")
        key, corpus = prepare(train, features, tell, speeds=data.speeds, longest=data.max_seconds)
        valid_key, valid_corpus = prepare(valid, features, tell, longest=data.max_seconds)
        features = SoundFeatures(features.settings, *corpus.moments) if base is None else features
        texts = [spelled(text) for own in (corpus, valid_corpus) for text in own.texts]
        words = base.processors["text"] if base is not None else learned(data, texts, len(corpus.texts))
        speakers = Labels(sorted(set(corpus.speakers)))
        unknown = sorted({own for own in valid_corpus.speakers if own not in speakers.names})
        if unknown:
            raise ValueError(f"data.valid_audio has a speaker who is not in the training data: {unknown[0]!r}")
        sizes = {"vocab_size": len(words), "outputs": len(features), "speakers": len(speakers.names)}
        whole = digest(key, valid_key, features.key(), words.key(), speakers.names)
        made = [
            Speech(own, np.arange(len(own)), words.encode(list(map(spelled, own.texts))))
            for own in (corpus, valid_corpus)
        ]
        processors = {"sound": features, "text": words, "speakers": speakers}
        return Prepared(whole, *made, processors, sizes if base is None else {})

    def batches(
        self, recipe: Any, prepared: Prepared, plan: Any, share: tuple[int, int], position: DataPosition
    ) -> Iterator[tuple[DataPosition, Any]]:
        return self._batches(recipe, prepared, share).start(position)

    def _batches(self, recipe: Any, prepared: Prepared, share: tuple[int, int] = (0, 1)) -> VoiceBatches:
        sound, words, speakers = prepared.processors.values()
        return VoiceBatches(
            prepared.train,
            numbers_of(prepared.train.corpus, speakers),
            sound,
            words.special,
            reduction=recipe.model.setting("reduction"),
            budget=recipe.training.batch_tokens,
            seed=recipe.training.seed,
            share=share,
        )

    # training

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        s = self.settings
        return VoiceLoss(s.ends, s.end_weight, s.guided, s.frame_dropout)

    def validation(self, recipe: Any, prepared: Prepared) -> "VoiceValidation":
        return VoiceValidation(recipe, prepared, self.settings, self.facts(recipe, prepared, {}))

    # reports and records

    def data_summary(self, prepared: Prepared) -> str:
        facts, speakers = prepared.train.corpus.facts, prepared.processors["speakers"].names
        voices = f" of {len(speakers)} speakers" if len(speakers) > 1 else ""
        left = f"; {facts['left_out']:,} too long, skipped (data.max_seconds)" if facts["left_out"] else ""
        return f"{facts['recordings']:,} training recordings{voices}, {facts['seconds'] / 60:.1f} minutes{left}."

    def notes(self, recipe: Any, prepared: Prepared, validation: Validation, max_length: int) -> list[str]:
        batches = len(self._batches(recipe, prepared).plan(0))
        return [
            *trained_rows_too(self.unit, prepared.train, prepared.valid),
            f"{validation.size:,} validation recordings; {batches:,} batches per epoch.",
        ]

    def facts(self, recipe: Any, prepared: Prepared, base: Mapping[str, Any]) -> dict[str, Any]:
        speech = prepared.train
        ratios = speech.corpus.lengths / np.array([len(own) + 1 for own in speech.ids])
        language = {"language": recipe.data.language} if recipe.data.language else {}
        return {**language, "frames_per_token": round(float(ratios.max()), 3)}

    def card_rows(self, recipe: Any, prepared: Prepared, facts: Mapping[str, Any]) -> dict[str, str]:
        speakers = [name or "one" for name in prepared.processors["speakers"].names]
        return {
            "data": ", ".join(Path(path).name for path in recipe.data.audio),
            "recordings": self.data_summary(prepared),
            "speakers": ", ".join(speakers),
            "licence of the data": recipe.data.licence or "not stated",
        }


def learned(data: VoiceConfig, texts: list[str], trained: int) -> Vocabulary:
    """The vocabulary for texts, of which the first `trained` are for training: letters, or the phonemes of a
    dictionary.
    """
    if data.phonemes is None:
        return characters.learn("characters", texts[:trained], SubwordsConfig())
    words = of_dictionary(pronunciations.read(Path(data.phonemes)))
    missing = words.missing(texts)
    if missing and data.g2p is None:
        raise ValueError(
            f"data.phonemes, {data.phonemes}, lacks {len(missing):,} of the words in the texts ({', '.join(missing[:3])}): add them, or set "
            "data.g2p to a model that pronounces them (recipes/g2p.toml)"
        )
    if missing:
        words.add(open_model(data.g2p)(missing), data.g2p)
    return words


def numbers_of(corpus: SpeechCorpus, speakers: Labels) -> list[int]:
    """The index of the speaker of each recording."""
    numbers = {name: i for i, name in enumerate(speakers.names)}
    return [numbers[name] for name in corpus.speakers]


class VoiceValidation:
    """The distance of each next frame and the accuracy of the stop token with teacher forcing; and the distortion of
    free-running synthesis.
    """

    def __init__(self, recipe: Any, prepared: Prepared, chosen: VoiceSettings, facts: Mapping[str, Any]):
        self.speech, self.processors, self.voice_facts = prepared.valid, prepared.processors, dict(facts)
        self.size, self.loss = len(self.speech), VoiceLoss(chosen.ends, chosen.end_weight, 0.0)
        self.numbers = numbers_of(self.speech.corpus, self.processors["speakers"])
        self.spoken = sample_rows(self.size, chosen.valid_spoken)
        self.shown = recipe.training.samples

    def run(self, model: nn.Module) -> ValidationResult:
        model.eval()
        sound, words, speakers = self.processors.values()
        frames = [sound.normalized(self.speech.corpus.frames(i)) for i in range(self.size)]
        loss, ends = self._given(model, frames, words.special)
        voice = Voice(model, sound, words, speakers, self.voice_facts)
        rows = self.spoken
        made, _ = voice.frames([self.speech.ids[i] for i in rows], [self.numbers[i] for i in rows])
        scale, mean = (np.asarray(own, dtype=np.float32) for own in (sound.deviation, sound.mean))
        both = ((own * scale + mean, frames[i] * scale + mean) for i, own in zip(rows, made, strict=True))
        scores = {"mcd": float(np.mean([distortion(*pair) for pair in both])), "ends": ends, "loss": loss}
        told = [
            (self.speech.corpus.texts[i], f"{len(frames[i])} frames", f"{len(own)} frames")
            for i, own in list(zip(rows, made, strict=True))[: self.shown]
        ]
        return ValidationResult(scores, told)

    @torch.inference_mode()
    def _given(self, model: nn.Module, frames: list[np.ndarray], special: Any) -> tuple[float, float]:
        """The distance of each next frame, and the share of ends that are predicted, in per cent."""
        device, reduction, total, count, right = next(model.parameters()).device, model.config.reduction, 0.0, 0, 0
        lengths, sizes = np.array([len(own) for own in frames]), np.array([len(own) + 1 for own in self.speech.ids])
        for rows in plan(lengths, sizes, VALID_FRAMES, 0, 0):
            own = [[part[i] for i in rows] for part in (frames, self.speech.ids, self.numbers)]
            batch = collate(*own, special, reduction).to(device)
            memory = model.read_text(batch.tokens, batch.valid, batch.speakers)
            found = model.spoken(batch.frames, batch.lengths, memory, batch.valid)
            real = torch.arange(batch.frames.shape[1], device=device) < batch.lengths[:, None]
            total += ((found.fine.float() - batch.frames).abs().mean(dim=-1) * real).sum().item()
            count += batch.count
            over = found.ends > 0
            first = torch.where(over.any(dim=1), over.int().argmax(dim=1), over.shape[1])
            right += int(((first - last_steps(batch.lengths, reduction)).abs() * reduction <= NEAR).sum())
        return total / max(1, count), 100 * right / self.size

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {}

    def too_long(self, max_length: int) -> int:
        return 0
