"""The losses of pre-training beside those of transformers, what they add up to, and what is measured of them."""

import math
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
import transformers

from heed.convert import huggingface
from heed.data.batching import DataPosition
from heed.data.pretraining import PairSettings, masked_batches
from heed.data.readers import Line
from heed.data.segments import read_text
from heed.evaluation.masked_words import measure_masked, measure_replaced, replaced_scores, sample_words
from heed.runs import recipe as recipes
from heed.tasks import TASKS
from heed.tasks.masked import MaskedLoss
from heed.tasks.replaced_tokens import ReplacedTokensLoss
from tests.convert.encoders import package
from tests.data.mixed import training

SETTINGS = PairSettings(length=40)


def batches(own, number=2, rows=6, **settings):
    """Batches of rows of a text in documents of four lines."""
    texts = [text for i, line in enumerate(training()[:160]) for text in ([line] if i % 4 else ["", line])]
    text = read_text(
        [Line(line, line, f"text:{i + 1}") for i, line in enumerate(texts)], own.processors["text"], "paragraph"
    )
    made = masked_batches(text, own.processors["text"], replace(SETTINGS, **settings), batch_tokens=40 * rows)
    return [batch for _, batch in islice(made.start(DataPosition()), number)]


def double(own):
    return own._replace(model=own.model.double())


def theirs(own, name, folder):
    huggingface.write(own, folder)
    return getattr(transformers, name).from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()


def their_inputs(batch):
    """A batch as transformers takes it, with -100 where no token is expected."""
    labels = torch.full_like(batch.tokens, -100).flatten()
    hidden = batch.expected >= 0
    labels[batch.positions[hidden]] = batch.expected[hidden]
    valid = torch.ones_like(batch.tokens) if batch.valid is None else batch.valid.long()
    inputs = {"input_ids": batch.tokens, "attention_mask": valid, "labels": labels.view_as(batch.tokens)}
    return inputs | ({} if batch.segments is None else {"token_type_ids": batch.segments})


def close(one, other, most=1e-10):
    torch.testing.assert_close(torch.as_tensor(one, dtype=torch.float64), other.double(), rtol=0, atol=most)


@pytest.mark.parametrize(
    ("system", "name", "pair", "label"),
    [
        ("bert", "BertForPreTraining", "next", "next_sentence_label"),
        ("albert", "AlbertForPreTraining", "order", "sentence_order_label"),
        ("bigbird", "BigBirdForPreTraining", "next", "next_sentence_label"),
        ("roberta", "RobertaForMaskedLM", "none", None),
    ],
)
def test_the_loss_is_that_of_transformers_on_the_same_corrupted_batch(system, name, pair, label, tmp_path):
    own = package(system, "masked" if pair == "none" else "pretraining")
    other, own = theirs(own, name, tmp_path / "out"), double(own)
    [batch, _] = batches(own, pair=pair)
    assert batch.count > 20 and (batch.segments is not None) == (pair != "none")
    with torch.no_grad():
        expected = other(**their_inputs(batch), **({label: batch.labels} if label else {})).loss
        # with the numbers of this batch the sum is the sum of the two means
        loss = MaskedLoss(batch.count / batch.rows if label else 0.0)(own.model, batch)
        close(loss.total / loss.count, expected)
        words, pairs = measure_masked(own.model, [batch])
        close(words.loss + (pairs.loss if label else 0.0), expected)
    if label:
        assert loss.parts["pairs"].count == batch.rows and loss.parts["masked_words"].count == batch.count


