"""Speech recognition and speech translation (Speech-Transformer)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from heed.config import check_fraction
from heed.data.audio import manifests
from heed.data.audio.batches import SpecAugment, Speech, SpeechBatches, collate
from heed.data.audio.config import AudioConfig
from heed.data.audio.prepare import SpeechCorpus, features_of, prepare
from heed.data.batching import DataPosition, plan
from heed.data.prepare import digest
from heed.decoding.speech import SpeechDecoding
from heed.evaluation import speech as errors
from heed.models.abilities import TranscribesSpeech
from heed.models.package import Package
from heed.products.recognizer import Recognizer
from heed.tasks import speech_vocabularies
from heed.tasks.base import Metric, Objective, Prepared, Task, Tell, Validation, ValidationResult
from heed.tasks.speech_loss import SpeechLoss
from heed.tasks.speech_vocabularies import Written, encoded
from heed.tasks.validation import sample_rows, trained_rows_too
from heed.vocabularies.sentencepiece import SubwordsConfig
from heed.vocabularies.sound import SoundFeatures
from heed.vocabularies.vocabulary import Vocabulary

MOST_HELD = 500
SHARE_HELD = 20  # one recording in so many is held out
VALID_FRAMES = 20_000  # of a batch of validation


@dataclass(frozen=True)
class SpeechSettings:
    ctc: float = 0.3  # weight of the CTC loss; 0 is attention only
    ctc_target: Literal["text", "transcript"] = (
        "text"  # what CTC learns; "transcript", the table's fourth column, for translation
    )
    label_smoothing: float = 0.1
    mask_bands: int = 2  # SpecAugment: number of frequency bands masked per recording
    mask_band: float = 0.3  # maximum width of a band, as a share of all frequencies
    mask_stretches: int = 2  # SpecAugment: number of time spans masked per recording
    mask_stretch: int = 40  # maximum length of a span, in frames
    mask_share: float = 0.2  # maximum share of a recording masked in time
    valid_recordings: int = 0  # number of validation examples; 0 is all

    def __post_init__(self):
        if not 0 <= self.ctc <= 1:
            raise ValueError(f"task.ctc is {self.ctc}; it must be from 0 to 1")
        check_fraction("task.label_smoothing", self.label_smoothing)
        for name in ("mask_bands", "mask_stretches", "mask_stretch", "valid_recordings"):
            if getattr(self, name) < 0:
                raise ValueError(f"task.{name} is {getattr(self, name)}; it must be 0 (off) or more")
        self.augment()

    @property
    def learns_transcripts(self) -> bool:
        """Whether CTC is trained on the transcript rather than the output text."""
        return self.ctc > 0 and self.ctc_target == "transcript"

    def forced(self) -> dict[str, float]:
        """Search settings that follow from the CTC target: without CTC, or with transcripts, it cannot score texts."""
        return {} if self.ctc and not self.learns_transcripts else {"ctc_weight": 0.0}

    def augment(self) -> SpecAugment | None:
        made = SpecAugment(self.mask_bands, self.mask_band, self.mask_stretches, self.mask_stretch, self.mask_share)
        return made if self.mask_bands or self.mask_stretches else None


class SpeechRecognition(Task):
    name, title, example = "speech-recognition", "Speech recognizer", "heed transcribe {} recording.wav"
    Settings, needs, products, unit = SpeechSettings, TranscribesSpeech, (Recognizer,), "recordings"
    sections: ClassVar[Mapping[str, type]] = {
        "data": AudioConfig,
        "subwords": SubwordsConfig,
        "decoding": SpeechDecoding,
    }
    best, searches = "wer", True
    metrics = (
        Metric("wer", "WER", False, lambda: "word errors per word of the reference, in per cent"),
        Metric("cer", "CER", False, lambda: "character errors per character of the reference, in per cent"),
        Metric("loss", "loss", False, lambda: "-log p of each next token, given those before it", 3),
    )

    # checks

    def check(self, recipe: Any) -> None:
        c = recipe.subwords
        if c.sampling:
            raise ValueError(
                f"subwords.sampling is {c.sampling}, which speech recognition does not support: set it to 0"
            )
        if c.source_model:
            raise ValueError("subwords.source_model is for source texts: set subwords.target_model")

    def check_base(self, recipe: Any, base: Package) -> None:
        for name, own in _features_settings(base).items():
            if name in recipe.explicit and getattr(recipe.data, name.removeprefix("data.")) != own:
                raise ValueError(f"{name} comes from {recipe.model.folder}: leave it out")
        if self.settings.learns_transcripts and not base.model.config.ctc:
            raise ValueError(
                f"{recipe.model.folder} has no CTC output to learn transcripts with: set task.ctc to 0, or start from another model"
            )

    # data

    def prepare(self, recipe: Any, base: Package | None, tell: Tell) -> Prepared:
        data = recipe.data
        train = [own for name in data.audio for own in manifests.read(name, data.format, data.split)]
        valid = [own for name in data.valid_audio for own in manifests.read(name, data.format, data.split)]
        if not valid:
            train, valid = hold_out(train, data.holdout)
        features = base.processors["sound"] if base is not None else features_of(data, train)
        key, corpus = prepare(train, features, tell, speeds=data.speeds, longest=data.max_seconds)
        valid_key, valid_corpus = prepare(valid, features, tell, longest=data.max_seconds)
        if base is None:
            features = SoundFeatures(features.settings, *corpus.moments)
        written = speech_vocabularies.find(recipe, base, corpus, key, tell)
        processors = {"sound": features, **written.processors()}
        sizes = written.sizes() | ({} if base is not None else {"inputs": len(features)})
        said = [written.transcript.key()] if written.transcript is not None else []
        whole = digest(key, valid_key, features.key(), written.target.key(), *said)
        held = Speech(valid_corpus, np.arange(len(valid_corpus)), encoded(written.target, valid_corpus.texts))
        chosen = {**written.chosen, **(_features_settings(base) if base is not None else {})}
        settled = {"renewed": written.renewed, "chosen": chosen}
        return Prepared(whole, self._usable(corpus, written), held, processors, sizes, **settled)

    def _usable(self, corpus: SpeechCorpus, written: Written) -> Speech:
        """The recordings that are long enough for one state, and have a text."""
        ids = encoded(written.target, corpus.texts)
        rows = [i for i, own in enumerate(ids) if own and corpus.lengths[i] >= FEWEST_FRAMES]
        if not rows:
            raise ValueError(f"data: none of {len(corpus):,} recordings is long enough for training")
        said = None
        if written.transcript is not None:
            said = encoded(written.transcript, [corpus.transcripts[i] for i in rows])
        return Speech(corpus, np.array(rows), [ids[i] for i in rows], said)

    def batches(
        self, recipe: Any, prepared: Prepared, plan: Any, share: tuple[int, int], position: DataPosition
    ) -> Iterator[tuple[DataPosition, Any]]:
        return self._batches(recipe, prepared, share).start(position)

    def _batches(self, recipe: Any, prepared: Prepared, share: tuple[int, int] = (0, 1)) -> SpeechBatches:
        sound, words = prepared.processors["sound"], prepared.processors["target"]
        return SpeechBatches(
            prepared.train,
            sound,
            words.special,
            budget=recipe.training.batch_tokens,
            seed=recipe.training.seed,
            augment=self.settings.augment(),
            share=share,
        )

    # training

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        return SpeechLoss(self.settings.ctc, self.settings.label_smoothing)

    def validation(self, recipe: Any, prepared: Prepared) -> "SpeechValidation":
        return SpeechValidation(recipe, prepared, self.settings)

    # reports and records

    def data_summary(self, prepared: Prepared) -> str:
        facts, speech = prepared.train.corpus.facts, prepared.train
        aside = f"; {facts['left_out']:,} too long, skipped (data.max_seconds)" if facts["left_out"] else ""
        short = len(speech.corpus) - len(speech)
        aside += f"; {short:,} too short, skipped" if short else ""
        speeds = len(speech.corpus) // max(1, facts["recordings"])
        more = f", each at {speeds} speeds" if speeds > 1 else ""
        return f"{facts['recordings']:,} training recordings, {facts['seconds'] / 60:.1f} minutes{more}{aside}."

    def notes(self, recipe: Any, prepared: Prepared, validation: Validation, max_length: int) -> list[str]:
        made = self._batches(recipe, prepared)
        return [
            *trained_rows_too(self.unit, prepared.train, prepared.valid),
            f"{validation.size:,} validation recordings; {len(made.plan(0)):,} batches per epoch.",
        ]

    def facts(self, recipe: Any, prepared: Prepared, base: Mapping[str, Any]) -> dict[str, Any]:
        speech, seconds = prepared.train, prepared.processors["sound"].seconds
        data = recipe.data
        named = {name: getattr(data, name) or base.get(name) for name in ("language", "target_language")}
        return {
            **{name: value for name, value in named.items() if value},
            "longest_seconds": round(float(speech.corpus.lengths[speech.rows].max()) * seconds, 2),
            "decoding": asdict(recipe.decoding) | self.settings.forced(),
        }

    def card_rows(self, recipe: Any, prepared: Prepared, facts: Mapping[str, Any]) -> dict[str, str]:
        data = recipe.data
        spoken = [data.language or "not stated"] + ([data.target_language] if data.target_language else [])
        return {
            "data": ", ".join(Path(path).name for path in data.audio),
            "recordings": self.data_summary(prepared),
            "language": " to ".join(spoken),
            "licence of the data": data.licence or "not stated",
        }


FEWEST_FRAMES = 7  # two convolutions with stride 2 need as many


def _features_settings(base: Package) -> dict[str, Any]:
    """The settings of [data] that a pre-trained model determines; none if its features are computed elsewhere."""
    own = base.processors["sound"].settings
    if own.kind == "given":
        return {}
    names = ("rate", "mels", "cepstra", "frame", "shift", "normalize")
    return {"data.features": own.kind} | {f"data.{name}": getattr(own, name) for name in names}


def hold_out(utterances: list, count: int) -> tuple[list, list]:
    """Training and validation recordings, drawn evenly from all."""
    count = count or min(MOST_HELD, max(1, len(utterances) // SHARE_HELD))
    if count >= len(utterances):
        raise ValueError(
            f"data.holdout is {count}, but there are {len(utterances):,} recordings: nothing would be left to train on"
        )
    drawn = set(np.random.default_rng(0).permutation(len(utterances))[:count].tolist())
    return [own for i, own in enumerate(utterances) if i not in drawn], [utterances[i] for i in sorted(drawn)]


class SpeechValidation:
    """Error rates of the search results, and the loss."""

    def __init__(self, recipe: Any, prepared: Prepared, chosen: SpeechSettings):
        speech, self.processors = prepared.valid, prepared.processors
        usable = speech.corpus.lengths[speech.rows] >= FEWEST_FRAMES
        rows = np.flatnonzero(usable)
        if not len(rows):
            raise ValueError("data: no validation recording is long enough")
        if chosen.valid_recordings and chosen.valid_recordings < len(rows):
            rows = np.sort(np.random.default_rng(0).permutation(rows)[: chosen.valid_recordings])
        self.corpus, self.rows, self.ids = speech.corpus, rows, [speech.ids[i] for i in rows]
        self.size = len(rows)
        self.texts = [speech.corpus.texts[i] for i in rows]
        self.smoothing = SpeechLoss(0.0, 0.0)
        beam = min(recipe.training.valid_beam, recipe.decoding.beam)
        self.decoding = replace(recipe.decoding, beam=beam, nbest=1, **chosen.forced())
        self.facts_of_language = {"language": recipe.data.language, "target_language": recipe.data.target_language}
        self.shown = sample_rows(self.size, recipe.training.samples)

    def run(self, model: nn.Module) -> ValidationResult:
        model.eval()
        sound, words = self.processors["sound"], self.processors["target"]
        recognizer = Recognizer(model, sound, words, self.facts_of_language, self.decoding)
        frames = [self.corpus.frames(int(i)) for i in self.rows]
        texts = [own.text for own in recognizer.transcribe_frames(frames, times=False)]
        found = errors.score(texts, self.texts, samples=1)
        scores = {"wer": found.wer.rate, "cer": found.cer.rate, "loss": self._loss(model, frames, sound, words)}
        names = [self.corpus.names[int(i)] for i in self.rows]
        return ValidationResult(scores, [(names[i], self.texts[i], texts[i]) for i in self.shown])

    @torch.inference_mode()
    def _loss(self, model: nn.Module, frames: list[np.ndarray], sound: SoundFeatures, words: Vocabulary) -> float:
        device, total, count = next(model.parameters()).device, 0.0, 0
        lengths = np.array([len(own) for own in frames])
        for rows in plan(lengths, np.array([len(own) + 1 for own in self.ids]), VALID_FRAMES, 0, 0):
            batch = collate([sound.normalized(frames[i]) for i in rows], [self.ids[i] for i in rows], words.special)
            loss = self.smoothing(model, batch.to(device))
            total, count = total + loss.nll.item(), count + loss.count
        return total / max(count, 1)

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {}

    def too_long(self, max_length: int) -> int:
        return 0
