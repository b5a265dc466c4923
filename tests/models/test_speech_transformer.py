"""The Speech-Transformer: what must not matter, and its parts beside loops."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from heed.models.speech_transformer import SpeechTransformer, SpeechTransformerConfig
from heed.nn.cache import StackCache
from heed.nn.speech import Attention2D
from heed.tasks.speech_loss import ctc_loss

SMALL = {"dim": 8, "heads": 2, "hidden": 12, "encoder_layers": 2, "decoder_layers": 2, "channels": 3}


def small(**more):
    torch.manual_seed(0)
    model = SpeechTransformer(SpeechTransformerConfig(vocab_size=7, inputs=9, **{**SMALL, **more})).double().eval()
    for weight in model.parameters():
        weight.data.normal_(0, 0.2)
    return model


@pytest.mark.parametrize("more", [{}, {"attention_2d": 2, "heads_2d": 2}, {"subsampling": 2}, {"norm": "post"}])
def test_padding_does_not_matter(more):
    model = small(**more)
    features, lengths = torch.randn(3, 30, 9).double(), torch.tensor([30, 17, 7])
    memory, counts = model.encode_speech(features, lengths)
    for row, (length, count) in enumerate(zip(lengths.tolist(), counts.tolist(), strict=True)):
        alone, own = model.encode_speech(features[row : row + 1, :length], lengths[row : row + 1])
        assert own.item() == count == alone.shape[1] == model.state_count(length)
        torch.testing.assert_close(memory[row, :count], alone[0], rtol=0, atol=1e-10)


def test_cached_steps_are_the_whole_text():
    model = small()
    memory, _ = model.encode_speech(torch.randn(2, 20, 9).double(), torch.tensor([20, 20]))
    target = torch.randint(0, 7, (2, 5))
    whole, cache = model.decode(target, memory), StackCache(2)
    steps = [model.decode(target[:, i : i + 1], memory, cache=cache) for i in range(5)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, rtol=0, atol=1e-10)


def test_2d_attention_is_a_loop_over_channels():
    torch.manual_seed(0)
    part = Attention2D(3, 2).double()
    x, valid = torch.randn(2, 3, 6, 4).double(), torch.ones(2, 6, dtype=torch.bool)
    q, k, v = (own(x) for own in (part.q, part.k, part.v))
    time, frequency = torch.zeros(2, 2, 6, 4).double(), torch.zeros(2, 2, 6, 4).double()
    for b, c in itertools.product(range(2), range(2)):
        for i in range(6):
            weights = torch.stack([q[b, c, i] @ k[b, c, j] / math.sqrt(4) for j in range(6)]).softmax(0)
            time[b, c, i] = sum(weights[j] * v[b, c, j] for j in range(6))
        for i in range(4):
            weights = torch.stack([q[b, c, :, i] @ k[b, c, :, j] / math.sqrt(6) for j in range(4)]).softmax(0)
            frequency[b, c, :, i] = sum(weights[j] * v[b, c, :, j] for j in range(4))
    expected = x + F.relu(part.out(torch.cat([time, frequency], dim=1)))
    torch.testing.assert_close(part(x, valid), expected, rtol=0, atol=1e-10)


def test_the_loss_of_ctc_is_that_of_all_paths():
    torch.manual_seed(0)
    logits, counts, texts = torch.randn(2, 4, 4).double(), [4, 3], [(1, 1), (2,)]
    total = 0.0
    for row, (count, text) in enumerate(zip(counts, texts, strict=True)):
        logp, paths = logits[row, :count].log_softmax(-1), []
        for path in itertools.product(range(4), repeat=count):
            if tuple(token for token, _ in itertools.groupby(path) if token != 3) == text:
                paths.append(sum(logp[i, token] for i, token in enumerate(path)))
        total -= torch.stack(paths).logsumexp(0)
    torch.testing.assert_close(ctc_loss(logits, counts, torch.tensor([1, 1, 2]), [2, 1]), total, rtol=0, atol=1e-10)


def test_a_text_that_its_recording_is_too_short_for_does_not_count():
    logits = torch.randn(1, 2, 4, requires_grad=True)
    loss = ctc_loss(logits, [2], torch.tensor([1, 1]), [2])
    loss.backward()
    assert loss.item() == 0 and not logits.grad.any()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"subsampling": 3}, "subsampling is 3; it must be 2 or 4"),
        ({"inputs": 6}, "a frame has 6 numbers; two convolutions need at least 7"),
        ({"channels": 0}, "channels and heads_2d must be at least 1"),
    ],
)
def test_sizes_that_cannot_be_are_refused(more, words):
    with pytest.raises(ValueError, match=words):
        SpeechTransformerConfig(**{"vocab_size": 7, "inputs": 9, **more})


def test_a_recording_beyond_the_positions_is_refused():
    with pytest.raises(ValueError, match="a recording has 4 states, but the model has 3 positions"):
        small(max_length=3).encode_speech(torch.randn(1, 20, 9).double(), torch.tensor([20]))
