"""The interfaces between tasks and models. Python matches a class with a Protocol by method names only, so each name
means one thing: no two protocols share a method name with different arguments.
"""

from typing import Any, Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class HasVocabularyOutput(Protocol):
    def output_weights(self) -> tuple[Tensor, Tensor | None]:
        """The matrix (vocab, dim) and the bias (vocab) that turn hidden states into logits."""


@runtime_checkable
class EncodesAndDecodes(HasVocabularyOutput, Protocol):
    """Reads a source and predicts each next target token: translators, summarizers, denoisers."""

    def encode(self, source: Tensor, valid: Any = None) -> Any:
        """(b, s) token ids to the memory that the decoder attends to."""

    def decode(self, target: Tensor, memory: Any, valid: Any = None, cache: Any = None, offsets: Any = None) -> Tensor:
        """(b, t) token ids to hidden states (b, t, dim)."""

    def project(self, x: Tensor) -> Tensor:
        """Hidden states to logits."""


@runtime_checkable
class ContinuesText(Protocol):
    """Predicts each next token of a text: language models. They have a vocabulary output, or compute losses
    themselves.
    """

    def start(self, rows: int) -> Any:
        """The state before any token is read, for a batch of `rows` texts. The next window of a text continues from
        its `detach()`, which is empty for models that read each window independently. `layers` are its tensors, for
        checkpoints; `reorder(rows)` serves beam search. `join(states, rows)` is one state for texts of different
        lengths, the batches of generation.
        """

    def hidden_states(self, tokens: Tensor, state: Any = None) -> Tensor:
        """(b, t) token ids to hidden states (b, t, dim); `state` then covers these tokens too."""

    def project(self, x: Tensor) -> Tensor:
        """Hidden states to logits."""


@runtime_checkable
class ComputesLosses(Protocol):
    """A language model without an output matrix: it computes losses itself, and `project` returns log probabilities."""

    def token_losses(self, x: Tensor, expected: Tensor) -> Tensor:
        """Hidden states (n, dim) and the expected tokens (n) to -log p of each, 0 where it is negative."""


@runtime_checkable
class ClassifiesText(Protocol):
    def classify_text(self, tokens: Tensor, valid: Tensor | None = None) -> Tensor:
        """(b, t) token ids and their mask to logits (b, labels), or scores of choices (b). Models with segments also
        take the segment ids: which text of a pair each token belongs to.
        """


@runtime_checkable
class ScoresChoices(ClassifiesText, Protocol):
    def choose(self, tokens: Tensor, valid: Tensor | None = None) -> Tensor:
        """(b, choices, t) token ids, each choice with its question, to the score of each (b, choices)."""


@runtime_checkable
class ClassifiesStates(ContinuesText, ClassifiesText, Protocol):
    """A language model that classifies: one pass predicts labels and tokens."""

    def classify_states(self, states: Tensor, valid: Tensor | None = None) -> Tensor:
        """The hidden states (b, t, dim) of texts to logits (b, labels), or scores of choices (b)."""


