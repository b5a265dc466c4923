"""The loss of a recognizer on validation recordings: a mean over tokens, however they are batched."""

import numpy as np
import pytest
import torch

from heed.models.speech_transformer import SpeechTransformer, SpeechTransformerConfig
from heed.tasks import speech
from heed.tasks.speech_loss import SpeechLoss
from heed.vocabularies.characters import Characters
from heed.vocabularies.sound import FeatureSettings, SoundFeatures


@pytest.mark.parametrize("budget", [10_000, 40, 1])
def test_it_is_the_mean_over_the_tokens_of_recordings_alone(budget, monkeypatch):
    monkeypatch.setattr(speech, "VALID_FRAMES", budget)
    torch.manual_seed(0)
    words, sound = Characters(list("abcde")), SoundFeatures(FeatureSettings(kind="given", given=9))
    sizes = {"dim": 8, "heads": 2, "hidden": 12, "encoder_layers": 1, "decoder_layers": 1, "channels": 3}
    model = SpeechTransformer(SpeechTransformerConfig(vocab_size=len(words), inputs=9, **sizes)).eval()
    frames = [np.random.default_rng(n).random((n, 9), dtype=np.float32) for n in (30, 17, 24)]
    own = speech.SpeechValidation.__new__(speech.SpeechValidation)
    own.ids, own.smoothing = words.encode(["abc", "e", "dada"]), SpeechLoss(0.0, 0.0)
    found = own._loss(model, frames, sound, words)
    alone = [
        own.smoothing(model, speech.collate([sound.normalized(each)], [ids], words.special))
        for each, ids in zip(frames, own.ids, strict=True)
    ]
    assert found == pytest.approx(sum(one.nll.item() for one in alone) / sum(one.count for one in alone), abs=1e-5)
    assert found > 0