def test_the_losses_of_generator_and_discriminator_are_those_of_transformers(tmp_path):
    own = package("electra", "joint", heads=4, generator_fraction=0.5)
    discriminator = theirs(own, "ElectraForPreTraining", tmp_path / "out")
    folder = tmp_path / "out" / "generator"
    generator = transformers.ElectraForMaskedLM.from_pretrained(
        folder, dtype=torch.float64, attn_implementation="eager"
    ).eval()
    own = double(own)
    [batch, _] = batches(own)
    pad = own.processors["text"].special.pad
    with torch.no_grad():
        torch.manual_seed(5)
        loss = ReplacedTokensLoss(50 * batch.count / batch.size, pad)(own.model, batch)
        inputs = their_inputs(batch)
        found = generator(**inputs)
        close(loss.parts["generator"].total / loss.count, found.loss)
        close(loss.nll, loss.total)  # what the log calls the loss is that of the validation
        # the words that were drawn: the same draws from transformers' generator
        torch.manual_seed(5)
        words = sample_words(found.logits.flatten(0, 1)[batch.positions])
        before, after = batch.filled(batch.expected), batch.filled(words)
        replaced, valid = (before != after), inputs["attention_mask"].bool()
        assert 5 < replaced.sum() <= batch.count
        outputs = discriminator(after, attention_mask=inputs["attention_mask"], labels=replaced.long())
        close(loss.parts["discriminator"].total / batch.size, outputs.loss, 1e-6)  # theirs is in single precision
        exact = F.binary_cross_entropy_with_logits(outputs.logits[valid], replaced[valid].double())
        close(loss.parts["discriminator"].total / batch.size, exact)
        close(loss.total / loss.count, found.loss + 50 * exact, 1e-9)


def test_no_gradient_goes_through_the_sampling_and_every_weight_of_both_gets_one():
    own = double(package("electra", "joint", heads=4, generator_fraction=0.5))
    [batch, _] = batches(own)
    own.model.requires_grad_(True)
    ReplacedTokensLoss(1.0, own.processors["text"].special.pad)(own.model, batch).total.backward()
    assert all(weight.grad is not None for weight in own.model.parameters())
    gradient = own.model.generator.words.dense.weight.grad.clone()
    own.model.zero_grad()
    ReplacedTokensLoss(1000.0, own.processors["text"].special.pad)(own.model, batch).total.backward()
    torch.testing.assert_close(own.model.generator.words.dense.weight.grad, gradient)


def test_what_the_generator_gets_right_counts_as_original():
    own = double(package("electra", "joint", heads=4, generator_fraction=0.5))
    [batch, _] = batches(own)
    pad, word = own.processors["text"].special.pad, batch.expected[0]
    own.model.generator.words.bias[word] = 1e4  # it says this word everywhere
    right = int((batch.expected == word).sum())
    _, replaced, original = measure_replaced(own.model, [batch], pad)
    assert right > 0 and (replaced.count, original.count) == (batch.count - right, batch.size - batch.count + right)
    own.model.head["replaced"].out.weight.zero_()
    own.model.head["replaced"].out.bias.fill_(1.0)
    found = ReplacedTokensLoss(1.0, pad)(own.model, batch).parts["discriminator"].total
    yes, no = (F.softplus(torch.tensor(sign, dtype=torch.float64)) for sign in (-1.0, 1.0))
    close(found, replaced.count * yes + original.count * no)


def test_words_are_drawn_from_the_distribution_of_the_logits():
    logits = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64).log().expand(40_000, 4)
    drawn = sample_words(logits, torch.Generator().manual_seed(1)).bincount(minlength=4) / 40_000
    for share, p in zip(drawn.tolist(), (0.1, 0.2, 0.3, 0.4), strict=True):
        assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / 40_000)


@pytest.mark.parametrize(
    ("system", "pair"), [("bert", "next"), ("albert", "order"), ("bert", "none"), ("electra", None)]
)
def test_the_losses_of_the_shares_of_a_batch_add_up(system, pair):
    head = "joint" if pair is None else "masked" if pair == "none" else "pretraining"
    own = double(package(system, head, **({"heads": 4, "generator_fraction": 0.5} if pair is None else {})))
    pad = own.processors["text"].special.pad
    text = read_text(
        [Line(line, line, "text:2") for line in [*training()[:9], "", *training()[9:15]]],
        own.processors["text"],
        "paragraph",
    )
    settings = replace(SETTINGS, pair=pair or "none")
    if pair is None:  # whatever the generator draws, the tokens of the discriminator count
        objective = lambda model, batch: ReplacedTokensLoss(0.0, pad)(model, batch)  # noqa: E731
    else:
        objective = MaskedLoss(5.0 if pair != "none" else 0.0)
    shares = [
        masked_batches(text, own.processors["text"], settings, batch_tokens=40 * 64, share=(i, 4)) for i in range(4)
    ]
    whole = masked_batches(text, own.processors["text"], settings, batch_tokens=40 * 64)
    with torch.no_grad():
        [one], parts = (
            [objective(own.model, b) for b in whole.one_epoch()],
            [objective(own.model, b) for share in shares for b in share.one_epoch()],
        )
    assert any(part.count == 0 for part in parts)  # there are rows for some of the processes alone
    close(sum(part.total for part in parts), one.total)
    assert sum(part.count for part in parts) == one.count
    for name in one.parts or {}:
        assert sum(part.parts[name].count for part in parts) == one.parts[name].count


