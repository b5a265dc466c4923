"""Shared by the encoders of transformers: class names by head, settings and weights."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from heed.convert import labels
from heed.convert.architecture import Architecture
from heed.convert.config_table import ConfigTable, Rule
from heed.convert.weight_table import WeightTable
from heed.models.encoder import Encoder
from heed.models.encoder_heads import HEADS, LABELLED


class Use(NamedTuple):
    """What a model with a head is for: the class that opens it, Heed's task, the pipeline, and a line that runs it."""

    auto_class: str
    task: str
    pipeline_tag: str | None
    example: str | None


WORDS = "print(tokenizer.batch_decode(model(**texts).logits.argmax(dim=2)))"
USES = {
    "none": Use("AutoModel", "embedding", "feature-extraction", "print(model(**texts).last_hidden_state)"),
    "masked": Use("AutoModelForMaskedLM", "masked", "fill-mask", WORDS),
    "causal": Use("AutoModelForCausalLM", "causal-encoder", None, WORDS),
    "pretraining": Use(
        "AutoModelForPreTraining", "masked", None, "print(model(**texts).prediction_logits.argmax(dim=2))"
    ),
    "pair": Use("AutoModelForNextSentencePrediction", "sentence-pairs", None, "print(model(**texts).logits)"),
    "classification": Use("AutoModelForSequenceClassification", "classification", "text-classification", None),
    "tokens": Use(
        "AutoModelForTokenClassification", "tagging", "token-classification",
        "print([model.config.id2label[i] for i in model(**texts).logits[0].argmax(dim=1).tolist()])",
    ),
    "choice": Use(
        "AutoModelForMultipleChoice", "multiple-choice", "multiple-choice",
        "print(model(**{name: part[None] for name, part in texts.items()}).logits)",
    ),
    "answer": Use(
        "AutoModelForQuestionAnswering", "question-answering", "question-answering",
        "print(model(**texts).start_logits.argmax(), model(**texts).end_logits.argmax())",
    ),
    "replaced": Use("AutoModelForPreTraining", "replaced-tokens", None, "print(model(**texts).logits > 0)"),
}  # fmt: skip
WRITTEN_AS = {"joint": "replaced"}  # a discriminator with its generator, as the discriminator

# fmt: off
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}
SHARED = (
    ("segments",          "type_vocab_size",               2),
    ("attention_dropout", "attention_probs_dropout_prob",  0.1),
    ("init_std",          "initializer_range",             0.02),
    ("norm_eps",          "layer_norm_eps",                1e-12),
)
SIZES = (
    ("dim",               "hidden_size",                   768),
    ("heads",             "num_attention_heads",           12),
    ("hidden",            "intermediate_size",             3072),
    ("layers",            "num_hidden_layers",             12),
    ("dropout",           "hidden_dropout_prob",           0.1),
)
POSITIONS = ("max_length", "max_position_embeddings", 512)
LAYER = (
    *((f"attention.body.{ours}", f"attention.self.{theirs}") for ours, theirs in zip("qkv", ("query", "key", "value"), strict=True)),
    ("attention.body.out", "attention.output.dense"),
    ("attention.norm",     "attention.output.LayerNorm"),
    ("mlp.body.up",        "intermediate.dense"),
    ("mlp.body.down",      "output.dense"),
    ("mlp.norm",           "output.LayerNorm"),
)
# fmt: on
LEGACY = {"position_embedding_type": "absolute"}
OLD_ENDINGS = {".gamma": ".weight", ".beta": ".bias"}  # those of BERT's first code, which published weights still have
IGNORED = ("*.position_ids", "*.token_type_ids")  # numbers that older versions saved
CLASSIFIER = (
    ("head.text.dense", "classifier.dense"),
    ("head.text.out", "classifier.out_proj"),
)  # of its own, in place of a pooler
USUAL = {  # the weights of heads, as BERT names them
    "pair": (("head.pair.out", "cls.seq_relationship"),),
    "text": (("head.text.out", "classifier"),),
    "tokens": (("head.tokens.out", "classifier"),),
    "choice": (("head.choice.out", "classifier"),),
    "answer": (("head.answer.out", "qa_outputs"),),
}
Rows = Mapping[str, tuple[tuple, ...]]


def _classifier_dropout(settings: Any) -> dict[str, Any]:
    rate = settings.get("classifier_dropout")
    if rate is not None and not isinstance(rate, int | float):
        raise ValueError(
            f"classifier_dropout is {rate!r}; it must be a number, or null to use the dropout of the layers"
        )
    return {"classifier_dropout": rate if rate is None else float(rate)}


CLASSIFIER_DROPOUT = Rule(_classifier_dropout, lambda config: {"classifier_dropout": config.classifier_dropout})


