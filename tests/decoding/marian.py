"""A small Marian of the transformers library with random weights, as a model that Heed can search with."""

import torch
from torch import nn
from transformers import MarianConfig, MarianMTModel

LAST, UNKNOWN, PAD, VOCAB = 0, 1, 49, 50
LONGEST = 12


def marian(ending):
    """A float64 model of 50 tokens; the higher `ending`, the sooner it ends. Its output depends on the source."""
    torch.manual_seed(2)
    config = MarianConfig(
        vocab_size=VOCAB, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64, scale_embedding=False,
        tie_word_embeddings=False, pad_token_id=PAD, eos_token_id=LAST, decoder_start_token_id=PAD, forced_eos_token_id=None,
    )  # fmt: skip
    model = MarianMTModel(config).double().eval().requires_grad_(False)
    for name, weight in model.named_parameters():
        if "embed_positions" not in name:
            nn.init.normal_(weight, mean=float("norm.weight" in name), std=0.3)
    nn.init.normal_(model.lm_head.weight, std=0.5)
    nn.init.normal_(model.final_logits_bias, std=0.3)
    for part in (model.model.encoder, model.model.decoder):
        part.embed_tokens.weight[PAD] = 0.0  # as in models that Marian has trained: they begin with nothing
    decoder, cross = model.model.decoder, model.model.decoder.layers[0].encoder_attn
    for part in (decoder.embed_positions, cross.v_proj, cross.out_proj, model.model.encoder.embed_tokens):
        part.weight *= 2
    model.final_logits_bias[0, [LAST, PAD]] = torch.tensor([ending, 0.0], dtype=torch.double)
    return model


def sources(number):
    """Random texts of 1 to 9 tokens and an end, as they are and padded."""
    chance = torch.Generator().manual_seed(1)
    sizes = torch.randint(1, 10, (number,), generator=chance).tolist()
    texts = [[*torch.randint(1, PAD, (size,), generator=chance).tolist(), LAST] for size in sizes]
    padded = nn.utils.rnn.pad_sequence([torch.tensor(text) for text in texts], batch_first=True, padding_value=PAD)
    return texts, padded


class Past:
    """The encoder output and all tokens so far."""

    def __init__(self, memory, valid):
        self.parts = [memory, valid, torch.zeros(len(valid), 0, dtype=torch.long)]

    def reorder(self, rows):
        self.parts = [part[rows] for part in self.parts]


class Uncached:
    """The model without a cache: each step reads all tokens again."""

    def __init__(self, model):
        self.model = model

    def start(self, source, valid):
        return Past(self.model.get_encoder()(source, attention_mask=valid.long()).last_hidden_state, valid)

    def step(self, tokens, state):
        memory, valid, said = state.parts
        state.parts[2] = said = torch.cat([said, tokens[:, None]], dim=1)
        options = {"attention_mask": valid.long(), "decoder_input_ids": said, "use_cache": False}
        return self.model(encoder_outputs=(memory,), **options).logits[:, -1]


def searched(search, model, source, **options):
    """What a search finds for each source, as (tokens, score), the best first; padding is banned."""
    asked, longest = Uncached(model), torch.full((len(source),), LONGEST)
    found = search(asked, asked.start(source, source != PAD), longest, first=PAD, last=LAST, **options)
    return [[(h.tokens, h.score) for h in hypotheses] for hypotheses in found]
