"""Each verb once, as a user would."""

import json
import math
import re
import subprocess
import sys

import pytest
import torch

from heed.cli.main import VERBS, command_parser, main, parse
from heed.loading import write_package
from heed.tasks import TASKS
from tests.cli.conftest import TINY, sets
from tests.convert.small import package, pairs

TEXTS = ["나는 너를 사랑해.", "", "우리는 학교에 가."]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb, capsys):
    with pytest.raises(SystemExit) as done:
        main([verb, "--help"])
    assert done.value.code == 0
    assert f"heed {verb} " in capsys.readouterr().out.split("example", 1)[1]


def test_every_verb_of_a_product_is_a_command():
    assert {verb for task in TASKS.values() for product in task.products for verb in product.verbs} <= set(VERBS)


def test_help_imports_nothing_heavy():
    code = "import sys; from heed.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "heavy = {'torch', 'numpy', 'rich', 'matplotlib', 'sacrebleu', 'sentencepiece'} & set(sys.modules); assert not heavy, heavy"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "heed train --source" in done.stdout


def test_existing_translations_are_scored_without_torch(tmp_path):
    (tmp_path / "own").write_text("a man is asleep\n", encoding="utf-8", newline="\n")
    words = ["evaluate", str(tmp_path / "own"), "--reference", str(tmp_path / "own"), "--rouge"]
    words += ["--against", str(tmp_path / "own"), "--samples", "10"]
    code = f"import sys; from heed.cli.main import main; main({words}); heavy = {{'torch', 'matplotlib'}} & set(sys.modules); assert not heavy, heavy"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert "BLEU" in done.stdout


TEXT_VERBS = ("translate", "generate", "classify", "tag", "answer", "embed", "fill")


@pytest.mark.parametrize("verb", TEXT_VERBS)
def test_texts_may_stand_before_and_after_options(verb):
    first = vars(parse(verb, ["model", "a text", "--threads", "2", "--device", "cpu"]))
    for words in (["model", "--threads", "2", "--device", "cpu", "a text"],
                  ["--threads", "2", "model", "--device", "cpu", "a text"],
                  ["model", "--device", "cpu", "--threads", "2", "--", "a text"]):  # fmt: skip
        assert vars(parse(verb, words)) == first
    assert vars(parse(verb, ["model", "--device", "cpu", "--", "-x"]))["text"] in ("-x", ["-x"])


def test_help_shows_the_default_of_every_option():
    found = " ".join(command_parser("serve").format_help().split())
    assert "--host HOST the address to listen on; 0.0.0.0: all interfaces (default: 127.0.0.1)" in found
    assert "--wait-ms WAIT_MS how long a sentence waits for others to batch with, in milliseconds (default: 3)" in found
    assert "maximum size of a request body (default: 10,485,760)" in found
    assert "(default: None)" not in found and "(default: False)" not in found
    assert "unlimited) (default" not in found
    assert "(default: )" not in command_parser("backtranslate").format_help()


def test_texts_between_options_stay_in_their_order():
    found = parse("classify", ["model", "a", "--scores", "b", "--threads", "2", "c", "d"])
    assert (found.folder, found.text, found.scores) == ("model", ["a", "b", "c", "d"], True)
    assert str(parse("distill", ["teacher", "--out", "run", "student.toml"]).recipe) == "student.toml"


def test_a_word_too_many_is_named(capsys):
    for words in (["model", "a", "--length", "3", "b"], ["model", "a", "b"]):
        with pytest.raises(SystemExit) as done:
            main(["generate", *words])
        assert done.value.code == 2
        assert "unknown: b; heed generate --help lists the options" in capsys.readouterr().err


def test_a_verb_that_is_not_there_is_named(capsys):
    assert main(["translat", "model", "serve"]) == 2
    says = "heed: translat: no such verb; did you mean heed translate? heed --help lists the verbs\n"
    assert capsys.readouterr().err == says
    assert main(["xyz"]) == 2
    assert capsys.readouterr().err == "heed: xyz: no such verb; heed --help lists the verbs\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["translate"], "the following arguments are required: folder"),
        (["translate", "model", "--bem", "5", "a"], "unknown: --bem 5 a (did you mean --beam?)"),
        (["translate", "model", "--beam", "five"], "--beam: 'five' is not an integer"),
        (["translate", "model", "--top-p", "all"], "--top-p: 'all' is not a number"),
        (["translate", "model", "--stopping", "frist"],
         "--stopping: 'frist' is none of 'exact', 'heuristic', 'first' (did you mean 'first'?)"),
    ],
)  # fmt: skip
def test_an_error_of_the_command_line_is_one_sentence(capsys, words, says):
    with pytest.raises(SystemExit) as done:
        main(words)
    assert done.value.code == 2
    assert capsys.readouterr().err == f"heed translate: {says}; heed translate --help lists the options\n"


