"""A few sentences without torch: what the whole translator finds, or nothing."""

import argparse
import dataclasses
import io
import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

import heed
from heed.cli import common, quick_translate, translate
from heed.cli.common import RERANKING
from heed.cli.main import VERBS, command_parser, main
from heed.decoding.config import UNGUARDED, DecodingConfig
from heed.files import cache_folder
from heed.loading import write_package
from heed.models import weight_hash
from heed.products.translator import quick
from heed.products.translator.engines import cache
from heed.products.translator.engines.ctranslate2 import CTranslate2
from heed.service.http.models import ServedModel
from tests.convert.small import ENDS, package, pairs, speaking

pytest.importorskip("ctranslate2")
TEXTS = [source for source, _ in pairs()[:9]]
HEAVY = ("torch", "matplotlib", "transformers", "sacrebleu", "rich", "huggingface_hub", "fastapi", "triton")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small translator whose weights are drawn; it loops, and nobody minds."""
    path = tmp_path_factory.mktemp("quick") / "model"
    own = speaking(package("one", tied="none", norm="pre", output_bias=True), ENDS["one"])
    own.model.float()
    decoding = dataclasses.asdict(DecodingConfig(beam=4, max_length=16)) | UNGUARDED
    write_package(own._replace(facts={"decoding": decoding}), path)
    return path.resolve()


@pytest.fixture(scope="module")
def translator(folder):
    return heed.load(folder, "cpu")


@pytest.fixture
def opened(folder, translator):
    before = quick.stamp(folder)
    translator.translate(TEXTS[0])
    quick.remember(folder, before, translator)
    return quick.find(folder, 1)


@pytest.mark.parametrize(
    "search",
    [{}, {"nbest": 3}, {"beam": 1}, {"penalty": "length", "length_penalty": 1.0}, {"no_repeat": 2, "min_length": 5}],
    ids=str,
)
def test_it_finds_what_the_whole_translator_finds(opened, translator, search):
    texts = [*TEXTS, "", " ".join(TEXTS)]  # the last is translated in parts
    found, expected = opened.translate(texts, search), translator.translate(texts, **search)
    assert found == expected
    assert len(found[-1].parts) > 1
    assert [len(one.nbest) for one in found] == [search.get("nbest", 1)] * len(texts)


@pytest.mark.parametrize(
    "search",
    [{"sample": True}, {"rerank": "mbr"}, {"length_penalty": 2.0}, {"repetition_penalty": 1.2}, {"avoid_loops": True}],
    ids=str,
)
def test_what_needs_torch_is_left_to_it(opened, search):
    """The last is a search that CTranslate2 runs, and a loop in what it finds."""
    assert opened.translate(TEXTS, search) is None
    assert opened.translate(["\udce4"], {}) is None


def test_a_folder_that_has_changed_is_not_taken(opened, folder):
    assert opened is not None
    for name in ("model.safetensors", "config.json"):
        times = (folder / name).stat()
        os.utime(folder / name, ns=(times.st_atime_ns, times.st_mtime_ns + 1))
        assert quick.find(folder, 1) is None, name
        os.utime(folder / name, ns=(times.st_atime_ns, times.st_mtime_ns))
    (folder / "shortlist.txt").write_text("", encoding="utf-8", newline="\n")
    assert quick.find(folder, 1) is None
    (folder / "shortlist.txt").unlink()
    assert quick.find(folder, 1) is not None


def test_damage_is_noticed(opened, folder):
    (note,) = cache_folder().glob(f"ctranslate2-*/{quick._note(folder)}")
    whole = note.read_text("utf-8")
    for damaged in ("", "[]", "{}", whole[:-9], json.dumps({**json.loads(whole), "max_source": 3})):
        note.write_text(damaged, encoding="utf-8", newline="\n")
        assert quick.find(folder, 1) is None
    note.write_text(whole, encoding="utf-8", newline="\n")
    weights = note.parent / "model.bin"
    kept = weights.read_bytes()
    weights.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
    assert quick.find(folder, 1) is None
    weights.write_bytes(kept)
    assert quick.find(folder, 1) is not None


@pytest.mark.parametrize("stated", [True, False], ids=["hashes stated", "earlier version"])
def test_a_bit_that_a_vocabulary_has_lost_is_noticed(folder, tmp_path, stated):
    """The disk tells nobody: size, time and inode stay."""
    own = tmp_path.resolve() / "model"
    shutil.copytree(folder, own)
    config = json.loads((own / "config.json").read_text("utf-8"))
    for section in (config, *config["processors"].values()) if not stated else ():
        del section["sha256"]
    (own / "config.json").write_text(json.dumps(config), encoding="utf-8", newline="\n")
    before, translator = quick.stamp(own), heed.load(own, "cpu")
    translator.translate(TEXTS[0])
    quick.remember(own, before, translator)
    for path in own.glob("*.spm"):
        content, times = path.read_bytes(), path.stat()
        for place in (len(content) // 3, len(content) - 1):
            assert quick.find(own, 1) is not None
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            assert quick.find(own, 1) is None, (path.name, place)
            path.write_bytes(content)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_a_vocabulary_that_is_replaced_after_it_was_read_is_not_taken(folder, translator, tmp_path):
    own = tmp_path.resolve() / "model"
    shutil.copytree(folder, own)
    before = quick.stamp(own)
    path = next(own.glob("*.spm"))
    path.write_bytes(path.read_bytes() + b" ")
    translator.translate(TEXTS[0])
    quick.remember(own, before, translator)
    assert not any(quick.records(own))


def test_a_served_model_is_warm_for_every_size_of_batch(folder, monkeypatch):
    """And the weights are hashed once, by `heed.load`."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    own, hashed, key = heed.load(folder, "cpu"), [], cache.key
    monkeypatch.setattr(cache, "key", lambda *of: (hashed.append(of), key(*of))[1])
    monkeypatch.setattr(weight_hash, "hash_weights", lambda model: pytest.fail("hashed twice"))
    ServedModel("one", "ko", "en", own).warm_up(64)
    assert len(hashed) == 1
    assert len(own.engines[0].shared.pools) == 3
    monkeypatch.setattr(CTranslate2, "_open", lambda *of: pytest.fail("a request opened a model"))
    assert [len(own.translate(TEXTS[:1] * count)) for count in (1, 8, 20, 32, 64)] == [1, 8, 20, 32, 64]


