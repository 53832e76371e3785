"""What PyTorch's analysis is told of a kernel's memory accesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.triton_alias.alias_fixture import triton_alias
from tilewright.triton_alias.memory_accesses import Operation


@tilewright.jit
def mixed(x, n, out, count, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(out + i, i < n), i < n)
    tl.atomic_add(count, 1)


def walked() -> list[Operation]:
    types = {"x": "*fp32", "n": "i32", "out": "*fp32", "count": "*i32", "B": "constexpr"}
    with triton_alias() as triton:
        source = triton.compiler.ASTSource(mixed, types, {"B": 16})
        target = tilewright.GPUTarget("cpu", "", 32)
        backend = triton.compiler.compiler.make_backend(target)
        context = triton._C.libtriton.ir.context()
        triton._C.libtriton.ir.load_dialects(context)
        backend.load_dialects(context)
        functions, modules = backend.get_codegen_implementation({}), backend.get_module_map()
        module = source.make_ir(target, {}, functions, modules, context)
    assert module.verify()
    seen: list[Operation] = []
    module.walk(seen.append)
    return seen


def test_loads_and_stores_are_of_the_arguments_themselves() -> None:
    *inside, end, function = walked()
    found = [(op.get_name(), op.get_operand(0).id()) for op in inside]
    assert sorted(found) == [
        ("tt.load", 0), ("tt.load", 2), ("tt.load", 3), ("tt.store", 2), ("tt.store", 3)
    ]  # fmt: skip
    assert (end.get_name(), end.get_num_operands(), end.get_num_results()) == ("tt.return", 0, 0)
    assert (function.get_name(), function.get_str_attr("sym_name")) == ("tt.func", "mixed")
    block = end.get_block()
    assert block is not None
    assert block.get_num_arguments() == 4
    assert block.get_argument(3).id() == 3
    assert block.get_parent().id() == function.get_region(0).id()
    assert (function.get_num_regions(), function.get_block()) == (1, None)


@pytest.mark.parametrize(
    ("value", "name", "fact"),
    [
        (5, "i32", None), (32, "i32", "D"), (1 << 40, "i64", "D"), (1, "constexpr", 1),
        (2.5, "fp32", None), (True, "u1", None), (None, "constexpr", None),
        (np.zeros(64, "f"), "*fp32", "D"),
    ],
)  # fmt: skip
def test_arguments_have_triton_s_types_and_facts(value: Any, name: str, fact: object) -> None:
    with triton_alias() as triton:
        specialize = triton.runtime.jit.native_specialize_impl
        found = specialize(None, value, False, True, True)
        if isinstance(value, np.ndarray) and value.ctypes.data % 16:
            fact = None
        assert found == (name, fact)
        if name != "constexpr" or value is None:
            assert triton.runtime.jit.mangle_type(value) == name
