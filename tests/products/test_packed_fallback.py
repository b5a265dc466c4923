"""Where torch has no kernel for packed texts, classify and embed pad attention and say so once."""

import sys
import warnings

import numpy as np
import pytest
import torch

from heed.nn import packing
from heed.products import text_batches
from heed.products.classifier import Classifier
from heed.products.embedder import Embedder
from tests.convert.encoders import package

TEXTS = ["나는 책을 읽어요.", "one", "the cat reads a book, and sleeps", "고양이", "책이 있어요.", "one", ""]


def half_precision(verb):
    own = package("bert", "classification")
    own.model.bfloat16()
    return Embedder.open([own], ["bert"]).embed if verb == "embed" else Classifier.open([own], ["bert"]).outputs


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # on a CPU without bfloat16
@pytest.mark.parametrize("missing", [True, False], ids=["no varlen kernel", "a kernel that fails"])
@pytest.mark.parametrize("verb", ["embed", "classify"])
def test_attention_is_padded_with_one_warning(verb, missing, monkeypatch):
    run = half_precision(verb)
    expected = run(TEXTS, batch_tokens=12)
    if missing:
        monkeypatch.setitem(sys.modules, "torch.nn.attention.varlen", None)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)  # so that the kernel is tried, which fails on the CPU
    packing._flash_runs.cache_clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = run(TEXTS, batch_tokens=12)
    packing._flash_runs.cache_clear()
    told = [str(one.message).split(":")[0] for one in said if "mkldnn" not in str(one.message)]
    assert told == ["packed attention uses padding here, which is slower"]
    assert np.array_equal(found, expected)


def test_labels_are_read_in_chunks_and_come_back_in_their_order(monkeypatch):
    run = Classifier.open([package("bert", "classification")], ["bert"], engine="torch").outputs
    whole = run(TEXTS)
    monkeypatch.setattr(text_batches, "CHUNK", 3)
    torch.testing.assert_close(run(TEXTS), whole, rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="text 5 has "):
        run([*TEXTS[:4], "one " * 200])