def test_on_a_gpu_kernels_for_few_and_for_many_sentences_are_compiled_before_a_request():
    counts = []
    fake = SimpleNamespace(device=torch.device("cuda"), translate=lambda texts: counts.append(len(texts)))
    ServedModel("one", "ko", "en", fake).warm_up(64)
    assert counts == [1, 2, 4, 8, 16, 32, 64]


def in_process(code: str) -> str:
    """What a program prints that runs alone."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    return done.stdout


def test_help_imports_nothing_heavy():
    code = f"""
import contextlib, io, sys
from heed.cli.main import main
for words in [["--help"], *([verb, "--help"] for verb in {list(VERBS)}), ["recipes"]]:
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main(words)
    assert not set({HEAVY}) & set(sys.modules), (words, set({HEAVY}) & set(sys.modules))
"""
    assert in_process(code) == ""


def test_the_command_needs_torch_only_the_first_time(folder, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path))
    words = ["translate", str(folder), *TEXTS, "--device", "cpu", "--nbest", "2", "--scores"]
    assert main(words) == 0
    first = capsys.readouterr().out
    code = f"import sys, heed.cli.main as cli; cli.main({words}); print('torch' in sys.modules)"
    second = in_process(code)
    assert second == f"{first}False\n"
    assert len(first.splitlines()) == 2 * len(TEXTS)
    assert main([*words, "--token-scores"]) == 0  # which it leaves to torch
    assert [line.split("\t")[:2] for line in capsys.readouterr().out.splitlines()] == [
        line.split("\t") for line in first.splitlines()
    ]


@pytest.fixture
def recorded(folder, monkeypatch, tmp_path, capsys):
    """The folder, with the search of its sentences recorded in a new cache."""
    return _recorded(folder, monkeypatch, tmp_path, capsys)


def _recorded(folder, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    assert main(["translate", str(folder), TEXTS[0], "--device", "cpu"]) == 0
    capsys.readouterr()
    (tmp_path / "in").write_text("".join(f"{text}\n" for text in LINES), encoding="utf-8", newline="\n")
    return folder


LINES = [*TEXTS, "", " ".join(TEXTS)]


def usual(words, capsys) -> str:
    """What a command prints that takes the usual way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quick_translate, "folder", lambda args: None)
        assert main(words) == 0
    return capsys.readouterr().out


def standard_input(monkeypatch, lines) -> None:
    raw = "".join(f"{line}\n" for line in lines).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))


def test_a_short_file_and_a_short_standard_input_need_no_torch(recorded, tmp_path, capsys):
    words = ["translate", str(recorded), "--device", "cpu", "--nbest", "2", "--scores"]
    expected = usual([*words, "--input", str(tmp_path / "in")], capsys)
    code = f"""
import io, sys, heed.cli.main as cli
raw = open({str(tmp_path / "in")!r}, "rb").read()
sys.stdin = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8")
assert cli.main({words}) == 0
assert cli.main([*{words}, "--input", {str(tmp_path / "in")!r}, "--out", {str(tmp_path / "new" / "out")!r}]) == 0
assert "torch" not in sys.modules
"""
    assert in_process(code) == expected
    assert (tmp_path / "new" / "out").read_text("utf-8") == expected
    assert os.listdir(tmp_path / "new") == ["out"]
    assert len(expected.splitlines()) == 2 * len(LINES)