@runtime_checkable
class PredictsMaskedWords(HasVocabularyOutput, Protocol):
    """Reads a whole text, and predicts masked words and the relation of two texts."""

    def encode_text(self, tokens: Tensor, valid: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """(b, t) token ids, their mask and segment ids to states (b, t, dim)."""

    def word_states(self, states: Tensor) -> Tensor:
        """States (n, dim) of positions to the input of `output_weights`."""

    def classify_pair(self, states: Tensor) -> Tensor:
        """The states (b, t, dim) of pairs to logits (b, 2): whether the pair is genuine."""


@runtime_checkable
class DetectsReplacedWords(Protocol):
    """A generator of words, and a discriminator that detects replaced ones."""

    def generator_states(self, tokens: Tensor, valid: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """(b, t) token ids to the generator's states (b, t, width)."""

    def generator_weights(self) -> tuple[Tensor, Tensor]:
        """The matrix (vocab, width) and the bias (vocab) that turn these into logits."""

    def detect_replaced(self, tokens: Tensor, valid: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """(b, t) token ids to the logit (b, t) that each was replaced."""


@runtime_checkable
class ClassifiesTokens(Protocol):
    def classify_tokens(self, tokens: Tensor, valid: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """(b, t) token ids and their mask to logits (b, t, labels)."""


@runtime_checkable
class FindsAnswers(Protocol):
    def find_answer(self, tokens: Tensor, valid: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """Questions with their contexts (b, t) to the logits of each token as start and end of the answer (b, t, 2)."""


@runtime_checkable
class EncodesText(Protocol):
    """Reads a text: encoders. Its states are pooled into a text vector."""

    def encode_text(self, tokens: Tensor, valid: Any = None, segments: Tensor | None = None) -> Tensor:
        """(b, t) token ids and their mask to states (b, t, dim)."""

    def packs(self, longest: int) -> bool:
        """Whether texts of up to this many tokens can be packed in one row; `valid` are then their offsets."""


@runtime_checkable
class RanksItems(Protocol):
    """Reads the items of a history, and scores every item as the next or the masked one: recommenders."""

    def item_states(self, items: Tensor, valid: Any = None) -> Tensor:
        """(b, t) items to states (b, t, dim); `valid` are the offsets of packed histories, or the mask."""

    def item_weights(self) -> tuple[Tensor, Tensor | None]:
        """The matrix (items, dim) and the bias (items) that turn states into scores."""


@runtime_checkable
class ClassifiesImages(Protocol):
    def classify_images(self, images: Tensor) -> Tensor:
        """(b, channels, h, w) normalized images to logits (b, labels)."""


@runtime_checkable
class EncodesImages(Protocol):
    """Reads an image; its states are pooled into an image vector."""

    def image_states(self, images: Tensor) -> Tensor:
        """(b, channels, h, w) normalized images to states (b, t, dim)."""

    def image_vectors(self, images: Tensor) -> Tensor:
        """(b, channels, h, w) normalized images to one vector each (b, dim)."""


@runtime_checkable
class TranscribesSpeech(HasVocabularyOutput, Protocol):
    """Reads the features of a recording, and writes a text: speech recognition and translation."""

    def encode_speech(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Features (b, t, size) and the number of valid frames to the memory (b, s, dim) and the number of valid
        states.
        """

    def state_count(self, frames: int) -> int:
        """The number of states for this many frames."""

    def ctc_logits(self, memory: Tensor) -> Tensor:
        """The memory to logits (b, s, vocab + 1) of each token and, last, of the blank."""

    def decode(self, target: Tensor, memory: Any, valid: Any = None, cache: Any = None) -> Tensor:
        """(b, t) token ids to hidden states (b, t, dim)."""

    def project(self, x: Tensor) -> Tensor:
        """Hidden states to logits."""


@runtime_checkable
class DrawsImages(Protocol):
    """Predicts the values of an image one after another, each from those before it."""

    def pixel_nll(self, images: Tensor, labels: Tensor | None = None, small: Tensor | None = None) -> Tensor:
        """-log p of each image (b, h, w, c), bytes, in nats; conditioned on a class or a small image, if the model
        supports it.
        """

    def start_images(self, rows: int, labels: Tensor | None = None, small: Tensor | None = None) -> Any:
        """The state before the first step, for a batch of `rows` images."""

    def step_pixel(self, before: Tensor | None, turn: int, state: Any) -> Tensor:
        """The state (b, dim) of a step, from the values (b, k) of the previous step."""

    def sample_values(self, states: Tensor, turn: int, state: Any, temperature: float, uniform: Tensor) -> Tensor:
        """The values (b, k) of a step, from its state, the values of the steps before it, and `draws` random numbers
        from 0 to 1 per image.
        """


@runtime_checkable
class SpeaksText(Protocol):
    """Reads a text and generates a spectrogram: voices."""

    def read_text(self, tokens: Tensor, valid: Tensor, speakers: Tensor) -> Tensor:
        """(b, s) token ids, their mask, and speakers, to the memory (b, s, dim)."""

    def spoken(self, frames: Tensor, lengths: Tensor, memory: Tensor, valid: Tensor) -> Any:
        """The prediction after each of the frames (b, t, size), of which `lengths` are valid."""

    def next_frames(self, last: Tensor, state: Any) -> tuple[Tensor, Tensor]:
        """The next frames, and the logit that they are the last."""
