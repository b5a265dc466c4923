"""Pre-training, then fine-tuning; summaries and labels: what `heed train` learns besides translation."""

import json
import shutil
import unicodedata

import pytest
from safetensors.torch import load_file

from heed.cli.main import main
from tests.cli.conftest import sets

TINY = ["subwords.size=400", "model.dim=16", "model.heads=2", "model.hidden=32", "model.encoder_layers=1",
        "model.decoder_layers=1", "training.threads=1", "training.steps=4", "training.valid_every=2",
        "training.batch_tokens=200", "decoding.max_length=12", "filters.max_length=60", "data.holdout=5"]  # fmt: skip
SHAPE = ("subwords", "model")
PLAIN = [setting for setting in TINY if not setting.startswith(SHAPE)]
WORDS = ["dog", "child", "sea", "house", "street", "나무", "바다", "책"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Texts of a few sentences, their translations of a kind, and labels."""
    folder = tmp_path_factory.mktemp("files")
    rows = [(a, b, c) for a in WORDS for b in WORDS for c in WORDS[:3]]
    text = [f"The {a} sees a {b}. It likes the {c}! Is {a} with {c}?" for a, b, c in rows]
    (folder / "text").write_text("".join(f"{line}\n" for line in text), "utf-8")
    (folder / "said").write_text("".join(f"{a}, {b} and {c}.\n" for a, b, c in rows), "utf-8")
    (folder / "labels").write_text("".join(f"{'dry' if a in WORDS[3:7] else 'wet'}\n" for a, _, _ in rows), "utf-8")
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


TASKS = {"bart": "denoising", "pegasus": "gap-sentences"}


def command(out, *words, settings=PLAIN):
    return ["train", "--out", str(out), "--quiet", *map(str, words), *sets(settings)]


@pytest.fixture
def train(monkeypatch, cache, capsys):
    monkeypatch.setenv("HEED_CACHE", str(cache))

    def run(out, *words, settings=PLAIN):
        code = main(command(out, *words, settings=settings))
        return code, " ".join(capsys.readouterr().err.split())

    return run


@pytest.fixture(scope="module")
def pretrained(files, cache, tmp_path_factory):
    """One run of each task that learns from text alone."""
    runs = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEED_CACHE", str(cache))
        for name, task in TASKS.items():
            runs[name] = tmp_path_factory.mktemp("runs") / name
            settings = [*TINY, f"task.name={task}", f"model.name={name}"]
            assert main(command(runs[name], "--source", files / "text", settings=settings)) == 0
    return runs


def weights(run):
    return load_file(run / "model" / "model.safetensors")


def same(one, other):
    return one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)


@pytest.mark.parametrize("name", ["bart", "pegasus"])
def test_pre_training_and_then_fine_tuning_is_two_commands(train, pretrained, files, tmp_path, name, heed):
    first = pretrained[name]
    pair = ["--source", files / "text", "--target", files / "said"]
    assert train(tmp_path / "tuned", "--from", first, *pair) == (0, "")
    told, before = (json.loads((run / "model" / "config.json").read_text()) for run in (tmp_path / "tuned", first))
    assert told["model"] == before["model"]
    assert (before["trained"]["task"], told["trained"]["task"]) == (
        TASKS[name],
        "translation",
    )
    code, out, _ = heed("translate", tmp_path / "tuned", "The dog sees a sea.")
    assert (code, len(out.splitlines())) == (0, 1)


def test_training_starts_from_the_weights_of_the_folder_unless_they_are_to_be_fresh(train, pretrained, files, tmp_path):
    first = pretrained["bart"]
    pair = ["--source", files / "text", "--target", files / "said", "--from", first]
    still = [*PLAIN, "training.rate=0.0", "training.final=last"]
    assert train(tmp_path / "still", *pair, settings=still) == (0, "")
    assert same(weights(tmp_path / "still"), weights(first))
    assert train(tmp_path / "fresh", *pair, settings=[*still, "model.fresh=true"]) == (0, "")
    assert not same(weights(tmp_path / "fresh"), weights(first))
    assert weights(tmp_path / "fresh").keys() == weights(first).keys()


@pytest.mark.parametrize("name", ["bart", "pegasus"])
def test_pre_training_that_was_stopped_ends_with_the_same_bits(train, pretrained, files, tmp_path, name):
    settings = [*TINY, f"task.name={TASKS[name]}", f"model.name={name}"]
    assert train(tmp_path / "part", "--source", files / "text", settings=[*settings, "training.steps=2"]) == (0, "")
    assert train(tmp_path / "part", "--source", files / "text", "--resume", settings=settings) == (0, "")
    assert same(weights(tmp_path / "part"), weights(pretrained[name]))


def test_a_classifier_is_trained_on_top_of_a_bart_and_tells_labels(train, pretrained, files, tmp_path, heed):
    first = pretrained["bart"]
    pair = ["--source", files / "text", "--target", files / "labels", "--from", first]
    settings = [*PLAIN, "task.name=classification", "training.steps=120", "training.rate=0.01", "training.warmup=5",
                "training.valid_every=40", "model.dropout=0.0", "training.batch_tokens=1000"]  # fmt: skip
    assert train(tmp_path / "run", *pair, settings=settings) == (0, "")
    valid = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[-1])
    assert valid["accuracy"] > 95
    code, out, _ = heed("classify", tmp_path / "run", "--scores", "The house sees a dog. It likes the sea!")
    chance, label = out.strip().split("\t")
    assert (code, label) == (0, "dry")
    assert 0.5 < float(chance) <= 1
    inputs = ["--input", files / "text", "--reference", files / "labels"]
    code, out, err = heed("classify", tmp_path / "run", *inputs)
    assert code == 0
    assert set(out.split()) == {"dry", "wet"}
    assert float(err.split()[1]) > 95
    code, _, err = heed("translate", tmp_path / "run", "The dog.")
    assert (code, "is a classifier: it cannot translate; use heed classify" in err) == (1, True)
    for given in ([], ["--text", files / "text"]):
        code, _, err = heed("score", tmp_path / "run", *given)
        assert (code, "is a classifier: it cannot score; use heed classify" in err) == (1, True)
    tested = ["--source", files / "text", "--reference", files / "labels", "--samples", 5]
    code, _, err = heed("evaluate", tmp_path / "run", *tested, "--json", tmp_path / "scores.json")
    seen = json.loads((tmp_path / "scores.json").read_text("utf-8"))["trained_on"][str(tmp_path / "run")]
    assert code == 0 and 0 < seen["texts"] <= seen["total"]
    assert f"was trained on {seen['texts']:,} of the {seen['total']:,} test texts" in err


def test_an_article_is_summarized_whole_and_what_is_not_read_is_said(pretrained, files, tmp_path, heed):
    first = pretrained["pegasus"]
    (tmp_path / "one.txt").write_text("The dog sees a sea.\nIt likes the house!\n")
    (tmp_path / "long.txt").write_text("The dog sees a sea. " * 40)
    code, out, err = heed("summarize", first, tmp_path / "one.txt", tmp_path / "long.txt")
    assert (code, len(out.splitlines())) == (0, 2)
    assert "article 2: its last" in err and "article 1" not in err
    code, _, err = heed("summarize", first, tmp_path / "long.txt", "--too-long", "refuse")
    assert (code, "text 1 has" in err) == (1, True)
    code, out, _ = heed("summarize", first, "--lines", files / "text")
    assert (code, len(out.splitlines())) == (0, len((files / "text").read_text().splitlines()))
    (tmp_path / "empty.txt").write_text("\n")
    assert "empty.txt contains no text to summarize" in heed("summarize", first, tmp_path / "empty.txt")[2]


@pytest.mark.parametrize(
    ("words", "settings", "said"),
    [
        (["--target", "said"], ["task.name=denoising", "model.name=bart"],
         "data.target is set, but denoising needs only plain text: set data.source"),
        ([], [], "data.target is missing: translation needs pairs; give their other side with --target"),
        ([], ["task.name=denoising"],
         "task.name is 'denoising', which transformer cannot learn: set model.name to bart or pegasus or mbart"),
        (["--target", "labels"], ["task.name=classification"],
         "task.name is 'classification', which transformer cannot learn: set model.name to bart or gpt or gpt2 or ctrl or "
         "bert or albert or roberta or electra or bigbird"),
        ([], ["task.name=denoising", "model.name=bart", "subwords.sampling=0.1"],
         "subwords.sampling is 0.1, but it only works for translation with Heed's own vocabulary: set it to 0"),
        ([], ["task.name=denoising", "model.name=bart", "task.infill=1.5"], "task.infill is 1.5; it must be from 0 to 1"),
        ([], ["task.name=denoising", "model.name=bart", "model.norm=pre"], "model.norm: bart has no such setting; there are dim, heads, hidden, encoder_layers, decoder_layers, max_length, "
         "activation, scaled, dropout, attention_dropout, hidden_dropout, init_std, classifier_dropout"),
        ([], ["task.name=denoising", "model.name=bart", "task.r_drop=5.0"],
         "task.r_drop: denoising has no such setting; translation has"),
        ([], ["task.name=denoising", "model.name=bart", "task.teacher=runs/en-de"],
         "task.teacher: denoising has no such setting; translation has"),
        (["--target", "said"], ["training.teacher=runs/en-de"], "training.teacher has moved: set task.teacher instead"),
        (["--target", "said"], ["model.fresh=true"], "model.fresh needs model.folder: it reinitializes that model's weights"),
        ([], ["task.name=gap-sentences", "model.name=bart"],
         "task.name is 'gap-sentences', which bart cannot learn: set model.name to pegasus"),
        (["--target", "said"], ["model.name=marian", "subwords.source_model=a.spm"],
         "subwords.source_model is 'a.spm', but the vocabulary is of marian's own kind: leave it out"),
        ([], ["task.name=dreaming"],
         "task.name: 'dreaming' is none of 'translation', 'denoising', 'gap-sentences', 'classification', 'regression', 'multiple-choice', 'tagging', 'question-answering', 'language', 'masked', 'replaced-tokens', 'embedding', 'recommendation', 'image-classification', 'speech-recognition', 'image-generation', 'speech-synthesis'"),
        (["--target", "said"], ["training.metric=accuracy"], "training.metric is 'accuracy'; translation has bleu, chrf, rouge, loss"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_said(train, files, tmp_path, words, settings, said):
    words = [word if word.startswith("--") else files / word for word in words]
    code, err = train(tmp_path / "run", "--source", files / "text", *words, settings=[*TINY, *settings])
    assert (code, err) == (1, f"heed: {said}")


def test_a_model_that_is_there_keeps_its_shape(train, pretrained, files, tmp_path):
    first = pretrained["bart"]
    pair = ["--source", files / "text", "--target", files / "said", "--from", first]
    code, err = train(tmp_path / "run", *pair, settings=[*PLAIN, "model.dim=32"])
    assert (code, err) == (
        1,
        f"heed: model.dim is 32, but {first} has 16: the architecture of a trained model cannot change",
    )
    assert train(tmp_path / "run", *pair, settings=[*PLAIN, "model.dim=16", "model.dropout=0.0"]) == (0, "")


def test_labels_that_a_classifier_does_not_have_are_said(train, pretrained, files, tmp_path):
    first = pretrained["bart"]
    (tmp_path / "one").write_text("wet\n" * 192)
    settings = [*PLAIN, "task.name=classification"]
    pair = ["--source", files / "text", "--target", tmp_path / "one", "--from", first]
    code, err = train(tmp_path / "run", *pair, settings=settings)
    assert (code, err) == (1, "heed: data.target has only wet: a classifier needs at least two labels")


@pytest.fixture
def tuned(train, pretrained, files, tmp_path):
    """A BART that has learned to say something of texts, all of one length at most."""
    pair = ["--source", files / "text", "--target", files / "said", "--from", pretrained["bart"]]
    assert train(tmp_path / "tuned", *pair, settings=[*PLAIN, "data.source_language=en"]) == (0, "")
    return tmp_path / "tuned"


def test_a_model_reads_the_longest_text_it_was_trained_on(tuned, files, heed):
    text = max((files / "text").read_text().splitlines(), key=len)
    code, _, err = heed("translate", tuned, "--too-long", "refuse", text)
    assert (code, err) == (0, "")


def test_a_run_goes_on_without_the_model_it_started_from(train, pretrained, files, tmp_path):
    shutil.copytree(pretrained["bart"], tmp_path / "base")
    pair = ["--source", files / "text", "--target", files / "said", "--from", tmp_path / "base"]
    assert train(tmp_path / "whole", *pair) == (0, "")
    assert train(tmp_path / "part", *pair, settings=[*PLAIN, "training.steps=2"]) == (0, "")
    shutil.rmtree(tmp_path / "base")
    code, err = train(tmp_path / "part", "--resume", settings=["training.steps=4"])
    assert (code, err) == (0, "")
    assert same(weights(tmp_path / "part"), weights(tmp_path / "whole"))


def test_what_a_model_brings_along_is_kept_unless_the_recipe_says_otherwise(train, tuned, files, tmp_path):
    path = tuned / "model" / "config.json"
    facts = json.loads(path.read_text())
    facts |= {"languages": {"source": "en", "target": "eo"}, "origin": {"name": "owner/model", "revision": "ab12"}}
    facts["decoding"] |= {"beam": 3, "penalty": "length", "no_repeat": 2}
    del facts["sha256"]  # as somebody must who changes the file
    path.write_text(json.dumps(facts))
    pair = ["--source", files / "text", "--target", files / "said", "--from", tuned]
    assert train(tmp_path / "next", *pair, settings=[*PLAIN, "decoding.no_repeat=4"]) == (0, "")
    after = json.loads((tmp_path / "next" / "model" / "config.json").read_text())
    assert (after["languages"], after["origin"]) == (facts["languages"], facts["origin"])
    assert [after["decoding"][name] for name in ("beam", "penalty", "no_repeat")] == [3, "length", 4]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["model.name=pegasus"], "model.name is 'pegasus', but the model comes from {}: leave it out"),
        (["subwords.size=99"], "subwords.size is 99, but the vocabulary is that of {}: leave it out"),
        (["subwords.sampling=0.1"],
         "subwords.sampling is 0.1, but it only works with Heed's own vocabulary, and {} has another: set it to 0"),
    ],
)  # fmt: skip
def test_settings_that_a_model_has_already_are_refused(train, pretrained, files, tmp_path, settings, said):
    pair = ["--source", files / "text", "--target", files / "said", "--from", pretrained["bart"]]
    code, err = train(tmp_path / "run", *pair, settings=[*PLAIN, *settings])
    assert (code, err) == (1, f"heed: {said.format(pretrained['bart'])}")
    assert not (tmp_path / "run").exists()


def test_a_model_that_cannot_learn_a_task_is_said_before_anything_is_prepared(train, pretrained, files, tmp_path):
    words = ["--source", files / "text", "--from", pretrained["bart"]]
    code, err = train(tmp_path / "run", *words, settings=[*PLAIN, "task.name=gap-sentences"])
    assert (code, "no token for a removed sentence, which gap-sentences needs: start from a Pegasus" in err) == (
        1,
        True,
    )
    words = ["--source", files / "text", "--target", files / "labels", "--from", pretrained["pegasus"]]
    code, err = train(tmp_path / "run", *words, settings=[*PLAIN, "task.name=classification"])
    assert (
        code,
        "is a summarizer: it cannot learn classification; set task.name to 'gap-sentences', or start from another model "
        "(bart, gpt, gpt2, ctrl, bert, albert, roberta, electra, bigbird)" in err,
    ) == (1, True)
    assert not (tmp_path / "run").exists()


def test_texts_of_one_sentence_have_no_gaps_and_that_is_said(train, files, tmp_path):
    (tmp_path / "ones").write_text("".join(f"A {a} sees {b}.\n" for a in WORDS for b in WORDS))
    settings = [*TINY, "task.name=gap-sentences", "model.name=pegasus"]
    code, err = train(tmp_path / "run", "--source", tmp_path / "ones", settings=settings)
    assert (code, "no text has two sentences: put each article on one line" in err) == (1, True)


def test_a_validation_set_that_no_model_could_read_is_refused(train, pretrained, files, tmp_path):
    (tmp_path / "long").write_text("The dog sees a sea. " * 400 + "\n")
    words = ["--source", files / "text", "--valid-source", tmp_path / "long", "--from", pretrained["bart"]]
    code, err = train(tmp_path / "run", *words, settings=[*PLAIN, "task.name=denoising"])
    assert (code, "all 1 validation texts are longer than the model's" in err) == (1, True)


def test_labels_are_the_same_however_they_are_written(train, pretrained, files, tmp_path):
    labels = (files / "labels").read_text().splitlines()
    odd = [
        unicodedata.normalize("NFD" if i % 2 else "NFC", "젖음") + "  a" if x == "wet" else " dry"
        for i, x in enumerate(labels)
    ]
    (tmp_path / "labels").write_text("".join(f"{x}\n" for x in odd), "utf-8")
    words = ["--source", files / "text", "--target", tmp_path / "labels", "--from", pretrained["bart"]]
    assert train(tmp_path / "run", *words, settings=[*PLAIN, "task.name=classification"]) == (0, "")
    assert json.loads((tmp_path / "run" / "model" / "config.json").read_text())["processors"]["labels"]["names"] == [
        "dry",
        "젖음 a",
    ]


def test_a_label_of_the_validation_set_that_is_none_is_named_with_its_place(train, pretrained, files, tmp_path):
    (tmp_path / "v.text").write_text("The dog.\nThe sea.\n")
    (tmp_path / "v.labels").write_text("wet\ndamp\n")
    words = ["--source", files / "text", "--target", files / "labels", "--from", pretrained["bart"],
             "--valid-source", tmp_path / "v.text", "--valid-target", tmp_path / "v.labels"]  # fmt: skip
    code, err = train(tmp_path / "run", *words, settings=[*PLAIN, "task.name=classification"])
    assert (code, err) == (
        1,
        "heed: validation, v.text:2: 'damp' is not a label of this model; its labels are dry, wet",
    )


def test_a_vocabulary_does_not_depend_on_what_was_learned_before(train, files, tmp_path, monkeypatch):
    """Of classification it is learned from the texts alone, of translation from both sides."""
    settings = [*TINY, "model.name=bart", "filters.max_ratio=0", "filters.overlap=false"]  # labels are in every set
    words = ["--source", files / "text", "--target", files / "labels"]
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "shared"))
    assert train(tmp_path / "translator", *words, settings=settings) == (0, "")
    assert train(tmp_path / "second", *words, settings=[*settings, "task.name=classification"]) == (0, "")
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "own"))
    assert train(tmp_path / "first", *words, settings=[*settings, "task.name=classification"]) == (0, "")
    one, other = ((tmp_path / run / "model" / "vocab.json").read_text() for run in ("first", "second"))
    assert one == other
