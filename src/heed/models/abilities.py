"""What a task may ask of a model.

Python compares a class with a Protocol by the names of methods alone, so each name here means one thing: no two
abilities share a method name with different arguments.
"""

from typing import Any, Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class HasVocabularyOutput(Protocol):
    def output_weights(self) -> tuple[Tensor, Tensor | None]:
        """The matrix (vocab, dim) and the bias (vocab) that turn hidden states into logits."""


@runtime_checkable
class EncodesAndDecodes(HasVocabularyOutput, Protocol):
    """Reads a source and predicts each next token of its target: translators, summarizers, denoisers."""

    def encode(self, source: Tensor, valid: Any = None) -> Any:
        """(b, s) token ids to the memory that the decoder attends to."""

    def decode(self, target: Tensor, memory: Any, valid: Any = None, cache: Any = None, offsets: Any = None) -> Tensor:
        """(b, t) token ids to hidden states (b, t, dim)."""

    def project(self, x: Tensor) -> Tensor:
        """Hidden states to logits."""


@runtime_checkable
class ContinuesText(Protocol):
    """Predicts each next token of one text: language models. They have a vocabulary output, or compute losses themselves."""

    def start(self, rows: int) -> Any:
        """The state before any token is read, for a batch of `rows` texts.

        Its `detach()` is what the next window of a text continues from: the same, or nothing where a model reads each
        window by itself. `layers` are its tensors, for checkpoints; `reorder(rows)` serves beam search.
        `join(states, rows)` is one state for texts of different lengths, the batches of generation.
        """

    def hidden_states(self, tokens: Tensor, state: Any = None) -> Tensor:
        """(b, t) token ids to hidden states (b, t, dim); `state` then covers these tokens too."""

    def project(self, x: Tensor) -> Tensor:
        """Hidden states to logits."""


@runtime_checkable
class ComputesLosses(Protocol):
    """A language model whose output is no matrix: it computes the losses itself, and `project` gives log-probabilities."""

    def token_losses(self, x: Tensor, expected: Tensor) -> Tensor:
        """Hidden states (n, dim) and the expected tokens (n) to -log p of each, 0 where it is negative."""


@runtime_checkable
class ClassifiesText(Protocol):
    def classify_text(self, tokens: Tensor, valid: Tensor | None = None) -> Tensor:
        """(b, t) token ids, and where they are not padding, to logits (b, labels), or scores of choices (b).

        Models whose vocabulary has segments take them too: of which text of a pair each token is.
        """


@runtime_checkable
class ScoresChoices(ClassifiesText, Protocol):
    def choose(self, tokens: Tensor, valid: Tensor | None = None) -> Tensor:
        """(b, choices, t) token ids, each choice with its question, to the score of each (b, choices)."""


@runtime_checkable
class ClassifiesStates(ContinuesText, ClassifiesText, Protocol):
    """A language model that classifies: one pass gives its predictions of labels and of tokens."""

    def classify_states(self, states: Tensor, valid: Tensor | None = None) -> Tensor:
        """The hidden states (b, t, dim) of texts to logits (b, labels), or scores of choices (b)."""


