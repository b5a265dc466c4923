"""heed generate, by the commands that a user gives, with a small GPT-2 and a small CTRL."""

import pytest

import heed as library
from heed.loading import write_package
from tests.helpers import language_package


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    out, found = tmp_path_factory.mktemp("models"), {}
    for name in ("gpt2", "ctrl"):
        write_package(language_package(name), out / name)
        found[name] = out / name
    return found


def test_a_prompt_is_an_argument_or_an_option(heed, folders):
    code, out, err = heed("generate", folders["gpt2"], "the dog", "--length", 9, "--seed", 3)
    assert (code, err) == (0, "")
    assert (code, out) == heed("generate", folders["gpt2"], "--prompt", "the dog", "--length", 9, "--seed", 3)[:2]
    expected = library.load(folders["gpt2"], "cpu").generate("the dog", length=9, seed=3)[0].text
    assert out.strip() == ("the dog" + expected).strip()


def test_streams_files_and_stop_strings_print_nothing_more(heed, folders, tmp_path):
    whole = heed("generate", folders["gpt2"], "the dog", "--length", 14, "--seed", 3)[1]
    stop = whole.strip()[12:15].replace("\n", "\\n")
    words = ["generate", folders["gpt2"], "the dog", "--length", 14, "--seed", 3, "--stop", "no such", "--stop", stop]
    code, out, _ = heed(*words)
    assert code == 0 and whole.startswith(out.rstrip("\n")) and len(out) < len(whole)
    assert heed(*words, "--stream")[1].rstrip("\n") == out.rstrip("\n")
    (tmp_path / "prompts").write_text("the dog\na\nshe never\n", "utf-8")
    options = ["--length", 5, "--seed", 3, "--one-line", "--top-p", 0.9, "--min-p", 0.01, "--typical", 0.95]
    code, out, _ = heed("generate", folders["gpt2"], "--input", tmp_path / "prompts", *options)
    alone = [heed("generate", folders["gpt2"], prompt, *options)[1] for prompt in ("the dog", "a", "she never")]
    assert code == 0 and out == "".join(alone)


def test_a_window_that_slides_is_told_once(heed, folders):
    code, _, err = heed("generate", folders["gpt2"], "the dog", "--length", 60, "--repetition-penalty", 1.2)
    assert code == 0 and err.count("is used") == 1
    assert "The model has 20 positions, and the text does not fit" in err


def test_the_engine_of_the_cpu_says_the_same(heed, folders, tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    words = ["generate", folders["gpt2"], "the dog", "--greedy", "--length", 8, "--threads", 1]
    assert heed(*words) == heed(*words, "--engine", "ctranslate2")
    (tmp_path / "lines").write_text("the dog\na\n", "utf-8")
    words = ["score", folders["gpt2"], "--text", tmp_path / "lines"]
    one, other = (heed(*words, "--engine", engine)[1].split() for engine in ("torch", "ctranslate2"))
    assert list(map(float, one)) == pytest.approx(list(map(float, other)), abs=1e-3)
    code, _, err = heed("convert", folders["gpt2"], "--to", "ctranslate2", "--out", tmp_path / "fast")
    assert code == 0 and "for CTranslate2, with weights in float32 (GPT-2)" in err


def test_a_control_code_is_asked_for_and_used(heed, folders):
    model = library.load(folders["ctrl"], "cpu")
    for name in ("Reviews", "News"):
        code, out, _ = heed("generate", folders["ctrl"], "the dog", "--code", name, "--greedy", "--length", 8)
        expected = model.generate("the dog", length=8, sample=False, code=name)[0].text
        assert code == 0 and out.strip() == ("the dog" + expected).strip()


def test_what_makes_no_sense_is_said(heed, folders, tmp_path):
    gpt2, ctrl = folders["gpt2"], folders["ctrl"]
    cases = {
        (
            "generate",
            ctrl,
        ): "texts of this model begin with a control code, but the prompt is empty: give one of News",
        ("generate", ctrl, "the dog"): "begin with a control code, but the prompt has none",
        (
            "generate",
            ctrl,
            "the dog",
            "--code",
            "Revews",
        ): "has no control code 'Revews'; did you mean Reviews or News?",
        ("generate", gpt2, "a", "--code", "News"): "the model has no control codes: leave it out",
        ("generate", gpt2, "a", "--stop", ""): "a stop string is empty",
        ("generate", gpt2, "a", "--min-p", 1.5): "min_p is 1.5; it must be at least 0 (off) and at most 1",
        ("generate", gpt2, "a", "--greedy", "--typical", 0.5): "--typical is for sampling",
        ("generate", gpt2, "a", "--prompt", "b"): "give only one of a prompt and --prompt",
        ("generate", gpt2, "a", "--count", 2, "--stream"): "--stream needs a single text on standard output",
        ("generate", ctrl, "a", "--code", "News", "--engine", "ctranslate2"): "it does not support this CTRL",
        ("score", gpt2, "--engine", "ctranslate2"): "--engine ctranslate2 is for language models (--text FILE)",
    }
    for words, error in cases.items():
        code, _, err = heed(*words)
        assert (code, error in err) == (1, True), (words, err)
