"""Transformer TTS: what must not matter, and its losses beside loops."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from heed.data.audio.voices import VoiceBatch, collate, spelled
from heed.models.transformer_tts import TransformerTTS, TransformerTTSConfig
from heed.tasks.voice_loss import WIDTH, VoiceLoss, end_loss, off_diagonal
from heed.vocabularies.vocabulary import SpecialTokens


def small(**more):
    torch.manual_seed(0)
    sizes = {"dim": 8, "heads": 2, "hidden": 12, "encoder_layers": 2, "decoder_layers": 2, "prenet": 6, "postnet": 5}
    config = TransformerTTSConfig(vocab_size=7, outputs=4, speakers=3, **{**sizes, **more})
    model = TransformerTTS(config).double().eval()
    for weight in model.parameters():
        weight.data.normal_(0, 0.2)
    return model


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(1)
    frames = torch.randn(2, 8, 4, generator=generator).double()
    lengths = torch.tensor([8, 5])
    frames[1, 5:] = 0
    valid = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    tokens = torch.randint(0, 7, (2, 5), generator=generator)
    return VoiceBatch(tokens, valid, torch.tensor([0, 2]), frames, lengths, 13)


@pytest.mark.parametrize("reduction", [1, 2])
def test_padding_does_not_matter(batch, reduction):
    model = small(reduction=reduction)
    memory = model.read_text(batch.tokens, batch.valid, batch.speakers)
    found = model.spoken(batch.frames, batch.lengths, memory, batch.valid)
    alone = model.read_text(batch.tokens[1:, :3], batch.valid[1:, :3], batch.speakers[1:])
    torch.testing.assert_close(memory[1:, :3], alone, rtol=0, atol=1e-10)
    size = -(-5 // reduction) * reduction
    own = model.spoken(batch.frames[1:, :size], batch.lengths[1:], alone, batch.valid[1:, :3])
    torch.testing.assert_close(found.coarse[1, :5], own.coarse[0, :5], rtol=0, atol=1e-10)
    torch.testing.assert_close(found.fine[1, :5], own.fine[0, :5], rtol=0, atol=1e-10)
    torch.testing.assert_close(found.ends[1, : size // reduction], own.ends[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("reduction", [1, 2])
def test_step_by_step_is_the_whole(batch, reduction):
    model = small(reduction=reduction)
    memory = model.read_text(batch.tokens, batch.valid, batch.speakers)
    whole = model.spoken(batch.frames, batch.lengths, memory, batch.valid)
    state, last, made, ends = model.start_speaking(memory, batch.valid), torch.zeros(2, 4).double(), [], []
    for step in range(8 // reduction):
        found, end = model.next_frames(last, state)
        last = batch.frames[:, (step + 1) * reduction - 1]
        made.append(found)
        ends.append(end)
    torch.testing.assert_close(torch.cat(made, dim=1), whole.coarse, rtol=0, atol=1e-10)
    torch.testing.assert_close(torch.stack(ends, dim=1), whole.ends, rtol=0, atol=1e-10)
    torch.testing.assert_close(model.refined(whole.coarse, batch.lengths), whole.fine, rtol=0, atol=1e-10)


def test_the_dropout_of_the_pre_net_stays_on_and_is_the_same_each_time(batch):
    model, plain = small(), small(prenet_dropout=0.0)
    memory = model.read_text(batch.tokens, batch.valid, batch.speakers)
    one, other = (model.spoken(batch.frames, batch.lengths, memory, batch.valid).coarse for _ in range(2))
    assert torch.equal(one, other)
    assert not torch.allclose(one, plain.spoken(batch.frames, batch.lengths, memory, batch.valid).coarse)
    kept = small(prenet=500)._kept(0, 3, 40, memory)
    assert set(kept.unique().tolist()) == {0.0, 2.0} and kept.mean().item() == pytest.approx(1, abs=0.05)
    assert torch.equal(kept[2:], small(prenet=500)._kept(0, 5, 38, memory))


def test_hidden_frames_are_whole_and_no_more_than_their_share():
    frames = torch.ones(200, 400, 3)
    assert VoiceLoss()._seen(frames) is frames
    torch.manual_seed(0)
    seen = VoiceLoss(frame_dropout=0.5)._seen(frames)
    assert set(seen.unique().tolist()) == {0.0, 1.0} and torch.equal(seen.amin(dim=2), seen.amax(dim=2))
    hidden = 1 - seen[..., 0].mean(dim=1)
    assert hidden.max() < 0.6 and hidden.min() < 0.05
    assert hidden.mean().item() == pytest.approx(0.25, abs=0.05)


def test_speakers_sound_different(batch):
    model = small()
    one, other = (model.read_text(batch.tokens, batch.valid, torch.tensor([k, k])) for k in (0, 1))
    assert (one - other).abs().max() > 0.01


def test_the_loss_is_a_sum_over_frames(batch):
    model, loss = small(), VoiceLoss(ends=0.7, end_weight=3.0, guided=2.0)
    whole = loss(model, batch)
    parts = []
    for row, (tokens, frames) in enumerate([(5, 8), (3, 6)]):
        cut = (batch.tokens[row : row + 1, :tokens], batch.valid[row : row + 1, :tokens], batch.speakers[row : row + 1])
        rest = (batch.frames[row : row + 1, :frames], batch.lengths[row : row + 1], int(batch.lengths[row]))
        parts.append(loss(model, VoiceBatch(*cut, *rest)))
    torch.testing.assert_close(parts[0].total + parts[1].total, whole.total, rtol=0, atol=1e-4)  # in float32
    assert whole.count == 13 and set(whole.parts) == set(VoiceLoss.parts)


def test_the_end_and_the_diagonal_are_as_defined():
    ends, lengths = torch.randn(2, 4, generator=torch.Generator().manual_seed(0)).double(), torch.tensor([7, 3])
    expected = 0.0
    for row, last in enumerate([3, 1]):
        for step in range(last + 1):
            p = torch.sigmoid(ends[row, step])
            expected -= 2 * (3 * p.log() if step == last else (1 - p).log())
    torch.testing.assert_close(end_loss(ends, lengths, 2, 3.0).double(), expected, rtol=1e-5, atol=1e-5)
    attention = torch.rand(2, 2, 4, 5, generator=torch.Generator().manual_seed(0)).softmax(-1).double()
    sizes, expected = torch.tensor([5, 3]), 0.0
    for row, (steps, tokens) in enumerate([(4, 5), (2, 3)]):
        away = 0.0
        for head in range(2):
            for n in range(steps):
                for t in range(tokens):
                    gap = n / steps - t / tokens
                    away += attention[row, head, n, t].item() * (1 - math.exp(-(gap**2) / (2 * WIDTH**2))) / 2
        expected += away / steps * lengths[row].item()
    assert off_diagonal(attention, lengths, sizes, 2).item() == pytest.approx(expected, rel=1e-5)
    straight = F.one_hot(torch.arange(4), 5).double()[None, None]
    assert off_diagonal(straight, torch.tensor([8]), torch.tensor([5]), 2) < 0.2 * off_diagonal(
        straight.flip(2), torch.tensor([8]), torch.tensor([5]), 2
    )


def test_texts_are_spelled_in_letters():
    assert spelled("  Hello  안녕 ") == "hello " + "".join(map(chr, [0x110B, 0x1161, 0x11AB, 0x1102, 0x1167, 0x11BC]))


def test_a_token_reaches_six_others_on_each_side_before_the_encoder():
    """Three convolutions over five tokens each, as in the paper."""
    model, tokens = small().float(), torch.zeros(1, 21, 8)
    valid = torch.ones(1, 21, dtype=torch.bool)
    changed = tokens.clone()
    changed[:, 10] = 1
    differs = (model.encoder_prenet(changed, valid) != model.encoder_prenet(tokens, valid)).any(dim=2)[0]
    assert differs.nonzero()[:, 0].tolist() == list(range(4, 17))


def test_a_batch_of_voices_has_each_text_with_its_end_and_frames_up_to_whole_steps():
    frames = [np.full((size, 2), size, dtype=np.float32) for size in (3, 5)]
    batch = collate(frames, [[5, 6, 7], [8]], [1, 0], SpecialTokens(0, 3, 1, 2), reduction=2)
    assert batch.tokens.tolist() == [[5, 6, 7, 2], [8, 2, 0, 0]]
    assert batch.valid.tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.frames.shape == (2, 6, 2) and batch.lengths.tolist() == [3, 5] and batch.count == 8
    assert batch.frames[:, :, 0].tolist() == [[3, 3, 3, 0, 0, 0], [5, 5, 5, 5, 5, 0]]
