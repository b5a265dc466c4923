"""Speech2Text folders of transformers: the same numbers and the same texts, and what is refused."""

import json
import shutil

import numpy as np
import pytest
import sentencepiece
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    Speech2TextConfig,
    Speech2TextFeatureExtractor,
    Speech2TextForConditionalGeneration,
    Speech2TextTokenizer,
)

from heed.audio.files import Sound, wav_bytes
from heed.cli.main import main
from heed.convert import huggingface
from heed.decoding.speech import search_speech
from heed.loading import load, write_package
from heed.nn import masks
from heed.vocabularies.files import all_pieces
from heed.vocabularies.sentencepiece import train
from tests.convert.small import pairs

SIZES = {
    "d_model": 8, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 12, "decoder_ffn_dim": 12, "conv_channels": 10, "input_feat_per_channel": 20,
    "max_source_positions": 300, "max_target_positions": 100,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("speech2text")
    model = train([pair[1].lower() for pair in pairs()], {"model_type": "bpe", "vocab_size": 80}, "it")
    (path / "sentencepiece.bpe.model").write_bytes(model)
    every = all_pieces(sentencepiece.SentencePieceProcessor(model_proto=model), "it")
    pieces = list(dict.fromkeys(["<s>", "<pad>", "</s>", "<unk>", *every]))
    table = {piece: i for i, piece in enumerate(pieces)}
    (path / "vocab.json").write_text(json.dumps(table), encoding="utf-8", newline="\n")
    Speech2TextTokenizer(path / "vocab.json", path / "sentencepiece.bpe.model").save_pretrained(path)
    Speech2TextFeatureExtractor(20, num_mel_bins=20).save_pretrained(path)
    torch.manual_seed(0)
    model = Speech2TextForConditionalGeneration(Speech2TextConfig(vocab_size=len(pieces), **SIZES))
    for weight in model.parameters():
        weight.data.normal_(0, 0.2)
    model.tie_weights()
    model.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def both(folder):
    theirs = Speech2TextForConditionalGeneration.from_pretrained(folder).double().eval()
    return huggingface.read(folder).model.double(), theirs


def test_logits_are_those_of_transformers(both):
    ours, theirs = both
    torch.manual_seed(1)
    lengths, tokens = torch.tensor([41, 30, 7, 1]), torch.randint(3, 20, (4, 5))
    features = torch.randn(4, 41, 20).double()
    memory, counts = ours.encode_speech(features, lengths)
    found = ours.project(ours.decode(tokens, memory, masks.from_lengths(counts, memory.shape[1])))
    for row, length in enumerate(lengths.tolist()):  # alone: in their batches padding changes the last states
        own = {"input_features": features[row : row + 1, :length], "decoder_input_ids": tokens[row : row + 1]}
        given = theirs(**own, attention_mask=torch.ones(1, length, dtype=torch.long))
        assert given.encoder_last_hidden_state.shape[1] == counts[row] == ours.state_count(length)
        torch.testing.assert_close(memory[row, : counts[row]], given.encoder_last_hidden_state[0], rtol=0, atol=1e-10)
        torch.testing.assert_close(found[row], given.logits[0], rtol=0, atol=1e-10)


def test_greedy_texts_are_those_of_generate(both, folder):
    ours, theirs = both
    recognizer, torch_seed = load(folder, "cpu"), torch.manual_seed(2)
    special, config = recognizer.vocabulary.special, recognizer.search(beam=1)
    for length in (60, 37, 16):
        features = torch.randn(1, length, 20, generator=torch_seed).double()
        memory, counts = ours.encode_speech(features, torch.tensor([length]))
        ((found,),) = search_speech(ours, memory, counts, special, config)
        mask, most = torch.ones(1, length, dtype=torch.long), int(counts) + 1
        given = theirs.generate(features, attention_mask=mask, num_beams=1, do_sample=False, max_new_tokens=most)
        expected = given[0, 1:].tolist()
        assert list(found.tokens)[: most - 1] == expected[: most - 1] and len(found.tokens) == len(expected)


def test_a_recording_is_read_as_transformers_reads_it(folder, tmp_path, capsys):
    samples = np.random.default_rng(0).normal(0, 0.1, 12_000).astype(np.float32)
    recognizer = load(folder, "cpu")
    extractor, tokenizer = (one.from_pretrained(folder) for one in (Speech2TextFeatureExtractor, Speech2TextTokenizer))
    theirs = extractor(samples, sampling_rate=16_000, return_tensors="np")["input_features"][0]
    np.testing.assert_allclose(recognizer.sound(Sound(samples, 16_000)), theirs, atol=1e-3)
    (tmp_path / "a.wav").write_bytes(wav_bytes(samples, 16_000))
    assert main(["transcribe", str(folder), str(tmp_path / "a.wav"), "--device", "cpu"]) == 0
    said, ((own,),) = capsys.readouterr().out, (recognizer.transcribe([Sound(samples, 16_000)]),)
    assert own.words == [] and said.split() == own.text.split()
    ids = list(range(4, 20))
    assert recognizer.vocabulary.decode(ids) == tokenizer.decode(ids).strip()
    text = "a man is sleeping"
    assert recognizer.vocabulary.encode([text])[0] == tokenizer(text).input_ids[:-1]
    write_package(huggingface.read(folder), tmp_path / "heed")
    again = load(tmp_path / "heed", "cpu")
    assert again.vocabulary.key() == recognizer.vocabulary.key() and again.sound.settings == recognizer.sound.settings
    assert again.transcribe([tmp_path / "a.wav"])[0].text == own.text
    assert main(["transcribe", str(folder), str(tmp_path / "a.wav"), "--ctc-weight", "0.3", "--device", "cpu"]) != 0
    assert "the model has no CTC output" in capsys.readouterr().err


def test_long_recordings_are_joined_without_times(folder):
    recognizer = load(folder, "cpu")
    frames = np.random.default_rng(0).standard_normal((90, 20)).astype(np.float32)
    whole = recognizer.transcribe_frames([frames], recognizer.search(window=0.3, overlap=0.1, beam=1))
    assert whole[0].text and whole[0].words == []


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        (
            "config.json",
            {"conv_kernel_sizes": [3, 3]},
            "conv_kernel_sizes is [3, 3]; heed's SpeechTransformer supports only",
        ),
        ("config.json", {"conv_channels": 12}, "front.convolutions.0"),
        ("preprocessor_config.json", {"normalize_vars": False}, "normalize_vars is False; heed supports only True"),
        (
            "preprocessor_config.json",
            {"num_mel_bins": 80},
            "num_mel_bins is 80, but the model reads 20 numbers a frame",
        ),
        ("tokenizer_config.json", {"lang_codes": "mustc"}, "heed reads Speech2Text models of one language"),
        ("generation_config.json", {"forced_bos_token_id": 5}, "forced_bos_token_id is set; heed reads"),
    ],
)
def test_what_heed_cannot_compute_is_refused(folder, tmp_path, name, changes, said):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    facts = json.loads((tmp_path / name).read_text("utf-8")) | changes
    (tmp_path / name).write_text(json.dumps(facts), encoding="utf-8", newline="\n")
    with pytest.raises(ValueError) as error:
        huggingface.read(tmp_path)
    assert said in str(error.value)


def test_missing_weights_and_exports_are_refused(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "in", dirs_exist_ok=True)
    weights = load_file(folder / "model.safetensors")
    save_file(
        {name: own for name, own in weights.items() if "layer_norm" not in name}, tmp_path / "in/model.safetensors"
    )
    with pytest.raises(ValueError, match="the weights lack"):
        huggingface.read(tmp_path / "in")
    with pytest.raises(ValueError, match="speech models cannot be exported for transformers"):
        huggingface.write(huggingface.read(folder), tmp_path / "out")
