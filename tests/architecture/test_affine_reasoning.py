"""Backends query `analysis.affine` instead of searching ops for sums and products.

A lowering table may test for such ops, since it emits code for them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.gates import ROOT

BACKENDS = ROOT / "src" / "tilewright" / "backends"
ARITHMETIC = frozenset({"AddOp", "SubOp", "MulOp"})
LOWERING_TABLES = {
    "cpu/lower/affine_lanes.py": "evaluates sums and products on lanes",
    "nvidia/lower/mma_reductions.py": "matches the op by which a reduction combines elements",
    "nvidia/lower/per_register_ops.py": "lowers both halves of a product by one instruction",
}


def walks(source: str) -> Iterator[int]:
    """Lines that test whether an op is a sum or a product."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, tested]):
                asked = tested
            case ast.MatchClass(cls=tested):
                asked = tested
            case ast.Compare(ops=[ast.Is() | ast.Eq()], comparators=[ast.Name() as tested]):
                asked = tested
            case _:
                continue
        if any(isinstance(n, ast.Name) and n.id in ARITHMETIC for n in ast.walk(asked)):
            yield node.lineno if not isinstance(node, ast.MatchClass) else node.cls.lineno


def test_backends_do_not_walk_over_sums_and_products() -> None:
    found = [
        f"{name}:{line}"
        for path in sorted(BACKENDS.rglob("*.py"))
        for name in [path.relative_to(BACKENDS).as_posix()]
        if name not in LOWERING_TABLES
        for line in walks(path.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize("name", LOWERING_TABLES)
def test_each_exception_is_needed(name: str) -> None:
    assert list(walks((BACKENDS / name).read_text("utf-8")))


@pytest.mark.parametrize(
    "planted",
    [
        "linear = isinstance(op, (*_MOVES, AddOp, SubOp))",
        "step = op.rhs if isinstance(op, AddOp | OffsetOp) else None",
        "is_product = type(op) is MulOp",
        "match op:\n    case AddOp():\n        pass",
    ],
)
def test_a_planted_walk_is_found(planted: str) -> None:
    assert list(walks(planted))
