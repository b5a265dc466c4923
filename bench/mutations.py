"""Small faults put into Python source: each is one change of one node of its syntax tree.

Faults that no test could or should notice are not drawn at all (`_is_left_out`). These are the rules, and there are no others:
docstrings, annotations, decorators, `if TYPE_CHECKING`, `if __name__`; what is logged or warned of, and the help texts of commands;
how a picture is drawn (line widths, font sizes); numbers that only decide how fast something is or how much memory it takes
(constants and keywords named after chunks, blocks, buffers, caches and time-outs); `raise NotImplementedError`; branches for
another platform and for CUDA. Whatever else changes nothing is listed by hand in equivalent.toml.
"""

import ast
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import NamedTuple

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.MatMult: ast.Add,
}  # fmt: skip
TOLD = ("log", "logging", "warnings")  # what a program tells, and not what it does
SPEED_CALLS = ("gc.collect", "gc.freeze", "os.nice", "torch.set_num_threads", "torch.cuda.empty_cache")
SPEED_NAMES = re.compile(r"(^|_)(CHUNK|BLOCK|BUFFER|BUFSIZE|CACHE|CACHED|TIMEOUT|BACKLOG)(_|$)")  # of constants
KEYWORDS = {
    "help", "description", "epilog", "metavar", "stacklevel",
    "timeout", "maxsize", "chunksize", "chunk_size", "buffering", "bufsize", "n_jobs", "non_blocking",
    "fontsize", "labelsize", "linewidth", "markersize", "zorder", "wspace", "hspace", "w_pad", "h_pad",
}  # fmt: skip
ELSEWHERE = re.compile(r"^(?!.*\bnot\b|.*!=).*cuda|os\.name != 'posix'|== 'nt'", re.IGNORECASE)  # tests of a branch


FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


class Mutant(NamedTuple):
    """One fault: where it is, the code there before and after, the whole source with it, and which lines run it."""

    line: int
    before: str
    after: str
    source: str
    reach: range | None  # a test must run one of these lines to notice; None if they run when the module is imported
    inside: tuple[str, ...]  # the functions and classes around it, from without
    function: str | None  # the outermost function whose code has it


def count(source: str) -> int:
    """How many single faults this tool can put into a source."""
    return len(_places(ast.parse(source)))


def described(source: str) -> list[tuple[int, str, str]]:
    """The line of each fault, and the code there before and after."""
    return [(node.lineno, _shown(node), _shown(change(deepcopy(node)))) for node, change in _places(ast.parse(source))]


def mutant(source: str, number: int) -> Mutant:
    """One of these faults; they are numbered in the order of their lines."""
    tree = ast.parse(source)
    node, change = _places(tree)[number]
    now = change(deepcopy(node))
    above = _above(tree, node)
    inside = tuple(one.name for one in reversed(above) if isinstance(one, FUNCTIONS | ast.ClassDef))
    place = _reach(above), inside, _function(above)
    return Mutant(node.lineno, _shown(node), _shown(now), _with(tree, node, now), *place)


def _above(tree: ast.Module, node: ast.AST) -> list[ast.AST]:
    """A node and all that it is in, from within."""
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    above = [node]
    while above[-1] in parents:
        above.append(parents[above[-1]])
    return above


def _function(above: list[ast.AST]) -> str | None:
    """The qualified name of the outermost function around a node; a default of its parameter is not in its code."""
    names = []
    for one, within in zip(reversed(above), above[-2::-1], strict=False):
        names += [one.name] if isinstance(one, FUNCTIONS | ast.ClassDef) else []
        if isinstance(one, FUNCTIONS):
            return None if isinstance(within, ast.arguments) else ".".join(names)
    return None


def _reach(above: list[ast.AST]) -> range | None:
    """The lines of the statement around a node; for a default of a parameter, those of the function."""
    functions = [one for one in above if isinstance(one, FUNCTIONS)]
    if not functions:
        return None
    statement = next(one for one in above if isinstance(one, ast.stmt))
    if statement is functions[0] or isinstance(statement, ast.Try | ast.ClassDef):
        return range(functions[0].body[0].lineno, functions[0].end_lineno + 1)
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if not body:
        return range(statement.lineno, statement.end_lineno + 1)
    first = body[0] if isinstance(body[0], ast.stmt) else body[0].pattern
    return range(statement.lineno, max(first.lineno, statement.lineno + 1))


