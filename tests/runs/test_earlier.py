"""recipe.toml of runs that earlier versions trained."""

import pytest

from heed.runs.earlier import upgraded
from heed.runs.recipe import parse, read

EARLIER = """\
[data]
source = ["a.en"]
target = ["a.de"]
tsv = []
columns = [1, 2]
valid_source = []
valid_target = []
valid_tsv = []
holdout = 1000
# phrasebook =
# source_language =
# target_language =
# licence =

[task]
name = "translation"
infill = 0.3
mask = 0.0
delete = 0.0
permute = 1.0
rotate = 0.0
choice = "principal"
gap_share = 0.3
word_share = 0.15
masked = 0.8
swapped = 0.1
bptt = 35

[filters]
max_length = 256
max_ratio = 9.0
same = true
duplicates = true
# rejected =

[subwords]
kind = "bpe"
joint = true
# size =
coverage = 0.9999
sampling = 0.0
lines = 500000
# source_model =
# target_model =
texts = []
cut = "spaces"
lower = false
least = 2

[vectors]
# source =
# target =
# text =
frozen = false
lowercase = false
# scale =

[model]
name = "transformer"
# folder =
fresh = false
preset = "auto"
dim = 64
# heads =
# hidden =
# encoder_layers =

[training]
steps = 10000
batch_tokens = 4096
accumulate = 1
schedule = "inverse-root"
rate = 0.001
warmup = 1000
beta1 = 0.9
beta2 = 0.98
epsilon = 1e-09
weight_decay = 0.0
clip = 1.0
label_smoothing = 0.2
r_drop = 3.0
teacher = []
taught = 0.5
precision = "auto"
# packed =
compile = false
seed = 1
# threads =
device = "auto"
parallel = "ddp"
log_every = 20
valid_every = 500
valid_beam = 1
valid_tokens = 8192
# checkpoint_every =
keep = 2
samples = 4
metric = "auto"
patience = 0
final = "best"
average = 5
ema = 0.0

[decoding]
beam = 5
nbest = 1
length_penalty = 0.6
penalty = "wu"
stopping = "exact"
min_length = 0
# max_length =
max_growth = 2.0
force_begin = true
force_end = false
no_repeat = 0
renormalize = false
sample = false
temperature = 1.0
top_k = 0
top_p = 1.0
seed = 1
"""

PAIRS = {"source": ["a.en"], "target": ["a.de"]}
TEXT = {"source": ["a.en"]}


@pytest.fixture
def saved(tmp_path):
    """A recipe.toml of an earlier version, with some lines changed, as this version reads it."""

    def saved(*changes):
        text = EARLIER
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "recipe.toml"
        path.write_text(text, "utf-8")
        return read(path, [], saved=True)

    return saved


SEARCH = {"valid_engine": "torch"}  # and with the search that its validations had
FILTERS = {"overlap": False, "swapped": False}  # a run is continued with the filters that it had


def test_settings_that_have_moved_are_found_where_they_are_now(saved):
    task = {"label_smoothing": 0.2, "r_drop": 3.0}
    assert saved() == parse({"data": PAIRS, "task": task, "filters": FILTERS, "model": {"dim": 64}, "training": SEARCH})


def test_a_student_keeps_its_teachers(saved):
    found = saved(
        ("r_drop = 3.0", "r_drop = 0.0"), ("teacher = []", 'teacher = ["a", "b"]'), ("0.5\nprec", "0.3\nprec")
    )
    task = {"label_smoothing": 0.2, "teacher": ["a", "b"], "distillation": 0.3}
    assert found == parse({"data": PAIRS, "task": task, "filters": FILTERS, "model": {"dim": 64}, "training": SEARCH})
    assert found.task.teachers == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "model", "settings"),
    [
        ("language", "rnn-lm", {"window": 20}),
        ("denoising", "bart", {"infill": 0.3, "mask": 0.0, "permute": 1.0}),
        ("gap-sentences", "pegasus", {"choice": "principal", "masked": 0.8}),
        ("classification", "bart", {}),
    ],
)
def test_of_all_the_settings_those_of_the_task_are_kept(saved, name, model, settings):
    one_text = [] if name == "classification" else [('target = ["a.de"]', "target = []")]
    found = saved(
        ('name = "translation"', f'name = "{name}"'), ('name = "transformer"', f'name = "{model}"'),
        ("bptt = 35", "bptt = 20"), *one_text,
    )  # fmt: skip
    data = TEXT if one_text else PAIRS
    task = {"name": name, "label_smoothing": 0.2, **settings}
    filters = {} if name == "language" else FILTERS
    assert found == parse(
        {"data": data, "task": task, "filters": filters, "model": {"name": model, "dim": 64}, "training": SEARCH}
    )


def test_what_this_version_writes_is_read_as_it_is(saved, tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(saved().to_toml(), "utf-8")
    assert read(path, [], saved=True) == read(path, []) == saved()
    sections = {"task": {"name": "language", "window": 5}, "training": {"steps": 3, "valid_engine": "auto"}}
    assert upgraded(sections) == sections


def test_changes_go_over_what_was_saved(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(EARLIER, "utf-8")
    assert read(path, [("task.r_drop", 1.0)], saved=True).task.settings.r_drop == 1.0
    with pytest.raises(ValueError, match=r"training\.r_drop has moved: set task\.r_drop instead"):
        read(path, [("training.r_drop", 1.0)], saved=True)
    with pytest.raises(ValueError, match=r"training\.label_smoothing has moved|task\.bptt has moved"):
        read(path, [])
