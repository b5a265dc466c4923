"""Text to speech: text in, audio out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heed.audio.files import Sound
from heed.data.audio.voices import spelled
from heed.models.abilities import SpeaksText
from heed.models.outputs import check_outputs
from heed.models.package import Package
from heed.products.product import Product, Work, as_texts, finish, in_batches, single
from heed.products.pronunciation import Pronounce
from heed.products.vocoder import Vocoder
from heed.vocabularies.labels import Labels
from heed.vocabularies.phonemes import Phonemes
from heed.vocabularies.sound import SoundFeatures
from heed.vocabularies.vocabulary import Vocabulary

TOKENS = 2000  # of texts that are spoken at one time
SLOWEST = 1.3  # times the most frames of a token in training: what is longer does not end


@dataclass(frozen=True)
class Utterance:
    """Synthesized speech: the audio, its normalized frames (t, size), and whether the model predicted the end."""

    text: str
    sound: Sound
    frames: np.ndarray
    ended: bool


class Voice(Product):
    """A text-to-speech model with its input vocabulary and output features."""

    noun, verbs, reads = "a voice", ("speak", "evaluate"), ("sound", "text")

    def __init__(
        self,
        model: Any,
        sound: SoundFeatures,
        vocabulary: Vocabulary,
        speakers: Labels,
        facts: dict[str, Any] | None = None,
    ):
        self.model, self.sound, self.vocabulary, self.speakers = model.eval(), sound, vocabulary, speakers
        self.facts = dict(facts or {})
        self.vocoder: Vocoder | None = None
        self.pronounce: tuple[Pronounce, str] | None = None

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> "Voice":
        own = single(packages, names, cls.noun)
        if not isinstance(own.model, SpeaksText):
            raise ValueError(f"{names[0]} is not a text-to-speech model")
        sound, speakers = own.processors["sound"], own.processors.get("speakers")
        if not isinstance(sound, SoundFeatures) or len(sound) != own.model.config.outputs:
            raise ValueError(f"{names[0]}: its features do not match the model: its config.json is damaged")
        if not isinstance(speakers, Labels) or len(speakers.names) != own.model.config.speakers:
            raise ValueError(f"{names[0]}: its speakers do not match the model: its config.json is damaged")
        return cls(own.model, sound, own.processors["text"], speakers, own.facts)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def speak(self, texts: Sequence[str], speaker: str | None = None) -> list[Utterance]:
        """Synthesize each text with one speaker (default: the first)."""
        texts = as_texts(texts)
        number = self.speaker_number(speaker)
        ids = self.encode(texts)

        def run(rows: list[int]) -> list[Utterance]:
            frames, ended = self.frames([ids[i] for i in rows], [number] * len(rows))
            return [
                Utterance(texts[i], self.sound_of(own), own, end)
                for i, own, end in zip(rows, frames, ended, strict=True)
            ]

        return in_batches(run, range(len(texts)), [len(own) for own in ids], TOKENS)

    def use_vocoder(self, vocoder: Vocoder) -> None:
        """Use a vocoder from now on; one that expects other spectrograms is refused."""
        vocoder.check(self.sound)
        vocoder.model.to(self.device)
        self.vocoder = vocoder

    def use_g2p(self, pronounce: Pronounce, name: str = "the model") -> None:
        """Use a model to pronounce words missing from the voice's dictionary; `name` is for errors."""
        if not isinstance(self.vocabulary, Phonemes):
            raise ValueError(f"this voice reads letters, not phonemes: it does not need {name} (--g2p)")
        self.pronounce = pronounce, name

    def sound_of(self, frames: np.ndarray) -> Sound:
        """The audio of normalized frames, with the vocoder or Griffin-Lim."""
        return self.vocoder.sound(self.sound, frames) if self.vocoder else self.sound.sound(frames)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of texts; texts that cannot be spoken are refused."""
        vocabulary = self.vocabulary
        if self.pronounce and (missing := vocabulary.missing(texts)):
            vocabulary = vocabulary.extended(self.pronounce[0](missing), self.pronounce[1])
        found = vocabulary.encode([spelled(text) for text in texts])
        for number, own in enumerate(found, 1):
            if not [i for i in own if i != self.vocabulary.special.unknown]:
                raise ValueError(f"text {number} has nothing the model can speak")
        return found

    def speaker_number(self, speaker: str | None) -> int:
        if speaker is None:
            return 0
        if speaker not in self.speakers.names:
            raise ValueError(f"{speaker!r} is not one of the speakers {', '.join(map(repr, self.speakers.names))}")
        return self.speakers.names.index(speaker)

    def frames(self, ids: Sequence[Sequence[int]], speakers: Sequence[int]) -> tuple[list[np.ndarray], list[bool]]:
        """Normalized frames of texts, and whether the model predicted the end of each."""
        return finish(self.writing(ids, speakers))

    @torch.inference_mode()
    def writing(
        self, ids: Sequence[Sequence[int]], speakers: Sequence[int]
    ) -> Work[tuple[list[np.ndarray], list[bool]]]:
        """The same step by step."""
        tokens, valid = self._padded(ids)
        with self._exact():
            memory = self.model.read_text(tokens, valid, torch.tensor(speakers, device=self.device))
        coarse, lengths, ended = yield from self._written(memory, valid)
        with self._exact():
            fine = self.model.refined(coarse, lengths)
        fine = fine.float().cpu()
        check_outputs(fine)
        rows = zip(fine.numpy(), lengths.tolist(), strict=True)
        return [own[:length] for own, length in rows], ended.tolist()

    def _exact(self) -> torch.autocast:
        return torch.autocast(self.device.type, enabled=False)

    def _padded(self, ids: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        special, longest = self.vocabulary.special, max(map(len, ids)) + 1
        rows = [[*own, special.last, *[special.pad] * (longest - len(own) - 1)] for own in ids]
        sizes = torch.tensor([len(own) + 1 for own in ids])
        return torch.tensor(rows).to(self.device), (torch.arange(longest) < sizes[:, None]).to(self.device)

    def _written(self, memory: Tensor, valid: Tensor) -> Work[tuple[Tensor, Tensor, Tensor]]:
        """Frames before the post-net, the number of valid frames of each text, and which texts ended before the
        limit.
        """
        reduction, slowest = self.model.config.reduction, float(self.facts.get("frames_per_token") or 10.0)
        most = (valid.sum(dim=1) * SLOWEST * slowest / reduction).ceil().long() + 5
        most = most.clamp(max=self.model.config.max_length)
        with self._exact():
            state = self.model.start_speaking(memory, valid)
        last, parts = memory.new_zeros(len(memory), self.model.config.outputs), []
        steps = torch.zeros_like(most)
        while not bool((steps > 0).all()):
            with self._exact():
                made, end = self.model.next_frames(last, state)
            parts.append(made)
            last, number = made[:, -1], len(parts)
            over = (end > 0) | (number >= most)
            steps = torch.where((steps == 0) & over, number, steps)
            yield
        return torch.cat(parts, dim=1), steps * reduction, steps < most

    @torch.inference_mode()
    def attention(self, text: str, frames: np.ndarray, speaker: str | None = None) -> np.ndarray:
        """The attention of each step of these frames (steps, tokens): the mean of the guided heads."""
        tokens, valid = self._padded(self.encode([text]))
        memory = self.model.read_text(tokens, valid, torch.tensor([self.speaker_number(speaker)], device=self.device))
        given = torch.from_numpy(frames)[None].to(self.device, memory.dtype)
        found = self.model.spoken(given, torch.tensor([len(frames)], device=self.device), memory, valid)
        return torch.stack([own[0].mean(dim=0) for own in found.attentions]).mean(dim=0).float().cpu().numpy()