def test_translate_gives_a_line_for_a_line(heed, trained, tmp_path):
    (tmp_path / "in").write_text("".join(text + "\n" for text in TEXTS), "utf-8")
    code, out, _ = heed("translate", trained, "--input", tmp_path / "in")
    assert code == 0
    lines = out.split("\n")
    assert len(lines) == 4 and lines[1] == ""
    assert heed("translate", trained, *TEXTS)[1] == out
    assert (
        heed("translate", trained, "--input", tmp_path / "in", "--out", tmp_path / "out", "--batch-tokens", 1)[0] == 0
    )
    assert (tmp_path / "out").read_text("utf-8") == out


def test_translate_with_all_its_columns(heed, trained):
    code, out, _ = heed("translate", trained, "--nbest", 3, "--scores", "--token-scores", "--align", TEXTS[0])
    assert code == 0
    rows = [line.split("\t") for line in out.splitlines()]
    assert [len(row) for row in rows] == [4, 4, 4]
    scores = [float(row[0]) for row in rows]
    assert scores == sorted(scores, reverse=True)


def test_chance_is_the_seed(heed, trained):
    one, other, third = (heed("translate", trained, "--sample", "--seed", seed, TEXTS[0])[1] for seed in (1, 1, 2))
    assert one == other != third


def test_an_ensemble_of_one_model_twice_is_the_model(heed, trained):
    assert heed("translate", f"{trained},{trained}", TEXTS[0])[1] == heed("translate", trained, TEXTS[0])[1]


def test_evaluate_and_compare(heed, trained, tmp_path, monkeypatch):
    (tmp_path / "a.ko").write_text("".join(text + "\n" for text in TEXTS), "utf-8")
    (tmp_path / "a.en").write_text("I love you.\nNothing.\nWe go to school.\n", "utf-8")
    (tmp_path / "b.hyp").write_text("I love you.\nNothing.\nWe go to schools.\n", "utf-8")
    pair = ("--source", tmp_path / "a.ko", "--reference", tmp_path / "a.en")
    code, out, _ = heed("evaluate", trained, *pair, "--json", tmp_path / "s.json")
    assert code == 0
    assert "nrefs:1|case:mixed|eff:no|tok:13a" in out.replace("\n", "").replace(" ", "")
    assert json.loads((tmp_path / "s.json").read_text())["scores"]["lines"] == 3
    monkeypatch.setenv("COLUMNS", "50")  # what is copied from a narrow terminal stays whole
    for report in (tmp_path / "r.tsv", tmp_path / "r[b].html"):
        more = ("--against", tmp_path / "b.hyp", "--sentences", report, "--samples", 50)
        code, out, _ = heed("evaluate", trained, *pair, *more)
        assert code == 0 and report.stat().st_size > 100
        assert f"Sentences: {report}" in out.splitlines()
        assert re.search(r"^TER +nrefs:1\|.*\|version:[\d.]+$", out, re.MULTILINE)


def test_look_draws_every_kind(heed, trained, tmp_path):
    for kind in ("html", "png", "svg", "json"):
        code, out, _ = heed("look", trained, TEXTS[0], "--out", tmp_path / f"a.{kind}")
        assert code == 0
        assert (tmp_path / f"a.{kind}").stat().st_size > 1000
    look = json.loads((tmp_path / "a.json").read_text())
    assert look["target_text"] == out.rstrip("\n")


