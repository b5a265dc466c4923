"""What `python -m bench.speech` compares: Heed's Speech-Transformer and transformers' Speech2Text, training and decoding the same recordings."""

import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.convert import speech2text
from heed.data.audio.batches import SpeechBatch, collate
from heed.data.batching import plan
from heed.decoding.beam import beam_search
from heed.decoding.limits import BanTokens, end_at_limit
from heed.decoding.speech import JointSteps, ctc_logp
from heed.models.speech_transformer import SpeechTransformer, SpeechTransformerConfig
from heed.products.product import in_batches
from heed.products.recognizer import FRAMES
from heed.tasks.speech_loss import SpeechLoss
from heed.training import loop
from heed.training.schedule import constant
from heed.vocabularies.vocabulary import SpecialTokens

BOS, PAD, EOS, UNKNOWN = range(4)  # as in Speech2Text
SPECIAL = SpecialTokens(PAD, UNKNOWN, EOS, EOS, never=(BOS, PAD, UNKNOWN))
SMOOTHING, CTC, IGNORED = 0.1, 0.3, -100
FRAME_SECONDS = 0.01
TOKENS_A_SECOND = 3.5  # of a text in subwords
BATCH = {"cpu": 16, "cuda": 64}  # recordings in a batch of transformers' generate


@dataclass(frozen=True)
class Shape:
    """What both models have in common."""

    vocab: int = 5000
    mels: int = 80
    dim: int = 256
    heads: int = 4
    hidden: int = 1024
    encoder_layers: int = 12
    decoder_layers: int = 6
    dropout: float = 0.1


@dataclass(frozen=True)
class Recordings:
    """Normalized features of recordings, and the ids of their texts."""

    frames: list[np.ndarray]
    texts: list[list[int]]

    @property
    def seconds(self) -> float:
        return sum(map(len, self.frames)) * FRAME_SECONDS

    @property
    def outputs(self) -> list[int]:
        """How many tokens are written for each: its text and the end."""
        return [len(text) + 1 for text in self.texts]


def recordings(count: int, shape: Shape, median: float, longest: float) -> Recordings:
    """Random features whose lengths have a log-normal distribution, of 1 to `longest` seconds, with texts of matching lengths."""
    random = np.random.default_rng(0)
    seconds = np.exp(random.normal(np.log(median), 0.5, count)).clip(1, longest)
    frames = [random.standard_normal((round(own / FRAME_SECONDS), shape.mels), dtype=np.float32) for own in seconds]
    sizes = [max(1, round(own * TOKENS_A_SECOND)) for own in seconds]
    return Recordings(frames, [random.integers(UNKNOWN + 1, shape.vocab, size).tolist() for size in sizes])


def batches(own: Recordings, budget: int, device: torch.device) -> list[SpeechBatch]:
    """Batches of recordings of similar lengths, at most `budget` frames each, on the device."""
    lengths, sizes = np.array([len(one) for one in own.frames]), np.array(own.outputs)
    planned = plan(lengths, sizes, budget, 0, 0)
    return [
        collate([own.frames[i] for i in rows], [own.texts[i] for i in rows], SPECIAL).to(device) for rows in planned
    ]


def half(device: torch.device) -> Callable:
    """The precision of training: bfloat16 by autocast on a GPU, float32 on the CPU."""
    return lambda: torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else nullcontext()


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)


# heed


def our_model(s: Shape) -> SpeechTransformer:
    torch.manual_seed(0)
    return SpeechTransformer(
        SpeechTransformerConfig(
            s.vocab, s.mels, s.dim, s.heads, s.hidden, s.encoder_layers, s.decoder_layers,
            dropout=s.dropout, hidden_dropout=s.dropout,
        )
    )  # fmt: skip


def same_model(s: Shape) -> SpeechTransformer:
    """Heed's with the very layers and weights of transformers'."""
    theirs = their_model(s)
    with torch.device("cpu"):
        model = SpeechTransformer(speech2text.CONFIG_TABLE.to_ours(theirs.config.to_dict()))
    model.load_state_dict(speech2text.WEIGHTS.to_ours(theirs.state_dict(), model.state_dict().keys()))
    return model


def our_training(
    model: SpeechTransformer, made: Sequence[SpeechBatch], device: torch.device, ctc: float, compiled: bool
) -> Callable[[int], int]:
    """What makes so many steps and returns how many frames they had."""
    model, objective = model.to(device), SpeechLoss(ctc, SMOOTHING)
    objective = torch.compile(objective, dynamic=True) if compiled else objective
    optimizer, rounds = optimizer_of(model), itertools.cycle((sum(own.frame_counts), own) for own in made)

    def run(steps: int) -> int:
        counts = []
        after = [lambda progress: counts.append(progress.position)]
        loop.train(
            model, rounds, objective, optimizer, constant(1e-4, 0), steps=range(1, steps + 1), clip=1.0,
            context=half(device), parts=objective.parts if ctc and not compiled else (), after_step=after,
        )  # fmt: skip
        return sum(counts)

    return run


