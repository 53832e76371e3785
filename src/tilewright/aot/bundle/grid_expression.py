"""Python expressions of a grid as C.

    (cdiv(n, BLOCK), heads)   →   tw_cdiv(n, 1024), (int64_t)heads

Integers, parentheses, + - * // %, unary -, cdiv, min, max, the kernel's integer arguments and
compile-time integers. The C functions (grid_arithmetic.h) compute as Python does, in 64 bits.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tilewright.support import errors

_OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "tw_add",
    ast.Sub: "tw_subtract",
    ast.Mult: "tw_multiply",
    ast.FloorDiv: "tw_divide",
    ast.Mod: "tw_remainder",
}
_FUNCTIONS = {"cdiv": "tw_cdiv", "min": "tw_minimum", "max": "tw_maximum"}
_LONGEST = 1 << 62


def grid_in_c(
    text: str, kernel: str, arguments: Mapping[str, str], constants: Mapping[str, object]
) -> tuple[str, str, str]:
    """The three sizes of a grid as expressions of C.

    arguments: integers of the C function, by name in Python; constants: compile-time values.
    Errors: InvalidOption, with the part that has no meaning in C.
    """
    names = {name: f"(int64_t){there}" for name, there in arguments.items()}
    names |= {n: _literal(v) for n, v in constants.items() if _is_integer(v) and n not in names}
    translation = _Translation(kernel, names)
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as problem:
        raise translation.error(f"'{text}' ({problem.msg})") from None
    items = tree.elts if isinstance(tree, ast.Tuple | ast.List) else [tree]
    if not 1 <= len(items) <= 3:
        raise translation.error(f"{len(items)} sizes")
    sizes = [*map(translation.expression, items), "1", "1"]
    return sizes[0], sizes[1], sizes[2]


class _Translation:
    def __init__(self, kernel: str, names: Mapping[str, str]) -> None:
        self._kernel = kernel
        self._names = names

    def error(self, found: str) -> errors.InvalidOption:
        """The error for a part of a grid."""
        known = ", ".join((*self._names, *_FUNCTIONS))
        expected = f"integers, + - * // %, and the names {known}"
        return errors.InvalidOption(f"grid of {self._kernel}", expected, found)

    def expression(self, node: ast.expr) -> str:
        """An expression in C."""
        if isinstance(node, ast.Constant) and _is_integer(node.value):
            return _literal(node.value)
        if isinstance(node, ast.Name) and node.id in self._names:
            return self._names[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return f"tw_negate({self.expression(node.operand)})"
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = self.expression(node.left), self.expression(node.right)
            return f"{_OPERATORS[type(node.op)]}({left}, {right})"
        if isinstance(node, ast.Call):
            return self._call(node)
        raise self.error(f"'{ast.unparse(node)}'")

    def _call(self, node: ast.Call) -> str:
        name = ast.unparse(node.func).rpartition(".")[2]
        wrong = node.keywords or len(node.args) < 2 or (name == "cdiv" and len(node.args) > 2)
        if name not in _FUNCTIONS or wrong:
            raise self.error(f"'{ast.unparse(node)}'")
        first, *others = map(self.expression, node.args)
        for other in others:
            first = f"{_FUNCTIONS[name]}({first}, {other})"
        return first


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and abs(value) < _LONGEST


def _literal(value: object) -> str:
    assert isinstance(value, int)
    number = int(value)
    return str(number) if abs(number) < 1 << 31 else f"INT64_C({number})"
