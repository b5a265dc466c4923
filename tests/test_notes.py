"""The companion to the lecture notes: whatever it names exists, its commands are commands, and both languages say the same."""

import ast
import re
import shlex
from pathlib import Path

import pytest
from bench import notes

from heed.cli.main import main
from heed.lab.experiments import errata
from tests.documented import check

ROOT = Path(__file__).parent.parent
PAGES = {name: (ROOT / "docs" / "learn" / name).read_text("utf-8") for name in ("notes.md", "notes.ko.md")}
STATEMENTS = notes.read()


def anchors(page: str) -> list[str]:
    return re.findall(r'<a id="([^"]+)"></a>', page)


def commands(page: str) -> list[str]:
    """Every command of a page, in its tables, sentences and blocks."""
    inline = re.findall(r"`((?:heed|make|python) [^`]+)`", page)
    blocks = re.findall(r"^((?:heed|make|python) .+?)(?:  #.*)?$", page, re.M)
    return [command.strip().replace("\\|", "|") for command in inline + blocks]


def code_blocks(page: str) -> list[tuple[str, str]]:
    """Each quotation of code, and the file that it is from."""
    return re.findall(r"\[`[^`]+`\]\(\.\./\.\./([^)]+)\)\n\n```python\n(.*?)\n```", page, re.S)


def places(page: str) -> list[tuple[str, str]]:
    """Each file of the source that a page links, with the name that follows it, or none."""
    return re.findall(r"\]\(\.\./\.\./([^)]+)\)(?: `([\w.]+)`)?", page)


COMMANDS = sorted({command for page in PAGES.values() for command in commands(page)} | {one.command for one in STATEMENTS if one.command})  # fmt: skip


def names(path: Path) -> set[str]:
    """What a file defines: functions, classes, constants, and methods and fields as Class.name."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        found |= _defined(node)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{name}" for inner in node.body for name in _defined(inner)}
    return found


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def test_every_statement_is_works_or_differs_and_said(capsys):
    assert len(STATEMENTS) == 165
    assert notes.main() == 0
    out, err = capsys.readouterr()
    assert out.startswith("165 statements of the lecture notes\n")
    assert [line.split()[1] for line in out.splitlines()[1:]] == ["works", "differs,"]
    assert err == ""


def test_an_open_statement_is_named_with_its_line(tmp_path, capsys):
    rows = ["section\tstatement\tstate\twhere\tcommand", "000\ta\tmissing\tfile\tmake notes", "000\tb\tworks\tfile\t"]
    (tmp_path / "some.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    assert notes.main(tmp_path / "some.tsv") == 1
    assert capsys.readouterr().err.splitlines() == [
        "some.tsv, line 2: 'a' is 'missing', which is neither 'works' nor 'differs, said'",
        "some.tsv, line 3: 'b' names no code, or no command",
    ]


def test_both_languages_have_every_statement_once_with_its_mark_and_command():
    marks = {"works": "", "differs, said": " ≠"}
    for page in PAGES.values():
        assert len(anchors(page)) == len(set(anchors(page)))
        for one in STATEMENTS:
            row = re.search(rf'^\| <a id="{one.anchor}"></a>{one.number}{marks[one.state]} \|.*$', page, re.M)
            assert row, one.anchor
            assert one.command.replace("|", "\\|") in row[0], one.anchor
            assert all(part.split()[0].removeprefix("docs/learn/") in row[0] for part in one.where.split("; ") if part)


def test_both_languages_have_the_same_anchors_commands_code_and_places():
    english, korean = PAGES.values()
    for found in (anchors, commands, code_blocks, places):
        assert found(english) == found(korean), found
    for numbers in (r"\*\*[^*]+\*\*(?=[^.])", r"#erratum-\d+"):
        assert len(re.findall(numbers, english)) == len(re.findall(numbers, korean))


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    page = PAGES[name]
    for target in re.findall(r"\]\(([^)]+)\)", page):
        file, _, anchor = target.partition("#")
        if file.startswith("https://"):
            continue
        assert (ROOT / "docs" / "learn" / file).exists(), target
        assert file or anchor in anchors(page), target


def test_every_place_is_in_the_source():
    listed = [part.partition(" ")[::2] for one in STATEMENTS for part in one.where.split("; ") if part]
    for file, name in {*places(PAGES["notes.md"]), *listed}:
        assert (ROOT / file).exists(), file
        assert not name or name in names(ROOT / file), f"{file} has no {name}"


def test_quoted_code_is_in_its_file():
    quoted = code_blocks(PAGES["notes.md"])
    assert len(quoted) > 12
    for file, code in quoted:
        lines = [line.strip() for line in (ROOT / file).read_text("utf-8").splitlines()]
        wanted = [line.strip() for line in code.splitlines()]
        assert any(lines[i : i + len(wanted)] == wanted for i in range(len(lines))), code


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_what_heed_and_make_understand(command):
    check(command, whole=len(command.split()) > 3)  # a shorter one names a verb, or a lab


# those that take a second or two, with small sizes; tests/cli/test_lab.py runs all labs
QUICK = {
    "heed lab errata --out lab": ["--dim", "16", "--heads", "2", "--tokens", "16"],
    'heed noise "투빅아, 나는 너를 많이 사랑해. 그래서 매일 편지를 써."': [],
}


@pytest.mark.parametrize("command", QUICK)
def test_quick_commands_run(command, tmp_path, monkeypatch, capsys):
    assert command in COMMANDS
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)
    assert main([*words[1:], *QUICK[command]]) == 0
    assert words[1] != "lab" or (tmp_path / "lab" / f"{words[2]}.png").exists()
    assert capsys.readouterr().out


def test_bold_numbers_of_the_errata_are_those_of_the_lab():
    values = [value for claim in errata.measure().claims for value in (claim.notes, claim.heed)]
    values += [0.01, 0.10]  # of the demo's attention (erratum 18), which is trained and not measured here
    bold = re.findall(r"\*\*([−\d][^*]*)\*\*", PAGES["notes.md"].partition("## Errata")[2])
    numbers = [text.replace("−", "-").replace(",", "") for text in bold if not re.match(r"\d+\. ", text)]
    assert len(numbers) > 40
    for text in numbers:
        mantissa, _, exponent = text.partition("e")
        half = 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])) * 1.01
        if 0 < abs(float(text)) < 1e-12:
            half = 1e-12  # rounding errors differ from machine to machine
        assert any(abs(value - float(text)) <= half for value in values), text
