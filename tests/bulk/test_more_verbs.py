"""heed generate, score --text, summarize, tag, fill and answer of a file: what the product says of all texts, also after a kill."""

import json
import os

import pytest

from heed.cli import answer, generate, score_lines, summarize
from heed.cli.main import main
from heed.data import conll
from heed.loading import load
from heed.products import text_batches
from tests.bulk.killing import killed_and_resumed

TEXTS = ["the dog sees", "a", "she never finds the street", "the street", "who", "red house", "나는 책을", "she", "dog"]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch, folders):
    monkeypatch.setenv("HEED_CACHE", str(folders / "cache"))
    for module in (answer, generate, score_lines, summarize, text_batches):
        monkeypatch.setattr(module, "CHUNK", 4)


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return str(path)


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Run a verb from a file to standard output and, killed once, to a file; (its lines, its last words)."""

    def check(*words):
        words = [*map(str, words), "--device", "cpu"]
        capsys.readouterr()
        assert main(words) == 0
        out, err = capsys.readouterr()
        killed_and_resumed([*words, "--out", str(tmp_path / "out")], monkeypatch)
        assert (tmp_path / "out").read_bytes().decode() == out
        assert capsys.readouterr().err.endswith(err)
        assert not [name for name in os.listdir(tmp_path) if name.startswith(("out.", ".out"))]
        return out.split("\n")[:-1], err

    return check


@pytest.mark.parametrize("options", [{"seed": 3}, {"sample": False, "beam": 2}], ids=["sampled", "beam"])
def test_prompts_are_continued(folders, tmp_path, check, options):
    words = ["--seed", 3] if "seed" in options else ["--beam", 2]
    prompts = write(tmp_path / "prompts", TEXTS)
    lines, _ = check("generate", folders / "gpt2", "--input", prompts, "--one-line", "--length", 6, "--scores", *words)
    model = load(folders / "gpt2", "cpu", verb="generate")
    expected = [own[0] for own in model.generate_many(TEXTS, length=6, one_line=True, **options)]
    both = zip(TEXTS, expected, strict=True)
    assert [line.split("\t")[1] for line in lines] == [(text + own.text).rstrip("\n") for text, own in both]
    assert [float(line.split("\t")[0]) for line in lines] == pytest.approx([own.score for own in expected], abs=1e-3)


def test_what_is_odd_about_prompts_is_told_of_the_whole_file_and_first(folders, tmp_path, capsys):
    prompts = write(tmp_path / "prompts", [*TEXTS, "the dog " * 12])
    assert main(["generate", str(folders / "gpt2"), "--input", prompts, "--length", "9", "--device", "cpu"]) == 0
    assert "2 of the 10 texts do not fit" in capsys.readouterr().err
    prompts = write(tmp_path / "prompts", ["Reviews the dog"] * 5 + ["the dog"])
    assert main(["generate", str(folders / "ctrl"), "--input", prompts, "--length", "2", "--device", "cpu"]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "the prompt has none" in err


def test_lines_are_scored_by_a_language_model(folders, tmp_path, check):
    text = write(tmp_path / "text", TEXTS)
    lines, err = check("score", folders / "gpt2", "--text", text, "--token-scores")
    expected = load(folders / "gpt2", "cpu", verb="score").score(TEXTS)
    assert [float(line.split("\t")[0]) for line in lines] == pytest.approx([own.logp for own in expected], abs=1e-3)
    assert [len(line.split("\t")[1].split()) for line in lines] == [len(own.tokens) for own in expected]
    tokens = sum(len(own.tokens) for own in expected)
    assert err.startswith(f"9 lines, each scored separately, {tokens} tokens, perplexity ")


@pytest.mark.parametrize("document", ["line", "paragraph"])
def test_texts_are_attributed_to_control_codes(folders, tmp_path, check, document):
    texts = TEXTS if document == "line" else [f"{text}\n{text}" for text in TEXTS]
    text = write(tmp_path / "text", texts if document == "line" else [f"{own}\n" for own in texts])
    lines, err = check("score", folders / "ctrl", "--text", text, "--codes", "--document", document)
    expected = load(folders / "ctrl", "cpu", verb="score").attribute(texts)
    assert lines[0].split("\t") == ["code", "Reviews", "News"]
    assert [line.split("\t")[0] for line in lines[1:]] == [own.code for own in expected]
    for line, own in zip(lines[1:], expected, strict=True):
        assert list(map(float, line.split("\t")[1:])) == pytest.approx(list(own.logp.values()), abs=1e-3)
    assert err.startswith(f"9 {document}s: ")


def test_articles_are_summarized(folders, tmp_path, check):
    articles = [*TEXTS[:6], "the dog sees a street " * 30, *TEXTS[7:]]
    lines, err = check("summarize", folders / "summarizer", "--lines", write(tmp_path / "articles", articles))
    model = load(folders / "summarizer", "cpu", verb="summarize")
    assert lines == [own.text for own in model.summarize(articles)]
    assert err.startswith("article 7: its last ") and err.count("truncated") == 1


def test_files_are_articles(folders, tmp_path, capsys):
    paths = [write(tmp_path / f"{number}.txt", [text, text]) for number, text in enumerate(TEXTS)]
    assert main(["summarize", str(folders / "summarizer"), *paths, "--device", "cpu"]) == 0
    model = load(folders / "summarizer", "cpu", verb="summarize")
    assert capsys.readouterr().out.splitlines() == [own.text for own in model.summarize([f"{t} {t}" for t in TEXTS])]
    empty = write(tmp_path / "empty.txt", [" "])
    assert main(["summarize", "no such model", *paths, empty, "--device", "cpu"]) == 1
    assert capsys.readouterr().err == f"heed: {empty} contains no text to summarize\n"


@pytest.mark.parametrize("form", ["json", "table", "conll", "inline"])
def test_words_are_tagged(folders, tmp_path, check, form):
    texts = [*TEXTS[:6], "the dog sees she " * 30, *TEXTS[7:]]
    lines, err = check("tag", folders / "tagger", "--input", write(tmp_path / "in", texts), "--format", form)
    tagged = load(folders / "tagger", "cpu", verb="tag").tag(texts)
    if form == "json":
        found = [[(one["start"], one["end"], one["type"]) for one in json.loads(line)["entities"]] for line in lines]
        assert found == [[(one.start, one.end, one.type) for one in own.entities] for own in tagged]
    elif form == "table":
        assert lines[0].startswith("text\ttype")
        rows = [(str(n), one.type) for n, own in enumerate(tagged, 1) for one in own.entities]
        assert [tuple(line.split("\t")[:2]) for line in lines[1:]] == rows
    elif form == "conll":
        words = [[f"{one.text} {one.label}" for one in own.words] for own in tagged]
        assert "\n".join(lines) == "\n".join("\n".join([*own, ""]) for own in words)
    assert "1 of 9 texts are too long for the model and were read in windows." in err


def test_words_of_a_conll_file_are_tagged(folders, tmp_path, check, monkeypatch):
    monkeypatch.setattr(conll, "read", lambda *of: pytest.fail("read whole"))
    sentences = [text.split() for text in TEXTS]
    path = write(tmp_path / "in.conll", ["-DOCSTART- O", "", *("\n".join([*own, ""]) for own in sentences)])
    lines, err = check("tag", folders / "tagger", "--conll", path, "--word-column", 1, "--format", "conll")
    tagged = load(folders / "tagger", "cpu", verb="tag").tag_words(sentences)
    assert [line for line in lines if line] == [f"{one.text} {one.label}" for own in tagged for one in own.words]
    assert err.startswith("1 -DOCSTART- lines were skipped.")


def test_words_with_spaces_are_written_with_tabs(folders, tmp_path, check):
    sentences = [*([text] for text in TEXTS[1:]), ["the dog", "sees"]]  # the last one decides
    path = write(tmp_path / "in.conll", ["\n".join([*(f"{word}\tO" for word in own), ""]) for own in sentences])
    lines, _ = check("tag", folders / "tagger", "--conll", path, "--format", "conll")
    tagged = load(folders / "tagger", "cpu", verb="tag").tag_words(sentences)
    assert [line for line in lines if line] == [f"{one.text}\t{one.label}" for own in tagged for one in own.words]


def test_a_broken_conll_file_is_told_before_anything_is_written(folders, tmp_path, capsys):
    path = write(tmp_path / "in.conll", [*("a O\n" for _ in range(600)), "b"])
    args = ["tag", str(folders / "tagger"), "--conll", path, "--word-column", "2", "--device", "cpu"]
    for out in ([], ["--out", str(tmp_path / "out")]):
        assert main([*args, *out]) == 1
        out, err = capsys.readouterr()
        assert not out and err.startswith(f"heed: {path}, line 1201 has 1 column, but line 1 has 2 (separated by")
    assert not list(tmp_path.glob("out*"))


def test_masks_are_filled(folders, tmp_path, check, capsys):
    texts = [f"{text} [MASK]" for text in TEXTS]
    path = write(tmp_path / "in", texts)
    lines, _ = check("fill", folders / "filler", "--input", path, "--json", "--top", 2)
    filled = load(folders / "filler", "cpu", verb="fill").fill(texts, top=2)
    assert [json.loads(line)["filled"] for line in lines] == [own.filled for own in filled]
    write(tmp_path / "in", [*texts, "no mask"])
    out = ["--out", str(tmp_path / "other")]
    assert main(["fill", str(folders / "filler"), "--input", path, *out, "--device", "cpu"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("heed: text 10 has no [MASK]") and "continue with --resume" in err
    assert {path.name for path in tmp_path.glob("other*")} == {"other.part", "other.part.journal"}


def test_questions_are_answered(folders, tmp_path, check, capsys):
    context = "the dog sees a red house. she never finds the street."
    pairs = [(text, context) for text in [*TEXTS[:8], "dog " * 70]]
    path = write(tmp_path / "in", ["\t".join(pair) for pair in pairs])
    lines, err = check("answer", folders / "answerer", "--input", path, "--n", 2, "--json")
    found = load(folders / "answerer", "cpu", verb="answer").answer(pairs, n=2)
    told = [[(one["text"], one["start"]) for one in json.loads(line)["answers"]] for line in lines]
    assert told == [[(one.text, one.start) for one in own.best] for own in found]
    assert err.startswith("1 of 9 questions are longer than ")
    write(tmp_path / "in", [*("\t".join(pair) for pair in pairs), "no tab"])
    assert main(["answer", str(folders / "answerer"), "--input", path, "--device", "cpu"]) == 1
    assert capsys.readouterr().err.startswith("heed: line 10 has no tab")
    (tmp_path / "out").unlink()
    questions, own = write(tmp_path / "questions", TEXTS), write(tmp_path / "context", [context])
    assert check("answer", folders / "answerer", "--input", questions, "--context", own)[0][0] == found[0].text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["generate", "gpt2", "text"], "--input FILE and --out FILE"),
        (["fill", "filler", "[MASK]"], "--input FILE and --out FILE"),
        (["answer", "answerer", "Who?"], "--input FILE and --out FILE"),
        (["tag", "tagger", "text"], "--input FILE or --conll FILE and --out FILE"),
        (["summarize", "summarizer", "--lines"], "FILE and --out FILE"),
        (["score", "gpt2", "--text", "text"], "--text FILE and --out FILE"),
    ],
)
def test_resume_needs_files(folders, capsys, words, says):
    assert main([words[0], str(folders / words[1]), *words[2:], "--resume"]) == 1
    assert capsys.readouterr().err == f"heed: --resume continues an output file: it needs {says}\n"
