"""Speech2TextForConditionalGeneration of Hugging Face's transformers: a Speech-Transformer with gated convolutions, without CTC."""

from collections.abc import Mapping
from typing import Any

from heed.convert.architecture import Architecture
from heed.convert.bart import LAYERS
from heed.convert.config_table import ConfigTable, Rule
from heed.convert.pegasus import NORMS
from heed.convert.weight_table import WeightTable
from heed.models.speech_transformer import SpeechTransformer, SpeechTransformerConfig
from heed.vocabularies.sound import FeatureSettings, SoundFeatures

PREPROCESSOR = "preprocessor_config.json"
NORMALIZED = {
    "do_ceptral_normalize": True, "normalize_means": True, "normalize_vars": True, "dither": 0.0, "padding_value": 0.0,
}  # fmt: skip
OWN = {"front": "conv1d-glu", "positions": "fairseq", "ctc": False, "norm": "pre"}
# fmt: off
ROWS = (
    ("vocab_size",        "vocab_size",               10000),
    ("inputs",            "input_feat_per_channel",   80),
    ("dim",               ("d_model", "hidden_size"), 256),
    ("heads",             ("encoder_attention_heads", "num_attention_heads"), 4),
    ("heads",             "decoder_attention_heads",  4),
    ("hidden",            "encoder_ffn_dim",          2048),
    ("hidden",            "decoder_ffn_dim",          2048),
    ("encoder_layers",    ("encoder_layers", "num_hidden_layers"), 12),
    ("decoder_layers",    "decoder_layers",           6),
    ("channels",          "conv_channels",            1024),
    ("max_length",        "max_source_positions",     6000),
    ("dropout",           "dropout",                  0.1),
    ("attention_dropout", "attention_dropout",        0.0),
    ("hidden_dropout",    "activation_dropout",       0.0),
)
# fmt: on
CONSTANTS = {
    "model_type": "speech_to_text",
    "tie_word_embeddings": True,
    "is_encoder_decoder": True,
    "activation_function": "relu",
    "scale_embedding": True,
    "num_conv_layers": 2,
    "conv_kernel_sizes": [5, 5],
    "input_channels": 1,
    "pad_token_id": 1,
}  # fmt: skip
CONFIG_TABLE = ConfigTable(
    SpeechTransformerConfig, *ROWS, constants=CONSTANTS, rules=(Rule(lambda settings: OWN, lambda config: {}),)
)
WEIGHTS = WeightTable(
    ("tokens", ("model.decoder.embed_tokens", "lm_head")),
    ("front.convolutions.{}", "model.encoder.conv.conv_layers.{}"),
    *NORMS,
    *LAYERS,
    prefix="model.",
    ignore=("*.embed_positions.weights", "*.embed_positions._float_tensor"),
)


def features(settings: Mapping[str, Any], config: SpeechTransformerConfig) -> SoundFeatures:
    """The settings of the feature extractor: Kaldi's log-mel energies, normalized per utterance."""
    for name, value in NORMALIZED.items():
        if settings.get(name, value) != value:
            raise ValueError(f"{name} is {settings[name]!r}; heed supports only {value!r}")
    rate, mels = settings.get("sampling_rate", 16_000), settings.get("num_mel_bins", 80)
    if type(rate) is not int or type(mels) is not int:
        raise ValueError(f"sampling_rate is {rate!r} and num_mel_bins {mels!r}; they must be integers")
    if mels != config.inputs:
        raise ValueError(f"num_mel_bins is {mels}, but the model reads {config.inputs} numbers a frame")
    return SoundFeatures(FeatureSettings("fbank", rate=rate, mels=mels))


def decoding(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The search settings of a folder, by attention only."""
    if settings.get("forced_bos_token_id") is not None:
        raise ValueError("forced_bos_token_id is set; heed reads Speech2Text models of one language")
    beam = settings.get("num_beams", 1)
    if type(beam) is not int:
        raise ValueError(f"num_beams is {beam!r}; it must be an integer")
    return {"beam": beam, "ctc_weight": 0.0}


ARCHITECTURES = (
    Architecture(
        "Speech2TextForConditionalGeneration", SpeechTransformer, CONFIG_TABLE, lambda config: WEIGHTS,
        vocabulary="speech2text", task="speech-recognition", aliases=("speech_to_text",), auto_class="AutoModelForSpeechSeq2Seq",
        pipeline_tag="automatic-speech-recognition", fits=lambda config: False,
    ),
)  # fmt: skip
