"""Speech recognition: recordings in, text with word timings out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heed import config as settings
from heed.audio import files
from heed.audio.files import Sound
from heed.decoding.ctc import align
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.speech import LanguageScores, SpeechDecoding, ctc_logp, search_speech
from heed.models.abilities import TranscribesSpeech
from heed.models.package import Package
from heed.nn.attention import record
from heed.products.product import Product, Work, each_batch, finish, single
from heed.products.speech_windows import Window, cut, group_words, kept
from heed.vocabularies.sound import SoundFeatures
from heed.vocabularies.vocabulary import Vocabulary

FRAMES = {"cpu": 6000, "cuda": 60_000}  # that are read at one time
SILENCE = 1e-4  # of full scale, -80 dB: what is never louder is silence


@dataclass(frozen=True)
class Word:
    """A word, its start and end in seconds, and its probability under CTC. `attention`, if requested, is that of its
    tokens over the states of the recording, averaged over layers and heads.
    """

    text: str
    start: float
    end: float
    probability: float
    attention: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Transcription:
    """A transcript. `words` is empty if the text is a translation; `score` is that of the search, over all windows."""

    text: str
    seconds: float
    words: list[Word] = field(default_factory=list)
    score: float = 0.0
    others: list[str] = field(default_factory=list)  # the next best, of a recording that is read at once


class Recognizer(Product):
    """A speech model with its input features and output vocabulary."""

    noun, verbs, reads = "a speech recognizer", ("transcribe", "evaluate"), ("sound", "target")

    def __init__(
        self,
        model: Any,
        sound: SoundFeatures,
        vocabulary: Vocabulary,
        facts: Mapping[str, Any] | None = None,
        decoding: SpeechDecoding | None = None,
    ):
        self.model, self.sound, self.vocabulary, self.facts = model, sound, vocabulary, dict(facts or {})
        self.decoding = decoding or SpeechDecoding()

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> "Recognizer":
        own = single(packages, names, cls.noun)
        if not isinstance(own.model, TranscribesSpeech):
            raise ValueError(f"{names[0]} is not a speech recognition model: it cannot transcribe")
        sound, vocabulary = own.processors["sound"], own.processors["target"]
        if not isinstance(sound, SoundFeatures) or len(sound) != own.model.config.inputs:
            raise ValueError(f"{names[0]}: its features do not match the model: its config.json is damaged")
        decoding = settings.read(SpeechDecoding, own.facts.get("decoding", {}), f"{names[0]}/config.json: decoding.")
        if not own.model.config.ctc or own.model.config.ctc_size:
            decoding = replace(decoding, ctc_weight=0.0)
        own.model.eval()
        return cls(own.model, sound, vocabulary, own.facts, decoding)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def translates(self) -> bool:
        """Whether the text is in another language than the speech: then words have no timings."""
        spoken, written = self.facts.get("language"), self.facts.get("target_language")
        return written is not None and written != spoken

    @property
    def timed(self) -> bool:
        """Whether words have timings, which CTC provides."""
        return self.scored_by_ctc and not self.translates

    @property
    def scored_by_ctc(self) -> bool:
        """Whether CTC was trained on the output text, and not on a transcript in another language."""
        return self.model.config.ctc and not self.model.config.ctc_size

    # what a user asks

    def transcribe(
        self,
        recordings: Sequence[str | Path | Sound],
        *,
        language: LanguageScores | None = None,
        attention: bool = False,
        **changes: Any,
    ) -> list[Transcription]:
        """Transcribe recordings, which are files or audio; `changes` are those of the search settings. With
        `attention`, words have their attention, in recordings read in one piece.
        """
        return finish(self.transcribing(recordings, language=language, attention=attention, **changes))

    def transcribing(
        self,
        recordings: Sequence[str | Path | Sound],
        *,
        language: LanguageScores | None = None,
        attention: bool = False,
        batch_frames: int | None = None,
        **changes: Any,
    ) -> Work[list[Transcription]]:
        """The same in parts: first the features, then batches of windows, of `batch_frames` if they hold so many."""
        sounds = [files.read(own) if isinstance(own, str | Path) else own for own in recordings]
        config = self.search(**changes)
        found: list[Transcription | None] = [None] * len(sounds)
        heard = []
        for i, sound in enumerate(sounds):
            if not len(sound.samples) or np.abs(sound.samples).max() < SILENCE:
                found[i] = Transcription("", sound.seconds)
            else:
                heard.append(i)
        frames = [self.sound.frames(sounds[i]) for i in heard]
        yield
        read = yield from self._transcribing_frames(frames, config, language, batch_frames=batch_frames)
        for i, own in zip(heard, read, strict=True):
            found[i] = replace(own, seconds=sounds[i].seconds)
        if attention:
            return [self._with_attention(own, sound) for own, sound in zip(found, sounds, strict=True)]
        return found

    @torch.inference_mode()
    def _with_attention(self, found: Transcription, sound: Sound) -> Transcription:
        frames = self.sound.frames(sound)
        if not found.words or len(self._windows(frames, self.decoding)) > 1:
            return found
        memory, _ = self.encode([self._padded(self.sound.normalized(frames))])
        special, (ids,) = self.vocabulary.special, self.vocabulary.encode([found.text])
        target = torch.tensor([[special.first, *ids]], device=self.device)
        with record(self.model.decoder) as maps:
            self.model.decode(target, memory)
        weights = torch.stack([own[0].mean(dim=0) for own in maps[1::2]]).mean(dim=0).float().cpu().numpy()
        rows = group_words(self.vocabulary.pieces(ids))
        if len(rows) != len(found.words):
            return found
        own = [weights[row].mean(axis=0).round(4).tolist() for row in rows]
        return replace(found, words=[replace(word, attention=w) for word, w in zip(found.words, own, strict=True)])

    def transcribe_frames(
        self,
        frames: Sequence[np.ndarray],
        config: SpeechDecoding | None = None,
        language: LanguageScores | None = None,
        times: bool = True,
    ) -> list[Transcription]:
        """The same for features that are not normalized; long recordings are read in windows. `times`: with word
        timings.
        """
        return finish(self._transcribing_frames(frames, config or self.decoding, language, times))

    def _transcribing_frames(
        self,
        frames: Sequence[np.ndarray],
        config: SpeechDecoding,
        language: LanguageScores | None,
        times: bool = True,
        batch_frames: int | None = None,
    ) -> Work[list[Transcription]]:
        windows = [self._windows(own, config) for own in frames]
        normal = [self.sound.normalized(own) for own in frames]
        parts = [self._padded(normal[i][w.start : w.end]) for i, own in enumerate(windows) for w in own]

        def run(batch: list[np.ndarray]) -> list[tuple[list[Hypothesis], np.ndarray]]:
            return self.search_batch(batch, config, language)

        budget = batch_frames or FRAMES.get(self.device.type, FRAMES["cpu"])
        results: dict[int, tuple[list[Hypothesis], np.ndarray]] = {}
        for rows, batch in each_batch(run, parts, [len(part) for part in parts], budget):
            results |= zip(rows, batch, strict=True)
            yield
        found = (results[row] for row in range(len(parts)))
        return [
            self._joined(own, [next(found) for _ in own], len(f), times) for own, f in zip(windows, frames, strict=True)
        ]

    def search(self, **changes: Any) -> SpeechDecoding:
        """The search settings, with changes."""
        own = settings.typed(SpeechDecoding, {name: value for name, value in changes.items() if value is not None})
        if own.get("ctc_weight") and self.model.config.ctc_size:
            raise ValueError(
                "the CTC output of this model was trained on transcripts, not translations: set ctc_weight to 0"
            )
        return replace(self.decoding, **own)

    # how it is computed

    @torch.inference_mode()
    def search_batch(
        self, frames: Sequence[np.ndarray], config: SpeechDecoding, language: LanguageScores | None = None
    ) -> list[tuple[list[Hypothesis], np.ndarray]]:
        """The best hypotheses for normalized features, and the CTC log probabilities of each state."""
        memory, counts = self.encode(frames)
        dtype = next(self.model.parameters()).dtype
        logp = ctc_logp(self.model, memory) if self.scored_by_ctc else None
        with torch.autocast(self.device.type, enabled=False):
            memory = memory.to(dtype)
            found = search_speech(self.model, memory, counts, self.vocabulary.special, config, language, logp)
        said = np.zeros((*memory.shape[:2], 0)) if logp is None else logp.float().cpu().numpy()
        return [(own, said[i, : int(counts[i])]) for i, own in enumerate(found)]

    def encode(self, frames: Sequence[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
        """The memory for normalized features, and the number of valid states of each."""
        lengths = torch.tensor([len(own) for own in frames])
        padded = np.zeros((len(frames), int(lengths.max()), frames[0].shape[1]), dtype=np.float32)
        for row, own in zip(padded, frames, strict=True):
            row[: len(own)] = own
        dtype = next(self.model.parameters()).dtype
        return self.model.encode_speech(torch.from_numpy(padded).to(self.device, dtype), lengths.to(self.device))

    @property
    def state_seconds(self) -> float:
        """Seconds from one state to the next."""
        return self.sound.seconds * self.model.config.subsampling

    @property
    def _centre(self) -> float:
        """The middle of the first state's input, in seconds."""
        s = self.sound.settings
        return ((self.model.least_frames - 1) * s.shift + s.frame) / 2000

    def _windows(self, frames: np.ndarray, config: SpeechDecoding) -> list[Window]:
        longest = float(self.facts.get("longest_seconds") or config.window)
        size = max(2 * self.model.least_frames, round(min(config.window, longest) / self.sound.seconds))
        context = 0 if not self.timed else min(round(config.overlap / self.sound.seconds), size // 4)
        quiet = frames.mean(axis=1) if self.sound.settings.kind == "fbank" else frames[:, 0]
        return cut(quiet, size, context)

    def _padded(self, frames: np.ndarray) -> np.ndarray:
        """Padded to at least the frames of one state."""
        short = max(0, self.model.least_frames - len(frames))
        return np.pad(frames, ((0, short), (0, 0))) if short else frames

    def _joined(
        self, windows: Sequence[Window], found: Sequence[tuple[list[Hypothesis], np.ndarray]], frames: int, times: bool
    ) -> Transcription:
        """Join the texts of all windows: words in two windows are taken from the one whose part they are in."""
        seconds = frames * self.sound.seconds
        score = sum(own[0].score for own, _ in found if own)
        if len(windows) == 1:
            texts = [self._text(own.tokens) for own in found[0][0]] or [""]
            return Transcription(texts[0], seconds, self._words(*found[0]) if times else [], score, texts[1:])
        if not self.timed:
            texts = [self._text(own[0].tokens) for own, _ in found if own]
            return Transcription(" ".join(filter(None, texts)), seconds, [], score)
        words = [
            word
            for window, own in zip(windows, found, strict=True)
            for word in kept(self._words(*own, window.start * self.sound.seconds), window, self.sound.seconds)
        ]
        return Transcription(" ".join(word.text for word in words), seconds, words, score)

    def _text(self, tokens: Sequence[int]) -> str:
        return " ".join(self.vocabulary.decode(tokens).split())

    def _words(self, found: list[Hypothesis], logp: np.ndarray, offset: float = 0.0) -> list[Word]:
        """The words of the best hypothesis and their timings."""
        if not found or not self.timed:
            return []
        tokens = [token for token in found[0].tokens if token != self.vocabulary.special.last]
        spans = align(logp, tokens)
        if spans is None:  # fewer states than tokens: attention alone found this
            return []
        state, made = self.state_seconds, []
        offset += self._centre - state / 2
        for rows in group_words(self.vocabulary.pieces(tokens)):
            text = self._text([tokens[i] for i in rows])
            own = [spans[i] for i in rows]
            if text:
                probability = float(np.exp(np.mean([span.score for span in own])))
                start = max(0.0, offset + own[0].start * state)
                made.append(Word(text, start, max(start, offset + own[-1].end * state), probability))
        return made