@runtime_checkable
class PredictsMaskedWords(HasVocabularyOutput, Protocol):
    """Reads a whole text at once, and predicts words of it and how two texts of it belong together."""

    def encode_text(self, tokens: Tensor, valid: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """(b, t) token ids, where they are not padding, and of which text each is, to states (b, t, dim)."""

    def word_states(self, states: Tensor) -> Tensor:
        """States (n, dim) of positions to what is multiplied by `output_weights`."""

    def classify_pair(self, states: Tensor) -> Tensor:
        """The states (b, t, dim) of pairs to logits (b, 2): they belong together as they are, or not."""


@runtime_checkable
class DetectsReplacedWords(Protocol):
    """A generator of words, and a discriminator that finds those that are not the original ones."""

    def generator_states(self, tokens: Tensor, valid: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """(b, t) token ids to the generator's states (b, t, width)."""

    def generator_weights(self) -> tuple[Tensor, Tensor]:
        """The matrix (vocab, width) and the bias (vocab) that turn these into logits."""

    def detect_replaced(self, tokens: Tensor, valid: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """(b, t) token ids to the logit (b, t) of each of having been replaced."""


@runtime_checkable
class ClassifiesTokens(Protocol):
    def classify_tokens(self, tokens: Tensor, valid: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """(b, t) token ids, and where they are not padding, to logits (b, t, labels)."""


@runtime_checkable
class FindsAnswers(Protocol):
    def find_answer(self, tokens: Tensor, valid: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """Questions with their contexts (b, t) to the logits of each token of beginning and ending the answer (b, t, 2)."""


@runtime_checkable
class EncodesText(Protocol):
    """Reads a text: encoders. Its states make the vector of a text."""

    def encode_text(self, tokens: Tensor, valid: Any = None, segments: Tensor | None = None) -> Tensor:
        """(b, t) token ids, and where they are not padding, to the states of the tokens (b, t, dim)."""

    def packs(self, longest: int) -> bool:
        """Whether texts of up to this many tokens can be in one row; `valid` are then the offsets of each."""


@runtime_checkable
class RanksItems(Protocol):
    """Reads the items of a history, and scores every item as the one that is next, or that is masked: recommenders."""

    def item_states(self, items: Tensor, valid: Any = None) -> Tensor:
        """(b, t) items to states (b, t, dim); `valid` are the offsets of histories in one row, or where no padding is."""

    def item_weights(self) -> tuple[Tensor, Tensor | None]:
        """The matrix (items, dim) and the bias (items) that turn states into scores."""


@runtime_checkable
class ClassifiesImages(Protocol):
    def classify_images(self, images: Tensor) -> Tensor:
        """(b, channels, h, w) normalized images to logits (b, labels)."""


@runtime_checkable
class EncodesImages(Protocol):
    """Reads an image; its states make the vector of an image."""

    def image_states(self, images: Tensor) -> Tensor:
        """(b, channels, h, w) normalized images to states (b, t, dim)."""

    def image_vectors(self, images: Tensor) -> Tensor:
        """(b, channels, h, w) normalized images to a vector for each (b, dim)."""


@runtime_checkable
class TranscribesSpeech(HasVocabularyOutput, Protocol):
    """Reads the features of a recording, and writes a text: recognizers and speech translators."""

    def encode_speech(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Features (b, t, size) and how many frames count, to the memory (b, s, dim), and how many of its states count."""

    def state_count(self, frames: int) -> int:
        """How many states a recording of so many frames has."""

    def ctc_logits(self, memory: Tensor) -> Tensor:
        """The memory to logits (b, s, vocab + 1) of each token and, last, of none."""

    def decode(self, target: Tensor, memory: Any, valid: Any = None, cache: Any = None) -> Tensor:
        """(b, t) token ids to hidden states (b, t, dim)."""

    def project(self, x: Tensor) -> Tensor:
        """Hidden states to logits."""


@runtime_checkable
class DrawsImages(Protocol):
    """Predicts the values of an image one after another, each from those before it."""

    def pixel_nll(self, images: Tensor, labels: Tensor | None = None, small: Tensor | None = None) -> Tensor:
        """-log p of each image (b, h, w, c), bytes, in nats; by class, or as an enlargement of a small image, where the model is for it."""

    def start_images(self, rows: int, labels: Tensor | None = None, small: Tensor | None = None) -> Any:
        """The state before the first turn, for a batch of `rows` images."""

    def step_pixel(self, before: Tensor | None, turn: int, state: Any) -> Tensor:
        """The state (b, dim) of a turn, from the values (b, k) of the turn before it."""


@runtime_checkable
class SpeaksText(Protocol):
    """Reads a text and writes the spectrogram of its sound: voices."""

    def read_text(self, tokens: Tensor, valid: Tensor, speakers: Tensor) -> Tensor:
        """(b, s) token ids, where they are not padding, and the speaker of each, to the memory (b, s, dim)."""

    def spoken(self, frames: Tensor, lengths: Tensor, memory: Tensor, valid: Tensor) -> Any:
        """What is written after each of the frames (b, t, size), how many of which count."""

    def next_frames(self, last: Tensor, state: Any) -> tuple[Tensor, Tensor]:
        """The frames after the last one, and the logit that they are the end."""
