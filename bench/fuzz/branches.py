"""Which branches of Heed's code an input takes: its modules are compiled with a mark at each branch.

Marks cost a few per cent, where sys.settrace would cost many times the reading itself.
"""

import ast
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader
from types import ModuleType

MOST = 1 << 14  # branches that fit the map
NAME = "__branches__"  # of the map in each module
LEFT_OUT = ("heed.kernels", "heed.lab", "heed.service.page")

reached = bytearray(MOST)  # 1: taken since `clear`
words: set[str] = set()  # short texts in the code that is marked: what its readers look for
_count = 0


def install() -> None:
    """Mark what is imported of Heed from now on."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def clear() -> None:
    reached[:] = bytes(MOST)


def as_number(marks: bytes | bytearray) -> int:
    """A map as one number, with which sets of branches are quickly compared."""
    return int.from_bytes(marks, "little")


def count(number: int) -> int:
    """How many branches a map has."""
    return number.bit_count()


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None):
        if not fullname.startswith("heed.") or fullname.startswith(LEFT_OUT):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str):
        """Compiled from the source each time: no compiled file is read or written."""
        path = self.get_filename(fullname)
        return compile(marked(self.get_data(path).decode("utf-8")), path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, NAME, reached)
        super().exec_module(module)


def marked(source: str) -> ast.Module:
    """The code with a mark at each branch."""
    return ast.fix_missing_locations(_Marker().visit(ast.parse(source)))


def _next() -> int:
    global _count
    _count += 1
    return _count % MOST


class _Marker(ast.NodeTransformer):
    """Marks functions, both ways of a condition, loops, handlers, cases and the later parts of `and`, `or` and comprehensions."""

    def visit(self, node: ast.AST) -> ast.AST:
        before = isinstance(node, ast.BoolOp | ast.IfExp | ast.comprehension)
        node = super().visit(node)
        for field in ("body", "orelse") if isinstance(node, ast.If | ast.For | ast.While) else ("body",):
            own = getattr(node, field, None)
            if isinstance(own, list) and not isinstance(node, ast.Module | ast.ClassDef):
                first = _after_docstring(node, own)
                setattr(node, field, [*own[:first], _statement(node), *own[first:]])
        if before and isinstance(node, ast.BoolOp):
            node.values = [node.values[0], *map(_expression, node.values[1:])]
        elif before and isinstance(node, ast.IfExp):
            node.body, node.orelse = _expression(node.body), _expression(node.orelse)
        elif before:
            node.ifs = [ast.BoolOp(ast.And(), [own, _true()]) for own in node.ifs]
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and 0 < len(node.value) <= 30:
            words.add(node.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node  # an f-string stays as it is

    def visit_MatchValue(self, node: ast.AST) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.value = node.value and self.visit(node.value)
        return node

    def visit_arguments(self, node: ast.AST) -> ast.AST:
        return node


def _after_docstring(node: ast.AST, body: list[ast.stmt]) -> int:
    has = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node, clean=False) is not None
    return int(has)


def _statement(node: ast.AST) -> ast.stmt:
    place = ast.Subscript(ast.Name(NAME, ast.Load()), ast.Constant(_next()), ast.Store())
    return ast.copy_location(ast.Assign([place], ast.Constant(1)), node)


def _mark() -> ast.Call:
    """Marks the branch and is None."""
    write = ast.Attribute(ast.Name(NAME, ast.Load()), "__setitem__", ast.Load())
    return ast.Call(write, [ast.Constant(_next()), ast.Constant(1)], [])


def _expression(node: ast.expr) -> ast.expr:
    """The same value, after its mark."""
    return ast.copy_location(ast.BoolOp(ast.Or(), [_mark(), node]), node)


def _true() -> ast.expr:
    return ast.Compare(_mark(), [ast.Is()], [ast.Constant(None)])
