"""Classification, regression and multiple choice with GPT's inputs: what counts, what does not, and the losses by their definitions."""

import pytest
import torch
from torch import nn

from heed.data.labelled import CollateTexts, both_orders, each_choice, shorten
from heed.decoding.cuda import weights as cuda_weights
from heed.kernels import fused_model
from heed.models import adapt
from heed.models.ctrl import CTRL, CTRLConfig
from heed.models.gpt import GPT, GPTConfig
from heed.models.gpt2 import GPT2, GPT2Config
from heed.products.choice_model import ChoiceModel
from heed.products.classifier import Classifier
from heed.tasks.text_losses import LabelLoss, TextLoss, squared_error
from heed.vocabularies.labels import Labels, Numbers
from heed.vocabularies.vocabulary import SpecialTokens

SIZES = {"vocab_size": 23, "dim": 12, "heads": 2, "hidden": 20, "layers": 2, "max_length": 16}
SYSTEMS = {"gpt": (GPT, GPTConfig), "gpt2": (GPT2, GPT2Config), "ctrl": (CTRL, CTRLConfig)}
SPECIAL = SpecialTokens(0, 1, 20, 22, before=(20,), delimiter=(21,)), Labels.special
A, B, C = [3, 4, 5], [6, 7], [8, 9, 10, 11]


def model(name, **changes):
    kind, config = SYSTEMS[name]
    torch.manual_seed(0)
    own = kind(config(**{**SIZES, "dropout": 0.0, "choice_dropout": 0.0, **changes})).double().eval()
    for weight in own.parameters():
        nn.init.normal_(weight, std=0.2)
    return own


def joined(*parts):
    return [i for part in parts for i in (21, *part)][1:]


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_extract_token_sees_every_token_and_no_padding(name):
    own, collate = model(name, labels=3), CollateTexts()
    batch = collate([joined(A, B), C], [[0], [1]], SPECIAL)
    assert batch.source[1].tolist() == [20, *C, 22, 0, 0]
    logits = own.classify_text(batch.source, batch.valid)
    alone = collate([C], [[1]], SPECIAL)
    torch.testing.assert_close(own.classify_text(alone.source, alone.valid)[0], logits[1], rtol=0, atol=1e-12)
    other = batch.source.clone()
    other[1, -2:] = 5  # padding
    torch.testing.assert_close(own.classify_text(other, batch.valid), logits, rtol=0, atol=1e-12)
    for place in range(6):
        other = batch.source.clone()
        other[1, place] = 15
        assert not torch.allclose(own.classify_text(other, batch.valid)[1], logits[1])


def test_similarity_is_symmetric_and_the_same_as_adding_both_states():
    own, loss = model("gpt", labels=1), TextLoss(squared_error, Classifier.combine, inputs=2, lm_weight=0.5)
    numbers = Numbers().encode(["2.5"])
    collate = CollateTexts(both_orders, numbers=True)
    one, other = (collate([ids], numbers, SPECIAL) for ids in (joined(A, B), joined(B, A)))
    assert one.source.tolist() == other.source.flip(0).tolist()
    found = [loss(own, batch).total.item() for batch in (one, other)]
    assert found[0] == pytest.approx(found[1], abs=1e-12)
    states = own.hidden_states(one.source)[:, -1].sum(dim=0)
    error = (own.head.out(states) - 2.5).square()
    assert TextLoss(squared_error, Classifier.combine, inputs=2)(own, one).total.item() == pytest.approx(
        error.item(), abs=1e-12
    )


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_loss_is_that_of_the_task_and_the_mean_of_each_text_by_plain_definition(name):
    own, loss = model(name, labels=3), TextLoss(LabelLoss(0.1), Classifier.combine, lm_weight=0.5)
    batch = CollateTexts()([joined(A, B), C], [[0], [2]], SPECIAL)
    task = language = 0.0
    for tokens, label in (([20, *joined(A, B), 22], 0), ([20, *C, 22], 2)):
        states = own.hidden_states(torch.tensor([tokens]))[0]
        logp = own.head(states[-1]).log_softmax(dim=0)
        task += -0.9 * logp[label] - 0.1 * logp.mean()
        next_tokens = own.project(states[:-1]).log_softmax(dim=1)
        language += -sum(next_tokens[i, token] for i, token in enumerate(tokens[1:])) / (len(tokens) - 1)
    found = loss(own, batch)
    assert found.count == 2 and loss.parts == ("language",)
    assert found.total.item() == pytest.approx((task + 0.5 * language).item(), abs=1e-10)
    assert found.parts["language"].total.item() == pytest.approx(language.item(), abs=1e-10)
    found.total.backward()
    assert own.tokens.weight.grad[22].abs().sum() > 0


