"""Model folders: who may read them."""

import torch

from heed.files import write_text
from heed.models.folder import read_weights, write_weights


def test_weights_may_be_read_by_whom_the_other_files_may_be(tmp_path):
    for _ in range(2):  # anew, and written over
        write_weights(tmp_path / "model.safetensors", {"a": torch.arange(3.0)})
    write_text(tmp_path / "README.md", "plain")
    assert (tmp_path / "model.safetensors").stat().st_mode == (tmp_path / "README.md").stat().st_mode
    assert read_weights(tmp_path / "model.safetensors")["a"].tolist() == [0, 1, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "model.safetensors"]
