"""Token classification, question answering, pre-training and embeddings: packed texts train a model as padded ones do."""

import numpy as np
import pytest
import torch

from heed.data.answers import collate_answers
from heed.data.labelled import PackTexts
from heed.data.pretraining import MaskedBatch
from heed.data.streams import IGNORED
from heed.data.tagged import collate_tagged
from heed.data.text_pairs import CollatePairs
from heed.nn.packing import SequenceOffsets
from heed.tasks.contrastive_loss import ContrastiveLoss
from heed.tasks.masked import MaskedLoss
from heed.tasks.question_answering import AnswerLoss, QuestionAnswering
from heed.tasks.replaced_tokens import ReplacedTokensLoss
from heed.tasks.tagging import Tagging, TagLoss
from heed.training.accelerated.captured_passes import CapturedPasses
from heed.vocabularies.vocabulary import SpecialTokens
from tests.tasks.test_packed_texts import ENCODERS, encoder, results

SPECIAL = (SpecialTokens(0, 1, 2, 3, before=(2,), delimiter=(3,), segments=True), SpecialTokens(0, 1, 2, 3))
TEXTS = [[5, 6, 7, 8, 9, 10], [11], [12, 13, 14], [15, 16]]
LABELS = [[1, 0, 3, 0, 2, 1], [2], [0, 0, 0], [3, 1]]  # 1 + the label, 0 for none
QUESTIONS = [[5, 6, 3, 7, 8, 9, 10], [11, 3, 12], [13, 3, 14, 15, 16, 17]]
ANSWERS = [[4, 6], [0, 0], [5, 5]]


def compare(model, loss, padded, packed):
    one, other = results(model, loss, padded), results(model, loss, packed)
    assert sum(float(own.abs().sum()) for own in one) > 1 and one[2] > 0
    torch.testing.assert_close(other, one, rtol=0, atol=1e-10)
    return other


@pytest.mark.parametrize("slots", [1, 16, 64])
@pytest.mark.parametrize("task", ["tagging", "answers"])
@pytest.mark.parametrize("name", ENCODERS)
def test_labelled_tokens_and_answers(name, task, slots):
    if task == "tagging":
        model, loss, pack, collate = encoder(name, head="tokens"), TagLoss(0.1), Tagging.pack, collate_tagged
        rows = TEXTS, LABELS
    else:
        own = {"separator": 3} if name == "bigbird" else {}
        model, loss, collate = encoder(name, 0, head="answer", **own), AnswerLoss(), collate_answers
        rows, pack = (QUESTIONS, ANSWERS), QuestionAnswering.pack
    batch = pack(*rows, SPECIAL, slots=slots)
    assert batch.source.shape[1] % slots == 0 and not hasattr(batch.valid, "dtype")
    packed = compare(model, loss, collate(*rows, SPECIAL), batch)
    captured = results(model, loss, batch, CapturedPasses(model, loss))
    torch.testing.assert_close(captured, packed, rtol=0, atol=0)
    total, nll, count, *gradients = results(model, loss, pack([], [], SPECIAL, slots=slots))
    assert total == nll == count == 0 and not any(own.any() for own in gradients)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_pairs_with_negatives(name, pooling):
    model, loss = encoder(name, 0, head="none"), ContrastiveLoss(pooling, 5.0)
    rows = [[5, 6, 7], [8], [9, 10, 11, 12]], [[13, 3, 14, 15], [16, 17, 3, 18], [19, 3, 20]]
    padded, packed = (CollatePairs(3, own)(*rows, (SPECIAL[0],) * 2) for own in (False, True))
    assert isinstance(packed.valid, SequenceOffsets) and packed.tokens.shape[1] == int(padded.valid.sum())
    compare(model, loss, padded, packed)


def masked(paired: bool) -> MaskedBatch:
    """Rows of 9, 12, 4 and no tokens, the last for a batch that is not full."""
    torch.manual_seed(3)
    sizes = torch.tensor([9, 12, 4, 1])
    valid = torch.arange(12) < sizes[:, None]
    tokens = torch.randint(5, 40, valid.shape).where(valid, torch.tensor(0))
    tokens[:3, 0], tokens[3, 0] = 2, 0
    positions = torch.tensor([[2, 5, 0], [14, 20, 23], [26, 0, 0], [0, 0, 0]])
    expected = torch.tensor([[7, 8, -1], [9, 10, 11], [12, -1, -1], [-1, -1, -1]])
    segments = (torch.arange(12) > 3).long() * valid
    labels = torch.tensor([1, 0, IGNORED, IGNORED])
    return MaskedBatch(tokens, valid, segments if paired else None, positions.ravel(), expected.ravel(),
                       labels if paired else None, 6, 3, 25)  # fmt: skip


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("name", ENCODERS)
def test_rows_of_masked_words(name, paired):
    model = encoder(name, 0, head="pretraining" if paired else "masked")
    batch = masked(paired)
    packed = batch.packed()
    assert packed.tokens.shape == (1, 26) and torch.equal(
        packed.filled(packed.expected), batch.filled(batch.expected)[batch.valid][None]
    )
    compare(model, MaskedLoss(2.0 if paired else 0.0), batch, packed)


def test_rows_of_replaced_tokens():
    model, loss = encoder("electra", 0, head="joint"), ReplacedTokensLoss(5.0, 0)
    batch, found = masked(False), []
    for own in (batch, batch.packed()):
        torch.manual_seed(5)  # of the words that are drawn
        found.append(results(model, loss, own))
    assert found[0][0] > 1
    torch.testing.assert_close(*found, rtol=0, atol=1e-10)


def test_rows_without_padding_stay_as_they_are():
    batch = masked(False)
    full = batch._replace(valid=None)
    assert full.packed() is full


def test_a_pack_of_labels_of_tokens_counts_them():
    batch = PackTexts(collate_tagged, tokens=True)(TEXTS, LABELS, SPECIAL, slots=16)
    assert batch.count == 7 and int((batch.labels >= 0).sum()) == 7
    starts = np.diff(batch.valid.starts.numpy())[: len(TEXTS)].tolist()
    assert starts == [8, 3, 5, 4]
