"""Small language models that know nothing but say different things."""

import torch

from heed.models.ctrl import CTRL, CTRLConfig
from heed.models.gpt2 import GPT2, GPT2Config
from heed.models.rnn_lm import RNNLanguageModel, RNNLanguageModelConfig
from heed.products.generator import Generator
from heed.vocabularies import characters
from heed.vocabularies.sentencepiece import SubwordsConfig

TEXT = "the cat sat on the mat, and it was warm\n세 마리 고양이"


def _generator(model, vocabulary, std=0.3) -> Generator:
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, std)
    return Generator(model.double().requires_grad_(False), vocabulary)


def gpt2() -> Generator:
    vocabulary = characters.learn("characters", TEXT.split("\n"), SubwordsConfig())
    return _generator(
        GPT2(GPT2Config(len(vocabulary), dim=16, heads=2, hidden=32, layers=2, max_length=64)), vocabulary
    )


def ctrl() -> Generator:
    vocabulary = characters.learn("characters", TEXT.split("\n"), SubwordsConfig(), ["Tales", "Letters"])
    return _generator(
        CTRL(CTRLConfig(len(vocabulary), dim=16, heads=2, hidden=32, layers=1, max_length=64)), vocabulary, 1.0
    )


def rnn() -> Generator:
    vocabulary = characters.learn("bytes", TEXT.split("\n"), SubwordsConfig())
    return _generator(RNNLanguageModel(RNNLanguageModelConfig(len(vocabulary), dim=12, hidden=12)), vocabulary)
