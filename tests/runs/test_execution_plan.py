"""How fast a run goes: what the settings, the model, the task and the device allow."""

import dataclasses
import itertools
from functools import partial

import pytest
import torch

from heed.data.batching import collate, plan, plan_packed
from heed.data.labelled import CollateTexts, PackTexts
from heed.data.packing import pack
from heed.kernels.fused_model import supports_packing
from heed.models.bert import Bert, BertConfig
from heed.models.bigbird import BigBird, BigBirdConfig
from heed.models.electra import Electra, ElectraConfig
from heed.models.gpt2 import GPT2, GPT2Config
from heed.models.rnn_lm import RNNLanguageModel, RNNLanguageModelConfig
from heed.models.transformer import Transformer, TransformerConfig
from heed.models.transformer_xl import TransformerXL, TransformerXLConfig
from heed.models.vit import ViT, ViTConfig
from heed.nn.pixels import Normalize
from heed.products.classifier import Classifier
from heed.runs.execution_plan import plan_execution
from heed.tasks.classification import Classification, ClassificationSettings
from heed.tasks.contrastive_loss import ContrastiveLoss
from heed.tasks.embedding import Embedding, EmbeddingSettings
from heed.tasks.image_classification import ImageClassification, ImageClassificationSettings, ImageLoss
from heed.tasks.language import LanguageModelling, LanguageSettings
from heed.tasks.masked import MaskedLanguage, MaskedLoss
from heed.tasks.question_answering import AnswerLoss, QuestionAnswering
from heed.tasks.replaced_tokens import ReplacedTokens, ReplacedTokensLoss
from heed.tasks.sequence_loss import CrossEntropy, Distilled, RDrop
from heed.tasks.tagging import Tagging, TagLoss
from heed.tasks.text_losses import LabelLoss, PackedTextLoss, TextLoss
from heed.tasks.translation import Translation, TranslationSettings
from heed.training.config import TrainingConfig
from heed.training.distributed import Sharded, SingleProcess
from heed.vocabularies.vocabulary import SpecialTokens

ROWS = {"vocab_size": 20, "dim": 32, "heads": 2, "hidden": 32, "layers": 1, "max_length": 20}
CPU, CUDA = SingleProcess(), SingleProcess(torch.device("cuda"))


@pytest.fixture(autouse=True)
def a_good_card(monkeypatch):
    """With all that the accelerated step needs."""
    monkeypatch.setattr("heed.runs.execution_plan.gpu_multiplies_bfloat16", lambda: True)
    monkeypatch.setattr("heed.runs.execution_plan.find_spec", lambda name: name)


def model(**shape):
    sizes = {"dim": 32, "heads": 2, "hidden": 32, "encoder_layers": 1, "decoder_layers": 1, "max_length": 20}
    return Transformer(TransformerConfig(vocab_size=20, **{**sizes, **shape}))


LABEL_LOSS = TextLoss(LabelLoss(0.1), Classifier.combine)
TRANSLATION, CLASSIFICATION = Translation(TranslationSettings()), Classification(ClassificationSettings())


def plan_for(workers=CPU, made=None, objective=None, task=TRANSLATION, most=0, **settings):
    return plan_execution(
        TrainingConfig(**settings), made or model(), task, objective or CrossEntropy(0.1), workers, most
    )


def test_on_a_cpu_sentences_stand_side_by_side_in_float32():
    found = plan_for()
    assert (found.precision, found.grouping, found.collate, found.accelerated) == ("float32", plan, collate, False)


def test_on_one_gpu_in_bfloat16_they_are_packed_and_the_step_is_accelerated():
    for objective in (CrossEntropy(0.1), RDrop(0.1, 5.0), Distilled((model(dim=64),))):
        found = plan_for(CUDA, objective=objective, precision="bfloat16", batch_tokens=25_000)
        assert found.accelerated and found.grouping is plan_packed
        assert isinstance(found.collate, partial) and found.collate.func is pack
        assert found.collate.keywords == {"slots": 1792}  # about a sixteenth


