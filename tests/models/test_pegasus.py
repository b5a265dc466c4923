"""What Pegasus alone has. That it computes what Hugging Face's does is in tests/convert."""

import torch

from heed.models.pegasus import Pegasus, PegasusConfig

CONFIG = PegasusConfig(vocab_size=31, dim=16, heads=2, hidden=24, encoder_layers=2, decoder_layers=1, max_length=12)


@torch.no_grad()
def test_encoder_and_decoder_end_with_a_norm():
    model = Pegasus(CONFIG).eval()
    for side in (model.encoder, model.decoder):
        side.norm.weight.zero_()
        side.norm.bias.copy_(torch.arange(16.0))
    source, target = torch.tensor([[4, 5, 6]]), torch.tensor([[7, 8]])
    memory = model.encode(source)
    torch.testing.assert_close(memory, torch.arange(16.0).expand(1, 3, 16))
    torch.testing.assert_close(model.decode(target, memory), torch.arange(16.0).expand(1, 2, 16))


@torch.no_grad()
def test_what_enters_a_layer_is_added_to_what_leaves_it():
    """With the norms before the sublayers, sublayers that say nothing change nothing."""
    model = Pegasus(CONFIG).eval()
    for name, weight in model.encoder.layers.named_parameters():
        if ".out." in name or ".down." in name:
            weight.zero_()
    tokens = torch.tensor([[4, 5, 6]])
    expected = model.encoder.norm(model._embed(model.tokens, tokens, model.positions(0, tokens.shape[1]), None))
    torch.testing.assert_close(model.encode(tokens), expected)


def test_neither_sinusoids_nor_the_bias_are_learned():
    names = dict(Pegasus(CONFIG).named_parameters())
    assert not any("positions" in name for name in names)
    assert "bias" not in names
    assert "bias" in Pegasus(CONFIG).state_dict()
