"""What reads folders of transformers for images and speech, and the journal of a long job."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors.torch import save
from sentencepiece import SentencePieceProcessor

from bench.fuzz.cases import Case, Reader
from bench.fuzz.families import packages
from bench.fuzz.folders import texts, written
from heed import loading
from heed.bulk.recorded import RecordedFile
from heed.convert import huggingface, speech2text
from heed.data.staged import chunks
from heed.models.speech_transformer import SpeechTransformer, SpeechTransformerConfig
from heed.vocabularies.files import all_pieces
from heed.vocabularies.sentencepiece import train

HEARING = {
    "feature_extractor_type": "Speech2TextFeatureExtractor", "sampling_rate": 8000, "num_mel_bins": 10, "feature_size": 10,
    "do_ceptral_normalize": True, "normalize_means": True, "normalize_vars": True, "padding_value": 0.0,
}  # fmt: skip
LINES = [f"줄 {number}" for number in range(7)]
SETTINGS = {"weights": ["abc"], "beam": 5}
HEAD = b"\x93HEAD"


def _speech_case() -> Case:
    """Speech2Text, which Heed reads but does not write."""
    subwords = train(texts(), {"model_type": "bpe", "vocab_size": 80}, "the subwords")
    every = all_pieces(SentencePieceProcessor(model_proto=subwords), "the subwords")
    names = list(dict.fromkeys(["<s>", "<pad>", "</s>", "<unk>", *every]))
    sizes = {"dim": 8, "heads": 2, "hidden": 8, "encoder_layers": 1, "decoder_layers": 1, "channels": 4, "inputs": 10}
    torch.manual_seed(0)
    config = SpeechTransformerConfig(vocab_size=len(names), max_length=60, **sizes, **speech2text.OWN)
    weights, settings = speech2text.ARCHITECTURES[0].to_theirs(SpeechTransformer(config))
    parts = {
        "config.json": {**settings, "eos_token_id": 2, "bos_token_id": 0, "decoder_start_token_id": 2},
        "generation_config.json": {"num_beams": 2},
        "tokenizer_config.json": {"do_lower_case": True, "tgt_lang": None},
        "preprocessor_config.json": HEARING,
        "vocab.json": {name: number for number, name in enumerate(names)},
    }
    case = {name: json.dumps(own).encode() for name, own in parts.items()}
    return {
        **case,
        "sentencepiece.bpe.model": subwords,
        "model.safetensors": save({name: own.detach().contiguous() for name, own in weights.items()}),
    }


def _media_seeds() -> Iterable[Case]:
    yield _speech_case()
    package = next(iter(packages()))
    yield written(lambda folder: huggingface.write(package, folder))


def _journal_seeds() -> Iterable[Case]:
    def write(folder: Path) -> None:
        with RecordedFile(folder / "out", SETTINGS, HEAD) as file:
            for chunk in chunks(LINES, 3):
                file.append(chunk, "".join(f"<{line}>\n" for line in chunk.items).encode(), note=[chunk.start, 0.5])

    yield written(write)


def _read_journal(folder: Path) -> None:
    """In a copy: what is damaged is cut off."""
    work = folder.parent / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(folder, work)
    with RecordedFile(work / "out", SETTINGS, HEAD) as file:
        if file.begun:
            kept = file.resume(chunks(LINES, 3))
            assert file.notes == [[3 * number, 0.5] for number in range(kept)]


READERS: dict[str, Reader] = {
    "huggingface-media": Reader(_media_seeds, lambda folder: loading.load(folder, "cpu", "torch"), tuple(HEARING)),
    "journal": Reader(_journal_seeds, _read_journal, ("inputs", "read", "bytes", "written", "note", "sha256")),
}