@pytest.mark.parametrize("why", ["characters", "lines", "unfinished", "damaged"])
def test_any_other_input_takes_the_usual_way(recorded, tmp_path, monkeypatch, capsys, why):
    """Lines of standard input that were read are not lost."""
    words, out = ["translate", str(recorded), "--device", "cpu"], tmp_path / "out"
    expected = usual([*words, "--input", str(tmp_path / "in")], capsys)
    if why == "characters":
        monkeypatch.setattr(quick_translate, "MAX_CHARACTERS", 40)
    elif why == "lines":
        monkeypatch.setattr(translate, "CHUNK", len(LINES))
    elif why == "unfinished":
        (tmp_path / "out.part").write_text("interrupted\n", encoding="utf-8", newline="\n")
    else:
        for path in (tmp_path / "cache").glob("ctranslate2-*/model.bin"):
            path.write_bytes(path.read_bytes()[:-1])
    called, plain = [], translate._run
    monkeypatch.setattr(translate, "_run", lambda *of: (called.append(of), plain(*of))[1])
    standard_input(monkeypatch, LINES)
    assert main([*words, "--out", str(out)]) == 0
    assert len(called) == 1
    assert out.read_text("utf-8") == expected


def test_only_faulty_translations_are_searched_again(monkeypatch, tmp_path, capsys):
    own = speaking(package("one", tied="none", norm="pre", output_bias=True), ENDS["one"])
    own.model.float()
    path = tmp_path.resolve() / "model"
    decoding = dataclasses.asdict(DecodingConfig(beam=4, max_length=16)) | UNGUARDED | {"avoid_loops": True}
    write_package(own._replace(facts={"decoding": decoding}), path)
    folder = _recorded(path, monkeypatch, tmp_path, capsys)
    words = ["translate", str(folder), "--device", "cpu", "--scores"]
    opened = quick.find(folder, 1)
    assert opened.faulty(opened.search(LINES, {}))
    expected = usual([*words, "--input", str(tmp_path / "in")], capsys)
    monkeypatch.setattr(CTranslate2, "search", lambda *of: pytest.fail("searched again"))
    standard_input(monkeypatch, LINES)
    assert main(words) == 0
    assert capsys.readouterr().out == expected


@pytest.fixture
def with_gpu(folder, monkeypatch, tmp_path):
    """The folder on a machine with a GPU, and a new cache. Records the devices that models are opened on."""
    monkeypatch.setattr(quick_translate, "GPUS", (str(folder),))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    devices, plain = [], common.open_product
    monkeypatch.setattr(
        common, "open_product", lambda args, *of: (devices.append(args.device), plain(args, *of))[1]
    )  # auto is the CPU in tests
    return devices


def test_a_few_sentences_run_on_the_cpu_even_if_there_is_a_gpu(folder, with_gpu, capsys):
    """Starting a GPU takes longer."""
    words = ["translate", str(folder), *TEXTS]
    expected = usual([*words, "--device", "cpu"], capsys)
    with_gpu.clear()
    for devices in (["cpu"], ["cpu"]):  # the second needs neither torch nor a model
        assert main(words) == 0
        assert (capsys.readouterr().out, with_gpu) == (expected, devices)
    assert main([*words, "--allow-copies", "--token-scores"]) == 0  # these need the model
    assert with_gpu == ["cpu", "auto"]


@pytest.mark.parametrize("why", ["sentences", "lines", "characters", "weights", "model", "sample"])
def test_anything_larger_runs_on_the_gpu(folder, with_gpu, monkeypatch, tmp_path, capsys, why):
    words = ["translate", str(folder), *(["--sample"] if why == "sample" else [])]
    if why == "characters":
        monkeypatch.setattr(quick_translate, "GPU_CHARACTERS", 40)
    elif why in ("sentences", "lines"):
        monkeypatch.setattr(quick_translate, "GPU_LINES", len(TEXTS) - 1)
    elif why == "weights":
        monkeypatch.setattr(quick, "MAX_BYTES", 100)
    elif why == "model":
        monkeypatch.setattr(quick, "MODELS", ())
    standard_input(monkeypatch, TEXTS)
    assert main([*words, *(TEXTS if why == "sentences" else [])]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(TEXTS)
    assert with_gpu == ["auto"]


def test_a_file_is_not_overwritten_by_its_translation(recorded, tmp_path, capsys):
    path = str(tmp_path / "in")
    assert main(["translate", str(recorded), "--device", "cpu", "--input", path, "--out", path]) == 1
    assert "--out is the input file itself" in capsys.readouterr().err


def test_every_option_is_known_to_need_torch_or_not(folder):
    """An option that is new must be put in one of these lists."""
    parser = command_parser("translate")
    every = {action.dest for action in parser._actions} - {"help"}
    searches = {*translate.DECODING, *RERANKING}  # QuickTranslator looks at the settings of a search
    plain = {"folder", "text", "input", "out", "threads", "device", "engine", "scores"}
    assert every == searches | plain | {*quick_translate.NEED_TORCH} | {*quick_translate.USUAL}
    defaults = vars(parser.parse_args([str(folder), "--device", "cpu"]))
    assert quick_translate.folder(argparse.Namespace(**defaults)) == folder
    given = [{name: "1"} for name in quick_translate.NEED_TORCH] + [{"too_long": "refuse"}, {"batch_tokens": 9}]
    given += [{"engine": "torch"}, {"device": "cuda"}, {"folder": ["a", "b"]}, {"text": ["a"], "input": "b"}]
    for changes in given:
        assert quick_translate.folder(argparse.Namespace(**defaults | changes)) is None, changes
