"""Every system of heed, by the name that config files call it."""

from heed.models.transformer import Transformer, TransformerConfig

MODELS = {"transformer": (Transformer, TransformerConfig)}