def test_score_average_info_plot_and_phrasebook(heed, trained, tmp_path):
    (tmp_path / "a.ko").write_text("나는 너를 사랑해.\n안녕.\n", "utf-8")
    (tmp_path / "a.en").write_text("I love you.\nHello.\n", "utf-8")
    code, out, err = heed(
        "score", trained, "--source", tmp_path / "a.ko", "--target", tmp_path / "a.en", "--token-scores"
    )
    assert code == 0 and len(out.splitlines()) == 2 and "perplexity" in err
    assert heed("average", trained, "--last", 2, "--out", tmp_path / "mean")[0] == 0
    assert heed("translate", tmp_path / "mean", "안녕.")[0] == 0
    assert json.loads(heed("info", trained, "--json")[1])["run"]["step"] == 4
    assert "encoder_layers" in heed("info", tmp_path / "mean", "--all")[1]
    assert heed("plot", trained, "--out", tmp_path / "c.png")[0] == 0
    assert heed("phrasebook", "--out", tmp_path / "book", "--train", 20, "--valid", 5, "--test", 5)[0] == 0
    assert len((tmp_path / "book" / "test.align").read_text().splitlines()) == 5


@pytest.mark.parametrize("forced", [True, False])
def test_what_a_search_is_made_to_say_costs_nothing_when_scored(heed, tmp_path, forced):
    own = package("bart")
    write_package(own._replace(facts={"decoding": {"force_begin": forced}}), tmp_path / "model")
    source, target = pairs()[0]
    (tmp_path / "source").write_text(f"{source}\n", "utf-8")
    (tmp_path / "target").write_text(f"{target}\n", "utf-8")
    words = ["score", tmp_path / "model", "--source", tmp_path / "source", "--target", tmp_path / "target"]
    code, out, err = heed(*words, "--token-scores")
    assert code == 0
    vocabulary = own.vocabularies[0]
    [read], [said], special = vocabulary.encode([source]), vocabulary.encode([target]), vocabulary.special
    reads, says = [[*special.before, *ids, special.last] for ids in (read, said)]
    logits = own.model(torch.tensor([reads]), torch.tensor([[special.first, *says[:-1]]]))[0]
    logp = logits.log_softmax(dim=-1)[range(len(says)), says].tolist()
    if forced:
        says, logp = says[1:], logp[1:]
    total, tokens = out.rstrip("\n").split("\t")
    assert float(total) == pytest.approx(sum(logp), abs=2e-4)
    each = [part.rsplit(":", 1) for part in tokens.split(" ")]
    assert [piece for piece, _ in each] == vocabulary.pieces(says)
    assert [float(score) for _, score in each] == pytest.approx(logp, abs=2e-4)
    assert err == f"1 pairs, {len(says)} tokens, perplexity {math.exp(-sum(logp) / len(says)):.3f}"


def test_python_gives_what_the_command_gives(heed, trained):
    import heed as library

    model = library.load(trained, device="cpu")
    found = model.translate(TEXTS, beam=2)
    assert [t.text for t in found] == heed("translate", trained, "--beam", 2, *TEXTS)[1].split("\n")[:-1]
    assert found[0].tokens and len(found[0].tokens) == len(found[0].token_scores)
    assert found[0].attentions["cross"].shape[:2] == (2, 2)
    assert all(i < 3 for i, _ in found[0].alignment)


def test_a_run_that_goes_on_with_other_batches_says_so(heed, tmp_path):
    start = ["train", "recipes/phrasebook.toml", "--out", tmp_path / "run", "--quiet", *sets(TINY)]
    assert heed(*start) == (0, "", "")
    more = ["training.steps=6", "training.batch_tokens=300"]
    code, _, err = heed("train", "--out", tmp_path / "run", "--resume", *sets(more))
    assert code == 0
    told = (
        "Batches are now padded, of 300 tokens, seed 1 (before: padded, of 200 tokens, seed 1), so epoch 1 starts over"
    )
    assert told in err


def test_a_run_goes_on_from_another_folder(heed, tmp_path, monkeypatch):
    assert heed("phrasebook", "--out", tmp_path, "--train", 300, "--valid", 4, "--test", 4)[0] == 0
    monkeypatch.chdir(tmp_path)
    small = sets([setting for setting in TINY if not setting.startswith("data")])
    files = ["--source", "train.ko", "--target", "train.en", "--valid-source", "valid.ko", "--valid-target", "valid.en"]
    assert heed("train", *files, "--out", "run", "--quiet", *small) == (0, "", "")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert heed("train", "--out", "../run", "--resume", "--quiet", *sets(["training.steps=5"])) == (0, "", "")