def _places(tree: ast.Module) -> list[tuple[ast.AST, "Change"]]:
    found = [(node, change) for node in _mutable(tree) for change in _changes(node)]
    return sorted(found, key=lambda one: one[0].lineno)


def _with(tree: ast.Module, node: ast.AST, now: ast.AST) -> str:
    """The source with `now` in place of `node`."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, field, now)
            elif isinstance(value, list):
                setattr(parent, field, [now if one is node else one for one in value])
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _mutable(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes of code that runs and whose result matters."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if _is_left_out(node):
            continue
        elsewhere = isinstance(node, ast.If | ast.IfExp) and ELSEWHERE.search(ast.unparse(node.test))
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "type_params", "decorator_list", "format_spec"):
                continue
            if not (elsewhere and field == "body"):
                waiting += [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, ast.AST)]
        if hasattr(node, "lineno"):
            yield node


def _is_left_out(node: ast.AST) -> bool:
    match node:
        case ast.If(test=test):
            return any(name in ast.unparse(test) for name in ("TYPE_CHECKING", "__name__"))
        case ast.Expr(value=ast.Call(func=called)):
            return (name := ast.unparse(called)).split(".")[0] in TOLD or name in SPEED_CALLS
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name == "__all__" or (name.isupper() and SPEED_NAMES.search(name) is not None)
        case ast.keyword(arg=str(name)):
            return name in KEYWORDS
        case ast.Raise(exc=ast.AST() as raised):
            return "NotImplementedError" in ast.unparse(raised)
    return False


Change = Callable[[ast.AST], ast.AST]  # gets a copy of a node, which it may change


def _changes(node: ast.AST) -> list[Change]:  # noqa: C901 (a table of kinds)
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            return [_other_comparison]
        case ast.BinOp(op=op) if type(op) in ARITHMETIC and not _is_text(node):
            return [_other_arithmetic]
        case ast.AugAssign(op=op):
            return [_removed] + [_other_arithmetic] * (type(op) in ARITHMETIC and not _is_text(node.value))
        case ast.BoolOp():
            return [_other_boolean]
        case ast.UnaryOp(op=ast.Not()):
            return [lambda own: own.operand]
        case ast.If() | ast.IfExp():
            return [_negated]
        case ast.Constant(value=bool() | int() | float()):
            return [_other_constant]
        case ast.Return(value=ast.AST() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            return [_return_nothing]
        case ast.Expr(value=ast.Call()):
            return [_removed]
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Raise() | ast.Delete():
            return [_removed]
        case ast.Break() | ast.Continue():
            return [_other_jump]
    return []


def _other_comparison(own: ast.Compare) -> ast.AST:
    own.ops = [COMPARISONS[type(own.ops[0])]()]
    return own


def _other_arithmetic(own: ast.BinOp | ast.AugAssign) -> ast.AST:
    own.op = ARITHMETIC[type(own.op)]()
    return own


def _other_boolean(own: ast.BoolOp) -> ast.AST:
    own.op = ast.And() if isinstance(own.op, ast.Or) else ast.Or()
    return own


def _other_constant(own: ast.Constant) -> ast.AST:
    own.value = not own.value if isinstance(own.value, bool) else own.value + 1
    return own


def _negated(own: ast.If | ast.IfExp) -> ast.AST:
    own.test = ast.UnaryOp(ast.Not(), own.test)
    return own


def _return_nothing(own: ast.Return) -> ast.AST:
    own.value = ast.Constant(None)
    return own


def _removed(own: ast.AST) -> ast.AST:
    return ast.Pass()


def _other_jump(own: ast.Break | ast.Continue) -> ast.AST:
    return ast.Continue() if isinstance(own, ast.Break) else ast.Break()


def _is_text(node: ast.AST) -> bool:
    """Whether a text is in it: adding to texts is no arithmetic."""
    return any(
        isinstance(one, ast.JoinedStr) or (isinstance(one, ast.Constant) and isinstance(one.value, str | bytes))
        for one in ast.walk(node)
    )


def _shown(node: ast.AST) -> str:
    """The first line of its code."""
    first, *more = ast.unparse(ast.fix_missing_locations(node)).splitlines()
    return first + (" …" if more else "")