@pytest.mark.parametrize("name", ["gpt", "gpt2"])
def test_double_heads_have_the_losses_of_transformers(name):
    import transformers

    from heed.convert import gpt as gpt_tables
    from heed.convert import gpt2 as gpt2_tables

    own = model(name, choices=True, hidden=48)
    architecture = {"gpt": gpt_tables, "gpt2": gpt2_tables}[name].ARCHITECTURES[1]
    weights, settings = architecture.to_theirs(own)
    kind, config = (
        getattr(transformers, f"{architecture.name.removesuffix('DoubleHeadsModel')}{end}")
        for end in ("DoubleHeadsModel", "Config")
    )
    theirs = kind(config(**{key: value for key, value in settings.items() if key != "architectures"})).double().eval()
    theirs.load_state_dict(weights, strict=False)
    questions = [joined(A, C[:2], B), joined(C, [3, 8], [12, 13])]
    for ids, label in zip(questions, (1, 0), strict=True):  # with texts of one length, a mean of means is the mean
        batch = CollateTexts(each_choice)([ids], [[label]], SPECIAL)
        tokens = batch.source[None]
        last = torch.full((1, 2), tokens.shape[-1] - 1)
        with torch.no_grad():
            expected = theirs(tokens, mc_token_ids=last, labels=tokens, mc_labels=torch.tensor([label]))
            for lm_weight in (0.5, 2.0):
                found = TextLoss(LabelLoss(), ChoiceModel.combine, inputs=2, lm_weight=lm_weight)(own, batch)
                total = expected.mc_loss + lm_weight * expected.loss
                assert found.total.item() == pytest.approx(total.item(), abs=1e-10)
            scores = own.choose(batch.source[None])
            torch.testing.assert_close(scores, expected.mc_logits, rtol=0, atol=1e-10)


@pytest.mark.parametrize("lm_weight", [0.0, 0.5])
def test_parts_of_a_batch_add_up_and_of_no_rows_there_is_no_loss(lm_weight):
    own, collate = model("gpt2", choices=True), CollateTexts(each_choice)
    loss = TextLoss(LabelLoss(0.1), ChoiceModel.combine, inputs=2, lm_weight=lm_weight)
    rows, labels = [joined(A, B, C), joined(C, A, B), joined(B, C, A)], [[0], [1], [1]]
    whole = loss(own, collate(rows, labels, SPECIAL))
    parts = [loss(own, collate(rows[i:j], labels[i:j], SPECIAL)) for i, j in ((0, 1), (1, 3), (3, 3))]
    assert sum(part.count for part in parts) == whole.count == 3 and parts[2].total == 0
    assert sum(part.total for part in parts).item() == pytest.approx(whole.total.item(), abs=1e-10)


@pytest.mark.parametrize("name", SYSTEMS)
def test_added_tokens_get_new_rows_and_nothing_else_changes(name):
    own = model(name).float()
    grown = adapt(own, type(own.config)(**{**SIZES, "vocab_size": 26, "labels": 2, "dropout": 0.0})).eval()
    for key, weight in own.state_dict().items():
        torch.testing.assert_close(grown.state_dict()[key][: len(weight)], weight, rtol=0, atol=0)
    tokens = torch.tensor([[1, 2, 3]])
    torch.testing.assert_close(grown.hidden_states(tokens), own.hidden_states(tokens))
    assert set(grown.state_dict()) - set(own.state_dict()) == {"head.out.weight"}


def test_what_is_too_long_loses_the_end_of_its_longest_part():
    assert shorten([[1, 2, 3, 4, 5], [6, 7]], 5, 1) == [[1, 2], [6, 7]]
    assert shorten([[1, 2], [6, 7]], 5, 1) == [[1, 2], [6, 7]]


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_prompt_is_read_before_every_text_also_step_by_step_and_takes_no_positions(name):
    own = model(name, prompt_length=3)
    tokens = torch.randint(0, 20, (2, SIZES["max_length"]))
    with torch.no_grad():
        whole = own.hidden_states(tokens)
        state = own.start(2)
        first = own.hidden_states(tokens[:, :5], state)
        rest = [own.hidden_states(tokens[:, [i]], state) for i in range(5, SIZES["max_length"])]
        torch.testing.assert_close(torch.cat([first, *rest], dim=1), whole, rtol=0, atol=1e-10)
        plain = model(name)
        plain.load_state_dict({key: weight for key, weight in own.state_dict().items() if key != "prompt"})
        assert not torch.allclose(plain.hidden_states(tokens), whole)
        states = [own.start(1), own.start(1)]
        for i, (state, length) in enumerate(zip(states, (2, 4), strict=True)):
            own.hidden_states(tokens[[i], :length], state)
        both = type(states[0]).join(states, [1, 1])
        found = own.step(tokens[[0, 1], [2, 4]], both)
        expected = [own.project(whole[0, 2]), own.project(whole[1, 4])]
        torch.testing.assert_close(found, torch.stack(expected), rtol=0, atol=1e-10)


def test_fast_paths_leave_a_model_with_a_prompt_alone():
    sizes = {"dim": 64, "hidden": 128}
    plain, prompted = model("gpt2", **sizes), model("gpt2", **sizes, prompt_length=3)
    for supports in (fused_model.supports, fused_model.supports_packing, cuda_weights.supports_text):
        assert supports(plain) and not supports(prompted)
