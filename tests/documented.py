"""The commands that pages show: which they are, whether they are commands, and what they need."""

import contextlib
import io
import re
import shlex
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path

from heed.cli.lab_settings import LABS
from heed.cli.main import VERBS, parse
from heed.cli.train import settings
from heed.runs import built_in, recipe

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = set(re.findall(r"^([\w-]+):", MAKEFILE, re.M))
DEMO = ("demo-data", "test.ko", "test.en", "test.align")  # what `make demo` leaves beside its model
WRITTEN = ("--out", "--json", "--sentences", "--rejected")  # options whose file need not be there
PATH = re.compile(r"[\w./@*-]+\.[a-zA-Z][\w.]+|(?:\w+/)+[\w.,/-]+|runs")
PROGRAMS = r"heed|make|python -m|torchrun"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
HUB = re.compile(
    r"^(?:[a-z]{2}-[a-z]{2}=)?(?:Helsinki-NLP|facebook|google|google-bert|sentence-transformers|openai-community)/|^(?:gpt2|ctrl)$"
)


def pages() -> list[Path]:
    """Every page that people read."""
    top = ("README.md", "README.ko.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
    return [*(ROOT / name for name in top), *sorted((ROOT / "docs").rglob("*.md"))]


def without_code(page: str) -> str:
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", page))


def commands(page: str) -> list[str]:
    """Every command of a page's blocks; those with an ellipsis are not meant to be pasted."""
    blocks = [body for language, body in FENCE.findall(page) if language in ("", "sh")]
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    found = [re.sub(r"\s+#.*$", "", line).strip() for line in lines]
    return _only_commands(part.strip() for line in found for part in re.split(r" && |; (?=heed |make )", line))


def mentions(page: str) -> list[str]:
    """Every command, or beginning of one, within the sentences and tables of a page."""
    return _only_commands(found.replace("\\|", "|") for found in re.findall(r"`([^`\n]+)`", FENCE.sub("", page)))


def _only_commands(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if re.match(rf"(?:{PROGRAMS})(?: |$)", line) and "…" not in line]


def words_of(command: str) -> list[str]:
    """The words of a command, without what the shell does with its input and output."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="<>|&")
    lexer.whitespace_split = True
    words = list(lexer)
    ends = [i for i, word in enumerate(words) if word and set(word) <= set("<>|&")]
    return words[: ends[0]] if ends else words


@cache  # a page and its translation have the same ones
def check(command: str, whole: bool = True) -> None:
    """Fail if the command is none: an unknown verb, option, setting, recipe, target or module.

    One that is not `whole` names a verb and some of its options; the rest may be left out.
    """
    words = words_of(command)
    if words[0] == "torchrun":
        words = ["heed", *words[words.index("heed") + 1 :]] if "heed" in words else ["heed"]
    if words[:3] == ["python", "-m", "heed"]:
        words = words[2:]
    if words[0] == "make":
        _check_make(words[1:])
    elif words[0] == "python":
        _check_module(words[1:])
    elif len(words) > 1 and not words[1].isupper() and not words[1].startswith("--"):
        _check_heed(words[1:], whole)


def _check_make(words: list[str]) -> None:
    for word in words:
        name, _, value = word.partition("=")
        assert name in TARGETS if not value else re.search(rf"\$\({name}\)|^{name} ", MAKEFILE, re.M), word


def _check_module(words: list[str]) -> None:
    name = words[1]
    if name in ("pytest", "venv"):
        return
    places = [base / name.replace(".", "/") for base in (ROOT, ROOT / "src")]
    path = next((own for own in places if own.with_suffix(".py").is_file() or own.is_dir()), None)
    assert path is not None, name
    sources = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py"), *path.parent.glob("*.py")]
    known = " ".join(source.read_text("utf-8") for source in sources)
    for word in words[2:]:
        assert not word.startswith("--") or f'"{word}"' in known, f"{name} has no {word}"


def _check_heed(words: list[str], whole: bool) -> None:
    verb, *rest = words
    assert verb in VERBS, verb
    if verb == "lab" and rest and not rest[0].startswith("--"):
        assert rest[0] in (*LABS, "all"), rest[0]
    if not whole or "--help" in rest:
        known = help_of(verb, "train" if [verb, *rest[:1]] == ["vectors", "train"] else "")
        assert all(option in known for option in rest if option.startswith("--")), f"{verb} has not all of {rest}"
        return
    args = parse(verb, rest)
    if verb == "train" and not args.resume and not args.start and (args.recipe is None or built_in_recipe(args.recipe)):
        recipe.read(args.recipe and built_in_recipe(args.recipe), settings(args))  # every --set is a setting of it


@cache
def help_of(verb: str, second: str = "") -> str:
    """What `heed VERB --help` prints, or `heed VERB SECOND --help`."""
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        parse(verb, [second, "--help"] if second else ["--help"])
    return said.getvalue()


def built_in_recipe(name: str) -> Path | None:
    """The file of a recipe that comes with heed."""
    path = Path(name)
    ours = path.stem in built_in.names() and str(path.parent) in (".", "recipes") and path.suffix in ("", ".toml")
    return built_in.path(path.stem) if ours else None


@cache
def needs(command: str) -> str | None:
    """What a reader has to have before a command runs: a network, a GPU, files; none if it runs as pasted after `make demo`."""
    words = words_of(command)
    if any(HUB.match(word) for word in words):
        return "a network"
    if words[0] == "torchrun" or "cuda" in words:
        return "a GPU"
    read = [word for before, word in pairwise(words) if before not in WRITTEN and PATH.fullmatch(_value(word))]
    if words[0] == "make" or (words[:2] == ["python", "-m"] and words[2] in ("pytest", "venv")):
        return None
    given = any(not _is_there(_value(word)) for word in read) or command != " ".join(command.split("<")[0].split())
    return (
        "files" if given or any(word.isupper() and len(word) > 2 for word in words) or _unread_recipe(words) else None
    )


def _value(word: str) -> str:
    return word.partition("=")[2] or word


def _is_there(path: str) -> bool:
    first, *_, last = [*path.split("/"), path.split("/")[-1]]
    return (ROOT / path).exists() or (first == "runs" and last in ("runs", "demo", *DEMO))


def _unread_recipe(words: list[str]) -> bool:
    """Whether the command trains by a recipe whose corpus is not the phrasebook, or resumes a run."""
    if words[1] != "train":
        return "--resume" in words
    args = parse("train", words[2:])
    path = built_in_recipe(args.recipe or "")
    return not path or not getattr(recipe.read(path, settings(args)).data, "phrasebook", None)
