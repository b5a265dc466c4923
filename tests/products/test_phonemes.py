"""Voices that read phonemes, and models that pronounce what their dictionary lacks."""

import argparse

import pytest
import torch

from heed.cli.main import main
from heed.cli.serve import _equip
from heed.data.audio.voices import VoiceConfig
from heed.loading import load, write_package
from heed.models.package import Package
from heed.models.transformer import Transformer, TransformerConfig
from heed.models.transformer_tts import TransformerTTS, TransformerTTSConfig
from heed.products.pronunciation import by_model
from heed.products.voice import Voice
from heed.tasks.voice import learned
from heed.vocabularies.labels import Labels
from heed.vocabularies.phonemes import Phonemes, of_dictionary
from heed.vocabularies.sound import FeatureSettings, SoundFeatures
from heed.vocabularies.words import NAMES, Words
from tests.service.http.test_audio import voice as reads_letters

DICTIONARY = {"blorf": ["B L AO1 F"], "zim": ["Z IH1 M"]}


def words(tokens):
    return Words([(token, 1) for token in (*NAMES, *tokens)])


@pytest.fixture(scope="module")
def g2p(tmp_path_factory):
    """A model of letters and phonemes that has learned nothing, but says something."""
    torch.manual_seed(0)
    source, target = words("abcdefghijklmnopqrstuvwxyz'"), words(["B", "L", "AO1", "F", "Z", "IH1", "M"])
    sizes = {"dim": 8, "heads": 2, "hidden": 8, "encoder_layers": 1, "decoder_layers": 1}
    config = TransformerConfig(len(target), len(source), tied="target", **sizes)
    model = Transformer(config).eval()
    path = tmp_path_factory.mktemp("g2p")
    facts = {"decoding": {"min_length": 3, "max_length": 6}}
    write_package(Package(model, "translation", {"source": source, "target": target}, facts), path)
    return path


@pytest.fixture
def voice():
    torch.manual_seed(0)
    vocabulary = of_dictionary(DICTIONARY)
    sizes = {"dim": 8, "heads": 2, "hidden": 8, "encoder_layers": 1, "decoder_layers": 1, "postnet": 4}
    model = TransformerTTS(TransformerTTSConfig(len(vocabulary), 20, **sizes))
    settings = FeatureSettings("mel", rate=8000, mels=20, frame=32.0, shift=16.0, normalize="corpus")
    sound = SoundFeatures(settings, [-3.0] * 20, [1.0] * 20)
    return Voice(model, sound, vocabulary, Labels([""]), {"frames_per_token": 3.0})


def test_unknown_words_are_pronounced_by_the_model(voice, g2p):
    with pytest.raises(ValueError, match="'zorp' has no known pronunciation"):
        voice.speak(["zorp"])
    pronounce = by_model(load(g2p, "cpu", verb="translate"))
    voice.use_g2p(pronounce, "g2p")
    (ids,) = voice.encode(["Blorf zorp."])
    spoken = pronounce(["zorp"])["zorp"]
    assert spoken and voice.vocabulary.decode(ids) == f"B L AO1 F | {spoken} ."
    assert voice.speak(["zorp"])[0].frames.shape[1] == 20 and "zorp" not in voice.vocabulary.words
    with pytest.raises(ValueError, match="'zzzzzzzzzzzzzzzzzzzz'… has 61 letters; a word has at most 60"):
        voice.speak(["z" * 61])


def test_a_voice_in_a_folder_keeps_its_dictionary(voice, g2p, tmp_path, capsys):
    processors = {"sound": voice.sound, "text": voice.vocabulary, "speakers": voice.speakers}
    write_package(Package(voice.model, "speech-synthesis", processors, voice.facts), tmp_path / "voice")
    found = load(tmp_path / "voice", "cpu")
    assert isinstance(found.vocabulary, Phonemes) and found.encode(["zim blorf"]) == voice.encode(["zim blorf"])
    words = ["speak", str(tmp_path / "voice"), "zorp", "--device", "cpu", "--out", str(tmp_path / "a.wav")]
    assert main(words) != 0
    assert "'zorp' has no known pronunciation: give a model for such words, --g2p FOLDER" in capsys.readouterr().err
    assert main([*words, "--g2p", str(g2p)]) == 0 and (tmp_path / "a.wav").is_file()


def test_served_voices_get_a_model_and_others_refuse_it(voice, g2p):
    args = argparse.Namespace(g2p=str(g2p), vocoder=None, device="cpu")
    _equip(args, [voice])
    assert voice.encode(["zorp"])
    with pytest.raises(ValueError, match="--g2p is for voices, and no model given is one: leave it out"):
        _equip(args, [])


def test_letters_need_no_model():
    with pytest.raises(ValueError, match="this voice reads letters, not phonemes"):
        reads_letters().use_g2p(lambda words: {}, "runs/g2p")


def test_training_texts_are_read_by_the_dictionary(g2p, tmp_path):
    path = tmp_path / "words.dict"
    path.write_text("blorf B L AO1 F\nzim Z IH1 M\n", encoding="utf-8", newline="\n")
    config = VoiceConfig(audio=["a.tsv"], phonemes=str(path))
    assert learned(config, ["blorf", "zim"], 1).tokens == of_dictionary(DICTIONARY).tokens
    with pytest.raises(ValueError, match=r"lacks 2 of the words in the texts \(arf, zorp\): add them, or set data.g2p"):
        learned(config, ["zorp arf zim"], 1)
    config = VoiceConfig(audio=["a.tsv"], phonemes=str(path), g2p=str(g2p))
    assert not learned(config, ["zorp arf zim"], 1).missing(["zorp arf"])
    with pytest.raises(ValueError, match=r"set data\.phonemes to a dictionary"):
        VoiceConfig(audio=["a.tsv"], g2p="runs/g2p")
