"""Sizes by name: those of papers are the papers', and the others have their proportions."""

import pytest

from heed.models import MODELS

PUBLISHED = {  # width, heads, feed-forward width, layers: as the papers and the published folders have them
    ("transformer", "base"): (512, 8, 2048, 6),
    ("transformer", "big"): (1024, 16, 4096, 6),
    ("bert", "base"): (768, 12, 3072, 12),
    ("bert", "large"): (1024, 16, 4096, 24),
    ("bigbird", "base"): (768, 12, 3072, 12),
    ("bigbird", "large"): (1024, 16, 4096, 24),
    ("albert", "base"): (768, 12, 3072, 12),
    ("albert", "large"): (1024, 16, 4096, 24),
    ("albert", "xlarge"): (2048, 16, 8192, 24),
    ("albert", "xxlarge"): (4096, 64, 16384, 12),
    ("electra", "small"): (256, 4, 1024, 12),
    ("electra", "base"): (768, 12, 3072, 12),
    ("electra", "large"): (1024, 16, 4096, 24),
    ("electra", "small-generator"): (64, 1, 256, 12),
    ("electra", "base-generator"): (256, 4, 1024, 12),
    ("electra", "large-generator"): (256, 4, 1024, 24),
    ("gpt", "base"): (768, 12, 3072, 12),
    ("gpt2", "base"): (768, 12, 3072, 12),
    ("gpt2", "medium"): (1024, 16, 4096, 24),
    ("gpt2", "large"): (1280, 20, 5120, 36),
    ("gpt2", "xl"): (1600, 25, 6400, 48),
    ("ctrl", "large"): (1280, 16, 8192, 48),
    ("transformer-xl", "base"): (410, 10, 2100, 16),
    ("transformer-xl", "large"): (1024, 16, 4096, 18),
    ("sasrec", "paper"): (50, 1, 50, 2),
}
EVERY = [(model, name) for model, system in MODELS.items() for name in system.presets]


@pytest.mark.parametrize(("model", "name"), EVERY)
def test_a_preset_has_the_published_size_or_the_usual_proportions(model, name):
    own = MODELS[model].presets[name]
    if (model, name) in PUBLISHED:
        layers = own.get("layers", own.get("encoder_layers"))
        assert (own["dim"], own["heads"], own["hidden"], layers) == PUBLISHED[model, name]
    elif model == "sasrec":  # as the paper has it: the feed-forward network is as wide as the rest
        assert own["hidden"] in [n * own["dim"] for n in (1, 2, 4)] and own["dim"] // own["heads"] in (32, 64)
    elif "heads" in own:
        assert own["hidden"] == 4 * own["dim"] and own["dim"] // own["heads"] in (32, 64)


def test_all_published_sizes_are_there():
    assert set(PUBLISHED) <= set(EVERY)