def words(prefix: str, dense: str, norm: str) -> tuple[tuple, ...]:
    """The weights of the language-modelling head; its output matrix is the token embedding."""
    names = (f"{prefix}.bias", f"{prefix}.decoder.bias")
    return (
        ("head.words.dense", f"{prefix}.{dense}"),
        ("head.words.norm", f"{prefix}.{norm}"),
        ("head.words.bias", names),
    )


class Family(NamedTuple):
    """An encoder of transformers: its names, the settings and weights of its body, and the weights of its heads.
    `names` are its classes by head. `output` is their name for the output matrix, unless it is omitted.
    """

    model: type[Encoder]
    config: type
    model_type: str
    names: Mapping[str, str]
    rows: tuple[tuple, ...]
    body: tuple[tuple, ...]
    heads: Rows
    output: str
    vocabulary: str
    prefix: str
    rules: tuple[Rule, ...] = (CLASSIFIER_DROPOUT,)
    constants: Mapping[str, Any] = {}
    pooler: str = "pooler.dense"
    decodes: bool = True  # whether config.json says that it is no decoder

    def config_table(self, head: str) -> ConfigTable:
        constants = {"model_type": self.model_type, "tie_word_embeddings": True, **self.constants}
        if self.decodes:
            constants |= {"is_decoder": head == "causal", "add_cross_attention": False}
        declared = Rule(lambda settings: {"head": head}, lambda config: {})
        rules = (
            *self.rules,
            declared,
            *((labels.rule(2, numbers=head == "classification"),) if head in LABELLED else ()),
        )
        return ConfigTable(self.config, *self.rows, constants=constants, legacy=LEGACY, rules=rules)

    def weight_table(self, config: Any) -> WeightTable:
        parts = HEADS[config.head]
        tokens = (f"{self.prefix}embeddings.word_embeddings.weight", self.output)
        rest = ("*seq_relationship.*", "sop_classifier.*") if config.head == "masked" else ()  # published with it
        pooled = config.head in self.model.POOLED
        return WeightTable(
            ("tokens.weight", tokens if "words" in parts else tokens[0]),
            *((ours, self.prefix + theirs) for ours, theirs in self.body),
            *([("pooler.dense", self.prefix + self.pooler)] if pooled else []),
            *(row for part in parts for row in self.heads[part]),
            prefix=self.prefix,
            ignore=(*IGNORED, *rest, *(() if pooled else (f"{self.prefix}pooler.*",))),
            endings=OLD_ENDINGS,
        )

    def architectures(self, **options: Any) -> tuple[Architecture, ...]:
        return tuple(self._architecture(head, name, **options) for head, name in self.names.items())

    def _architecture(self, head: str, name: str, **options: Any) -> Architecture:
        use, labelled = USES[head], head in LABELLED
        return Architecture(
            name,
            self.model,
            self.config_table(head),
            self.weight_table,
            vocabulary=self.vocabulary,
            task="language" if head == "causal" and hasattr(self.model, "hidden_states") else use.task,
            aliases=(self.model_type,) if head == "none" else (),
            auto_class=use.auto_class,
            pipeline_tag=use.pipeline_tag,
            generates=False,
            token_ids=("pad_token_id",),
            example=use.example,
            fits=lambda config: WRITTEN_AS.get(config.head, config.head) == head,
            processors=partial(labels.text_and_labels, default=2)
            if labelled
            else lambda vocabularies, settings: {"text": vocabularies[0]},
            task_of=partial(labels.task, default=2) if use.task == "classification" else None,
            **({"settings": labels.settings_of} if labelled else {}),
            **options,
        )


def body(layers: tuple[tuple[str, str], ...], *rows: tuple) -> tuple[tuple, ...]:
    """Embeddings, layers and further rows, without the model prefix."""
    return (
        ("positions.places", "embeddings.position_embeddings"),
        ("segments", "embeddings.token_type_embeddings"),
        ("norm", "embeddings.LayerNorm"),
        *((f"stack.layers.{{}}.{ours}", f"encoder.layer.{{}}.{theirs}") for ours, theirs in layers),
        *rows,
    )


def class_names(name: str, causal: str | None = None, **others: str) -> dict[str, str]:
    """The classes by head: those that every encoder has, and others."""
    usual = {
        "masked": "ForMaskedLM", "classification": "ForSequenceClassification", "tokens": "ForTokenClassification",
        "choice": "ForMultipleChoice", "answer": "ForQuestionAnswering", "none": "Model",
    }  # fmt: skip
    found = {**usual, **others, **({"causal": causal} if causal else {})}
    return {head: name + ending for head, ending in found.items()}