def our_decoding(
    model: SpeechTransformer, own: Recordings, device: torch.device, beams: int, ctc: float
) -> Callable[[], list[list[int]]]:
    """The search of `heed transcribe`, except that each text has the given number of tokens."""
    dtype = next(model.parameters()).dtype

    @torch.inference_mode()
    def search(rows: list[int]) -> list[list[int]]:
        lengths = torch.tensor([len(own.frames[i]) for i in rows])
        memory, counts = model.encode_speech(
            padded([own.frames[i] for i in rows]).to(device, dtype), lengths.to(device)
        )
        longest = torch.tensor([own.outputs[i] for i in rows], device=device)
        steps = JointSteps(model, EOS, ctc, None, 0.0)
        found = beam_search(
            steps, steps.start(memory, counts, ctc_logp(model, memory) if ctc else None), longest,
            first=EOS, last=EOS, beams=beams, nbest=1, alpha=0.0, scored=True,
            rules=[BanTokens(SPECIAL.never), not_before(longest), end_at_limit(longest, EOS)],
        )  # fmt: skip
        return [list(texts[0].tokens) for texts in found]

    def run() -> list[list[int]]:
        sizes = [len(one) for one in own.frames]
        return in_batches(search, range(len(sizes)), sizes, FRAMES[device.type])

    return run


def not_before(longest: Tensor) -> Callable:
    """A rule that bans the end before the last place of each text."""

    def rule(banned: Tensor, tokens: Tensor, sentence: Tensor) -> None:
        banned[:, EOS] |= tokens.shape[1] + 1 < longest[sentence]

    return rule


def padded(frames: Sequence[np.ndarray]) -> Tensor:
    made = np.zeros((len(frames), max(map(len, frames)), frames[0].shape[1]), dtype=np.float32)
    for row, own in zip(made, frames, strict=True):
        row[: len(own)] = own
    return torch.from_numpy(made)


# transformers


def their_model(s: Shape) -> nn.Module:
    from transformers import Speech2TextConfig, Speech2TextForConditionalGeneration

    torch.manual_seed(0)
    config = Speech2TextConfig(
        vocab_size=s.vocab, d_model=s.dim, encoder_layers=s.encoder_layers, decoder_layers=s.decoder_layers,
        encoder_attention_heads=s.heads, decoder_attention_heads=s.heads, encoder_ffn_dim=s.hidden,
        decoder_ffn_dim=s.hidden, dropout=s.dropout, activation_dropout=s.dropout, input_feat_per_channel=s.mels,
        conv_channels=min(1024, 4 * s.dim), bos_token_id=BOS, pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=EOS,
    )  # fmt: skip
    return Speech2TextForConditionalGeneration(config)


def their_training(
    shape: Shape, made: Sequence[SpeechBatch], device: torch.device, compiled: bool
) -> Callable[[int], int]:
    """The same steps of a plain loop: the same batches, loss, precision, clipping and optimizer."""
    model = their_model(shape).to(device).train()

    def objective(batch: SpeechBatch, mask: Tensor, labels: Tensor) -> Tensor:
        logits = model(batch.features, attention_mask=mask, decoder_input_ids=batch.target, use_cache=False).logits
        return F.cross_entropy(logits.flatten(0, 1), labels, label_smoothing=SMOOTHING, ignore_index=IGNORED)

    loss = torch.compile(objective, dynamic=True) if compiled else objective
    optimizer, rounds = optimizer_of(model), itertools.cycle((own, *_masked(own)) for own in made)

    def run(steps: int) -> int:
        count = 0
        for _ in range(steps):
            batch, mask, labels = next(rounds)
            with half(device)():
                value = loss(batch, mask, labels)
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            count += sum(batch.frame_counts)
        return count

    return run


def _masked(batch: SpeechBatch) -> tuple[Tensor, Tensor]:
    """Which frames count, and the expected token at each place, IGNORED where there is none."""
    mask = (torch.arange(batch.features.shape[1], device=batch.lengths.device) < batch.lengths[:, None]).long()
    labels = torch.full((batch.target.numel(),), IGNORED, device=batch.target.device)
    return mask, labels.index_copy(0, batch.positions, batch.expected)


def their_decoding(
    model: nn.Module, own: Recordings, device: torch.device, beams: int, ordered: bool
) -> Callable[[], list[list[int]]]:
    """`generate` on batches of recordings as they come, or sorted by length; each text has the given number of tokens."""
    from transformers import LogitsProcessorList

    rows = sorted(range(len(own.frames)), key=lambda i: -len(own.frames[i])) if ordered else range(len(own.frames))
    dtype = next(model.parameters()).dtype

    @torch.inference_mode()
    def run() -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for start in range(0, len(rows), BATCH[device.type]):
            chosen = rows[start : start + BATCH[device.type]]
            features = padded([own.frames[i] for i in chosen]).to(device, dtype)
            lengths = torch.tensor([len(own.frames[i]) for i in chosen], device=device)
            longest = torch.tensor([own.outputs[i] for i in chosen], device=device)
            mask = (torch.arange(features.shape[1], device=device) < lengths[:, None]).long()
            made = model.generate(
                features, attention_mask=mask, num_beams=beams, do_sample=False, length_penalty=0.0 if beams > 1 else None,
                max_new_tokens=int(longest.max()), logits_processor=LogitsProcessorList([_ending(longest, beams)]),
            ).tolist()  # fmt: skip
            found |= {i: text[1 : own.outputs[i] + 1] for i, text in zip(chosen, made, strict=True)}
        return [found[i] for i in range(len(own.frames))]

    return run


def _ending(longest: Tensor, beams: int) -> Callable[[Tensor, Tensor], Tensor]:
    """What lets each text end at its last place, and nowhere else."""
    each = longest.repeat_interleave(beams)

    def process(tokens: Tensor, scores: Tensor) -> Tensor:
        over = tokens.shape[1] >= each
        banned = over[:, None].expand_as(scores).clone()
        banned[:, EOS] = ~over
        banned[:, list(SPECIAL.never)] = True
        return scores.masked_fill(banned, -torch.inf)

    return process