def test_what_is_measured_of_a_discriminator_is_of_the_words_that_were_replaced_and_of_the_others():
    own = double(package("electra", "joint", heads=4, generator_fraction=0.5))
    pad, made = own.processors["text"].special.pad, batches(own, 3)
    words, replaced, original = measure_replaced(own.model, made, pad)
    assert words.count == sum(batch.count for batch in made) and 0 < replaced.count <= words.count
    assert replaced.count + original.count == sum(batch.size for batch in made)
    own.model.head["replaced"].out.weight.zero_()
    own.model.head["replaced"].out.bias.fill_(2.0)  # everything was replaced
    found = replaced_scores(own.model, made, pad, 50.0)
    assert (found["replaced"], found["original"]) == (100.0, 0.0)
    share, right, wrong = (
        replaced.count / (replaced.count + original.count),
        math.log1p(math.exp(-2)),
        math.log1p(math.exp(2)),
    )
    assert found["discriminator"] == pytest.approx(share * right + (1 - share) * wrong)
    assert found["loss"] == pytest.approx(found["generator"] + 50 * found["discriminator"])
    assert replaced_scores(own.model, made, pad, 50.0) == found  # the same words each time


@pytest.mark.parametrize(("settings", "refused"), [({}, True), ({"infill": 0.0, "mask": 0.0, "delete": 0.1}, False)])
def test_a_model_without_a_mask_learns_no_denoising_that_needs_one(settings, refused):
    task = TASKS["denoising"](TASKS["denoising"].Settings(**settings))
    vocabulary = SimpleNamespace(special=SimpleNamespace(mask=None), key=lambda: "the same")
    base = SimpleNamespace(vocabularies=[vocabulary] * 2)
    recipe = SimpleNamespace(model=SimpleNamespace(folder="runs/x"), subwords=SimpleNamespace(sampling=0.0))
    if not refused:
        task.check_base(recipe, base)
        return
    with pytest.raises(
        ValueError, match=r"runs/x has a vocabulary without a mask token, which denoising needs: start from a"
    ):
        task.check_base(recipe, base)


@pytest.mark.parametrize(
    ("valid", "document", "says"),
    [
        ([], "file", r"but the last 16 lines, set aside for validation, are a single document \(task.document is 'file'\).* set data\.valid_source to two or more files"),
        ([], "paragraph", r"but the last 16 lines, .* a single document .* set data\.valid_source to a text of two or more documents"),
        (["a.txt"], "file", r"but the validation text is a single document .* to two or more files"),
        (["a.txt", "b.txt"], "file", ""),
        ([], "line", ""),
    ],
)  # fmt: skip
def test_pairs_of_other_documents_need_two_documents_to_validate_on(tmp_path, valid, document, says):
    for i, name in enumerate(("a.txt", "b.txt")):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in training()[80 * i : 80 * i + 80]), "utf-8")
    paths = {
        "source": [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")],
        "valid_source": [str(tmp_path / name) for name in valid],
    }
    model = {"name": "bert", "dim": 16, "heads": 2, "hidden": 24, "layers": 1, "max_length": 32}
    task = {"name": "masked", "pair": "next", "document": document, "length": 32}
    made = recipes.parse(
        {"model": model, "task": task, "data": paths, "subwords": {"size": 400}, "training": {"steps": 1}}
    )
    told = []

    def prepare():
        return made.task.prepare(made, None, lambda what, done: told.append(what))

    if says:
        with pytest.raises(ValueError, match=f"task.pair is 'next', {says}"):
            prepare()
        assert set(told) <= {"counting", "reading"}  # nothing is encoded
    else:
        assert made.task.validation(made, prepare()).size
