"""Each floor of the house imports only from itself and the floors below it."""

import ast
from pathlib import Path

import pytest
from bench.near_tests import import_statements

import heed

FLOORS = [
    {"nn"}, {"kernels"}, {"models"}, {"text"}, {"audio"}, {"vocabularies"}, {"data"}, {"convert"}, {"decoding"}, {"training"},
    {"evaluation", "lab"}, {"products"}, {"tasks"}, {"loading"}, {"bulk"}, {"runs"}, {"service"}, {"cli"},
]  # fmt: skip
GROUND = {
    "config",
    "files",
    "device",
    "version",
    "lazy",
}  # below all floors; heed/__init__.py itself may reach up, inside its functions
BASE = ("config.py", "files.py", "device.py", "version.py", "lazy.py")
SOURCE = Path(heed.__file__).parent


def imports(path: Path) -> set[str]:
    """What stands after `heed.` in every import of a file, inside functions too."""
    found = set()
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("heed.")}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}, line {node.lineno}: write imports in full, from heed"
            if node.module == "heed":
                found |= {alias.name for alias in node.names}
            elif node.module.startswith("heed."):
                found.add(node.module.split(".")[1])
    return found


def allowed(part: str) -> set[str]:
    """What a floor, or a file beside the floors, may import."""
    if part in BASE:
        return {"config"} - {part.removesuffix(".py")}
    if part == "__main__.py":
        return GROUND.union(*FLOORS)
    height = next(i for i, floor in enumerate(FLOORS) if part.removesuffix(".py") in floor)
    return GROUND.union({part}, *FLOORS[:height])


def files() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


def test_every_file_is_on_a_floor():
    parts = {path.relative_to(SOURCE).parts[0] for path in files()}
    assert parts - set().union(*FLOORS) <= {*BASE, "loading.py", "__main__.py"}


def test_no_import_goes_up_or_across():
    wrong = []
    for path in files():
        name = path.relative_to(SOURCE)
        wrong += [f"{name} imports heed.{part}" for part in sorted(imports(path) - allowed(name.parts[0]))]
    assert not wrong, "\n".join(wrong)


def test_evaluation_and_lab_are_one_floor():
    assert "lab" not in allowed("evaluation")
    assert "evaluation" not in allowed("lab")
    assert {"lab", "evaluation"} <= allowed("products")


def module(path: Path) -> str:
    """The dotted name of a file."""
    return ".".join(("heed", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


def imported_modules(path: Path, known: set[str]) -> set[str]:
    """The modules that a file imports anywhere, inside functions and for type checkers too."""
    found = set()
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in names}
    return (found & known) - {module(path)}


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Modules that import each other, directly or through others."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen, todo = set(), [start]
        while todo:
            todo += [one for one in graph[todo.pop()] if one not in seen and not seen.add(one)]
        reach[start] = seen
    return [{two for two in reach[one] if one in reach[two]} for one in graph if one in reach[one]]


def test_no_files_import_each_other_in_a_circle():
    paths = {module(path): path for path in SOURCE.rglob("*.py")}
    graph = {name: imported_modules(path, set(paths)) for name, path in paths.items()}
    assert not circles(graph)


def test_a_circle_is_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [{"b", "c"}, {"b", "c"}]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import heed.cli.main as main, os", {"cli"}),
        ("from heed import lab, config", {"lab", "config"}),
        ("def f():\n    if True:\n        from heed.runs.train import run", {"runs"}),
        ("match f(lambda x: x):\n    case 1:\n        import heed.lab", {"lab"}),
        (
            "try:\n    pass\nexcept E:\n    import heed.lab\nelse:\n    import heed.nn\nfinally:\n    import heed.bulk",
            {"lab", "nn", "bulk"},
        ),
        ("import torch\nfrom heedless.cli import x", set()),
    ],
)
def test_an_import_is_seen_wherever_it_stands(tmp_path, code, found):
    (tmp_path / "file.py").write_text(code)
    assert imports(tmp_path / "file.py") == found