@pytest.mark.parametrize("budget", [1000, 4096, 8192, 25_000, 25_344, 25_600, 100_000])
def test_a_full_batch_is_filled_up_by_next_to_nothing_and_every_batch_ends_with_a_tile(budget):
    slots = plan_for(CUDA, precision="bfloat16", batch_tokens=budget).collate.keywords["slots"]
    full = -(-budget // slots) * slots
    assert full - budget < max(128, 0.01 * budget) and slots % 128 == 0 and slots <= max(128, budget / 8)


@pytest.mark.parametrize("world", [2, 8, 64])
def test_a_share_of_a_batch_is_filled_up_by_as_little(world):
    cards = SingleProcess(torch.device("cuda"))
    cards.world = world
    found = plan_for(cards, precision="bfloat16", batch_tokens=25_000 * world)
    assert found.collate.keywords == plan_for(CUDA, precision="bfloat16", batch_tokens=25_000).collate.keywords


@pytest.mark.parametrize(("lacks", "says"), [("find_spec", "the accelerated step needs Triton"),
                                             ("gpu_multiplies_bfloat16", "this GPU has no bfloat16 matrix products")])  # fmt: skip
def test_what_the_accelerated_step_lacks_is_told(monkeypatch, lacks, says):
    monkeypatch.setattr(f"heed.runs.execution_plan.{lacks}", lambda *name: None)
    found = plan_for(CUDA, precision="bfloat16")
    assert not found.accelerated and found.grouping is plan
    (told,) = found.notes(CUDA.device)
    assert told.startswith(f"This run uses the standard training step, which is slower: {says}")
    assert plan_for(CUDA, precision="float32").notes(CUDA.device) == []


def test_long_texts_whose_attention_is_dropped_go_the_plain_way():
    drops = model(attention_dropout=0.1, max_length=300)
    assert plan_for(CUDA, drops, most=128, precision="bfloat16").accelerated
    found = plan_for(CUDA, drops, most=129, precision="bfloat16")
    assert not found.accelerated and "but some have 129" in found.notes(CUDA.device)[0]
    assert plan_for(CUDA, model(max_length=300), most=300, precision="bfloat16").accelerated


@pytest.mark.parametrize("settings", [{"precision": "tf32"}, {"compile": True}, {"packed": False}])
def test_settings_that_go_another_way(settings):
    found = plan_for(CUDA, **{"precision": "bfloat16", **settings})
    assert not found.accelerated and found.grouping is plan and found.collate is collate


def test_a_model_whose_heads_no_kernel_is_made_for_goes_the_plain_way():
    assert not plan_for(CUDA, model(heads=8), precision="bfloat16").accelerated  # heads of 4
    assert plan_for(CUDA, model(heads=8), precision="bfloat16", packed=True).grouping is plan_packed


def test_a_teacher_whose_heads_no_kernel_is_made_for_is_heard_the_plain_way():
    objective = Distilled((model(heads=8),))
    assert not plan_for(CUDA, objective=objective, precision="bfloat16").accelerated
    assert plan_for(CUDA, objective=objective, precision="bfloat16", packed=True).grouping is plan_packed


def test_no_text_may_be_longer_than_a_teacher_has_places_for():
    for settings in ({}, {"packed": True}):
        assert plan_for(objective=Distilled((model(max_length=12),)), **settings).longest == 12
        assert plan_for(objective=Distilled((model(max_length=99),)), **settings).longest == 20


def test_weights_in_parts_go_the_plain_way():
    parts = Sharded.__new__(Sharded)
    parts.device = torch.device("cuda")
    assert not plan_for(parts, precision="bfloat16").accelerated


def test_end_to_end_can_be_asked_for_anywhere():
    found = plan_for(packed=True)
    assert found.grouping is plan_packed and not found.accelerated and found.precision == "float32"


def test_what_cannot_go_end_to_end_says_so():
    for objective, why in (
        (dataclasses.replace(LABEL_LOSS, inputs=2), "texts of several inputs (both orders, or choices)"),
        (dataclasses.replace(LABEL_LOSS, lm_weight=0.5), "texts with task.lm_weight"),
    ):
        with pytest.raises(ValueError) as error:
            plan_for(objective=objective, task=CLASSIFICATION, packed=True)
        assert (
            str(error.value) == f"training.packed is true, but {why} do not support packed training: remove the setting"
        )
    found = plan_for(CUDA, objective=LABEL_LOSS, task=CLASSIFICATION, precision="bfloat16")
    assert found.grouping is plan and found.collate == CollateTexts()


def test_texts_to_classify_can_be_packed_and_then_a_gpu_has_the_accelerated_step_or_captures_the_passes():
    objective = PackedTextLoss(LabelLoss(0.1), Classifier.combine)
    sizes = {"dim": 32, "heads": 2, "hidden": 32, "layers": 1, "max_length": 20}
    bert, decoder = Bert(BertConfig(vocab_size=20, labels=2, **sizes)), GPT2(GPT2Config(vocab_size=20, **sizes))
    bigbird = BigBird(BigBirdConfig(vocab_size=20, labels=2, **sizes))
    for workers, encoder in itertools.product((CPU, CUDA), (bert, bigbird)):
        found = plan_for(workers, encoder, objective, CLASSIFICATION, precision="bfloat16", packed=True)
        assert found.grouping is plan_packed and found.collate.func == PackTexts(CollateTexts())
        assert found.accelerated is (workers is CUDA and encoder is bert)
        assert found.captured is (workers is CUDA and encoder is bigbird)
        found = plan_for(workers, encoder, objective, CLASSIFICATION, precision="bfloat16")
        assert found.grouping is plan and not found.captured and not found.accelerated
    refused = "training.packed is true, but this GPT2 does not support packed training with texts of 7 tokens: "
    with pytest.raises(ValueError, match=refused):  # it reads the last token of each row
        plan_for(CPU, decoder, objective, CLASSIFICATION, packed=True, most=7)


def test_packed_texts_may_fill_all_positions_of_a_model_and_all_of_its_full_attention():
    """The bound of the lengths in a batch is rounded up for kernels, but not above what the model reads."""
    special = (SpecialTokens(0, 1, 2, 3, before=(2,)), SpecialTokens(0, 1, 2, 3))
    sizes = {"vocab_size": 20, "dim": 32, "heads": 2, "hidden": 32, "layers": 1}
    bert = Bert(BertConfig(labels=2, max_length=20, **sizes))
    bigbird = BigBird(BigBirdConfig(labels=2, max_length=400, block=4, random_blocks=1, **sizes))
    objective = PackedTextLoss(LabelLoss(0.1), Classifier.combine)
    for encoder, most in ((bert, 20), (bigbird, 28)):  # 32 for kernels
        found = plan_for(CUDA, encoder, objective, CLASSIFICATION, packed=True, most=most)
        batch = found.collate([[5] * (most - 2), [6]], [[0], [1]], special)
        assert found.collate.keywords["slots"] > 1 and batch.valid.longest == most
        encoder.eval()
        with torch.inference_mode():
            assert torch.isfinite(objective(encoder, batch).total)
    nothing = plan_for(CUDA, bert, objective, CLASSIFICATION, packed=True, most=20).collate([], [], special)
    assert nothing.valid.longest == 16 and nothing.count == 0


def joint_electra(**shape):
    return Electra(ElectraConfig(**{**ROWS, "dim": 64, "head": "joint", **shape}))


@pytest.mark.parametrize(
    ("encoder", "task", "objective"),
    [
        (Bert(BertConfig(**ROWS)), MaskedLanguage, MaskedLoss()),
        (joint_electra(), ReplacedTokens, ReplacedTokensLoss(50.0, 0)),
    ],
    ids=["masked", "replaced-tokens"],
)
def test_rows_of_pretraining_have_the_accelerated_step_on_a_gpu(encoder, task, objective):
    task = task(task.Settings())
    for settings in ({}, {"packed": True}):
        found = plan_for(CUDA, encoder, objective, task, precision="bfloat16", **settings)
        assert found.accelerated and not found.captured and found.grouping is plan
    for settings in ({"packed": False}, {"precision": "float32"}):
        found = plan_for(CUDA, encoder, objective, task, **{"precision": "bfloat16", **settings})
        assert found.captured and not found.accelerated


def test_where_the_heads_of_a_generator_have_no_kernel_the_plain_passes_are_captured():
    task, objective = ReplacedTokens(ReplacedTokens.Settings()), ReplacedTokensLoss(50.0, 0)
    narrow = joint_electra(dim=32)  # two heads of 16, and one of 8 in the generator
    found = plan_for(CUDA, narrow, objective, task, precision="bfloat16")
    assert found.captured and not found.accelerated


def test_rows_of_masked_words_lose_their_padding_where_the_model_has_no_fused_layers_if_that_is_asked_for():
    bert, bigbird = Bert(BertConfig(**ROWS)), BigBird(BigBirdConfig(**ROWS))
    task, objective = MaskedLanguage(MaskedLanguage.Settings()), MaskedLoss()
    found = plan_for(CUDA, bigbird, objective, task, precision="bfloat16")
    assert found.captured and not found.accelerated
    for workers, encoder in ((CPU, bert), (CUDA, bigbird)):
        found = plan_for(workers, encoder, objective, task, packed=True)
        assert found.grouping is plan_packed and not found.captured and not found.accelerated
        assert plan_for(workers, encoder, objective, task).grouping is plan
    sparse = BigBird(BigBirdConfig(**ROWS | {"max_length": 400}, block=4, random_blocks=1))
    assert plan_for(CPU, sparse, dataclasses.replace(objective, length=28), task, packed=True).grouping is plan_packed
    with pytest.raises(ValueError, match="this BigBird does not support packed training with texts of 29 tokens"):
        plan_for(CPU, sparse, dataclasses.replace(objective, length=29), task, packed=True)


def test_tokens_and_pairs_are_packed_if_asked_for():
    sizes = {"vocab_size": 20, "dim": 32, "heads": 2, "hidden": 32, "layers": 1, "max_length": 20}
    cases = [
        (Tagging(Tagging.Settings()), TagLoss(), {"head": "tokens", "labels": 2}, True),
        (QuestionAnswering(QuestionAnswering.Settings()), AnswerLoss(), {"head": "answer"}, True),
        (Embedding(EmbeddingSettings()), ContrastiveLoss("mean", 20.0), {"head": "none"}, False),  # of many shapes
    ]
    for task, objective, head, few in cases:
        bert, bigbird = Bert(BertConfig(**sizes, **head)), BigBird(BigBirdConfig(**sizes, **head))
        for workers, encoder in itertools.product((CPU, CUDA), (bert, bigbird)):
            found = plan_for(workers, encoder, objective, task, precision="bfloat16", packed=True)
            assert found.grouping is plan_packed
            assert found.accelerated is (few and workers is CUDA and encoder is bert)
            assert found.captured is (few and workers is CUDA and encoder is bigbird)
            assert (found.collate.keywords["slots"] > 1) is (found.accelerated or found.captured)
            found = plan_for(workers, encoder, objective, task, precision="bfloat16")
            assert found.grouping is plan and not found.captured and not found.accelerated


@pytest.mark.parametrize("able", [False, True])
def test_what_a_cpu_cannot_multiply_is_told(monkeypatch, able):
    monkeypatch.setattr("heed.runs.execution_plan._cpu_multiplies_bfloat16", lambda: able)
    (told,) = plan_for(precision="bfloat16").notes(CPU.device) or [""]
    assert ("this CPU does not support" in told) is not able
    assert plan_for(precision="auto").notes(CPU.device) == []
    assert plan_for(precision="bfloat16").notes(torch.device("cuda")) == []


def test_models_that_drop_whole_words_go_the_plain_way():
    drops = model(max_length=300)
    drops.word_dropout = 0.1
    found = plan_for(CUDA, drops, most=128, precision="bfloat16")
    assert not found.accelerated and "does not drop whole words" in found.notes(CUDA.device)[0]


@pytest.mark.parametrize("rate", ["input_dropout", "output_dropout"])
def test_a_language_model_that_drops_units_at_all_positions_is_captured(rate):
    sizes = {"vocab_size": 20, "dim": 32, "heads": 1, "hidden": 32, "layers": 1, "attention_dropout": 0.0}
    task = LanguageModelling(LanguageSettings(reading="random"))
    plain, drops = (GPT2(GPT2Config(**sizes, **own)) for own in ({}, {rate: 0.5}))
    ways = [plan_for(CUDA, own, task.objective(None, []), task, precision="bfloat16") for own in (plain, drops)]
    assert [(way.accelerated, way.captured) for way in ways] == [(True, False), (False, True)]
    assert supports_packing(plain) and not supports_packing(drops)


def xl(**shape):
    sizes = {"dim": 16, "heads": 2, "hidden": 16, "layers": 1, "memory": 4}
    return TransformerXL(TransformerXLConfig(vocab_size=20, **{**sizes, **shape}))


@pytest.mark.parametrize(
    ("made", "reading", "workers", "captured"),
    [
        (xl(), "stream", CUDA, True),
        (xl(), "random", CUDA, True),
        (xl(), "documents", CUDA, False),  # of many shapes
        (xl(), "stream", CPU, False),
        (xl(cutoffs=[10]), "stream", CUDA, False),  # how many tokens are rare is known on the GPU alone
        (
            RNNLanguageModel(RNNLanguageModelConfig(vocab_size=20, dim=8, hidden=8)),
            "stream",
            CUDA,
            False,
        ),  # few kernels
    ],
)
def test_a_transformer_without_fused_kernels_is_captured_where_all_windows_are_equal(made, reading, workers, captured):
    task = LanguageModelling(LanguageSettings(reading=reading))
    found = plan_for(workers, made, task.objective(None, []), task)
    assert (found.accelerated, found.captured, found.notes(workers.device)) == (False, captured, [])
    assert not plan_for(workers, made, task.objective(None, []), task, compile=True).captured


@pytest.mark.parametrize(
    ("changes", "settings", "way"),
    [
        ({}, {}, (True, False)),
        ({"path_dropout": 0.1}, {}, (True, False)),
        ({"layer_scale": 0.1}, {}, (False, True)),
        ({}, {"precision": "float32"}, (False, True)),
        ({"attention_dropout": 0.1}, {}, (True, False)),
        ({}, {"compile": True}, (False, False)),
    ],
)
def test_a_vit_has_fused_kernels_or_is_captured(changes, settings, way):
    sizes = {"labels": 3, "size": 48, "patch": 4, "dim": 32, "heads": 2, "hidden": 32, "layers": 1}
    made, task = ViT(ViTConfig(**sizes, **changes)), ImageClassification(ImageClassificationSettings())
    augment, mixing = task.settings.augmentation(), task.settings.mixing()
    objective = ImageLoss(augment, mixing, Normalize([0.5] * 3, [0.5] * 3), 0.1)
    found = plan_for(CUDA, made, objective, task, **settings)
    assert (found.accelerated, found.captured, found.notes(CUDA.device)) == (*way, [])
    assert not plan_for(CPU, made, objective, task).accelerated
