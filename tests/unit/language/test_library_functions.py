"""Library functions: a declaration, its operands, and the tile code that is run for a call."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.unit.frontend.contexts import BuildBench, EagerBench, data
from tilewright import language as tl
from tilewright.frontend.semantics import implementation_of
from tilewright.ir import types as ir
from tilewright.language import tensor
from tilewright.language.extra import libdevice
from tilewright.language.library_functions import (
    LIBRARY,
    Form,
    Operands,
    form,
    fp32_form,
    library_function,
)
from tilewright.support import errors


@pytest.fixture
def declared() -> Iterator[list[Any]]:
    """Stubs that a test declares, which are forgotten after it."""
    stubs: list[Any] = []
    yield stubs
    for stub in stubs:
        del tl.STUBS[stub], LIBRARY[stub]


def declare(declared: list[Any], operands: Any, body: Any, **options: Any) -> Any:
    stub: Any = library_function(operands, **options)(body)
    declared.append(stub)
    return stub


def seen_by(declared: list[Any], operands: Any, *elements: ir.DType) -> tuple[list[str], str]:
    """The dtypes that a body receives, and that of the result where the body returns fp64."""
    seen: list[str] = []

    def one(x: tensor) -> tensor:
        seen.append(str(x.dtype))
        return x.to(tl.float64)

    def two(x: tensor, y: tensor) -> tensor:
        seen.extend((str(x.dtype), str(y.dtype)))
        return x.to(tl.float64)

    bench = BuildBench()
    stub = declare(declared, operands, (one, two)[len(elements) - 1])
    found = bench.call(stub, *(bench.tile(element) for element in elements))
    return seen, str(found.dtype)


@pytest.mark.parametrize(
    ("operands", "elements", "received", "result"),
    [
        (Operands.FLOATS, [ir.f16], ["fp32"], "fp16"),
        (Operands.FLOATS, [ir.f64], ["fp64"], "fp64"),
        (Operands.FLOATS, [ir.f16, ir.f32], ["fp32", "fp32"], "fp32"),
        (Operands.FP64, [ir.bf16], ["fp64"], "bf16"),
        (Operands.FLOATS_UNROUNDED, [ir.f16], ["fp32"], "fp64"),
        (Operands.FP64_UNROUNDED, [ir.f16], ["fp64"], "fp64"),
        (Operands.COMMON_DTYPE, [ir.f16], ["fp16"], "fp64"),
        (Operands.FP64_AND_INTEGER, [ir.f32, ir.i64], ["fp64", "int32"], "fp32"),
        (Operands.INTEGER_AND_FP64, [ir.i64, ir.f32], ["int32", "fp64"], "fp32"),
        (Operands.INTEGERS, [ir.i16], ["int32"], "fp64"),
        (Operands.INTEGERS, [ir.i32, ir.i64], ["int64", "int64"], "fp64"),
        ((tl.float32, tl.int32), [ir.f64, ir.i16], ["fp32", "int32"], "fp64"),
    ],
)
def test_operands(
    declared: list[Any], operands: Any, elements: list[ir.DType], received: list[str], result: str
) -> None:
    assert seen_by(declared, operands, *elements) == (received, result)


def test_every_rule_for_operands_is_implemented(declared: list[Any]) -> None:
    def body(x: tensor, y: tensor) -> tensor:
        return tl.cast(x, tl.float64)

    bench = BuildBench()
    for operands in Operands:
        order = [ir.i32, ir.f64] if operands is Operands.INTEGER_AND_FP64 else [ir.f64, ir.i32]
        elements = [ir.i32, ir.i32] if operands is Operands.INTEGERS else order
        stub = declare(declared, operands, body)
        assert bench.call(stub, *map(bench.tile, elements)).dtype == tl.float64, operands


def test_the_form_of_fp32_is_for_narrow_results(declared: list[Any]) -> None:
    def wide(x: tensor) -> tensor:
        return x + 1.0

    stub = declare(declared, Operands.FLOATS, wide)

    @fp32_form(stub)
    def narrow(x: tensor) -> tensor:
        return x + 2.0

    assert LIBRARY[stub].forms == {Form.FP32: narrow}
    bench = EagerBench()
    found = {e: data(bench.call(stub, bench.tile(np.zeros(4), e))) for e in (ir.f16, ir.f64)}
    assert found[ir.f16].tolist() == [2.0] * 4
    assert found[ir.f64].tolist() == [1.0] * 4


def test_forms_of_powers(declared: list[Any]) -> None:
    def power(x: tensor, y: tensor) -> tensor:
        return x * 0.0 + 10.0

    stub = declare(declared, Operands.POWER, power)

    @form(stub, Form.LITERAL_EXPONENT)
    def product(x: tensor, n: int) -> tensor:
        assert type(n) is int
        return x * 0.0 + n

    @form(stub, Form.INTEGER_EXPONENT)
    def whole(x: tensor, n: tensor) -> tensor:
        return x * 0.0 - 1.0

    assert len(LIBRARY[stub].forms) == 2 and product is not whole
    bench = EagerBench()
    x, n = bench.tile(np.ones(4), ir.f32), bench.tile(np.full(4, 3), ir.i32)
    assert data(bench.call(stub, x, 3))[0] == 3
    assert data(bench.call(stub, x, 3.5))[0] == 10
    assert data(bench.call(stub, x, 1000))[0] == 10
    assert data(bench.call(stub, x, n))[0] == -1
    assert data(bench.call(stub, bench.tile(np.ones(4), ir.f64), n))[0] == 10


def test_a_body_chooses_by_types_in_python_and_takes_keywords(declared: list[Any]) -> None:
    def body(x: tensor, y: tensor) -> tensor:
        for factor in (2.0, 3.0):
            x = x * factor if x.dtype.is_fp64() else x
        return x - y

    stub = declare(declared, Operands.FLOATS, body)
    bench = EagerBench()
    x = bench.tile(np.ones(4), ir.f64)
    assert data(bench.call(stub, y=1.0, x=x)).tolist() == [5.0] * 4
    with pytest.raises(errors.UnknownArgument, match="z"):
        bench.call(stub, x, z=x)
    with pytest.raises(errors.ArgumentCount, match="2 arguments"):
        bench.call(stub, x, x, x)


def test_an_op_replaces_the_body(declared: list[Any]) -> None:
    def body(x: tensor) -> tensor: ...

    stub = declare(declared, Operands.FLOATS, body, op="trunc")
    bench = BuildBench()
    bench.call(stub, bench.tile(ir.f16))
    assert bench.opcodes == ["arith.cast", "arith.math", "arith.cast"]


def test_errors_name_the_function_that_was_called(declared: list[Any]) -> None:
    def versin(x: tensor) -> tensor:
        return 1.0 - tl.cos(x)

    stub = declare(declared, Operands.FLOATS, versin)
    bench = BuildBench()
    with pytest.raises(errors.InvalidOperation, match="cannot compute versin of int32"):
        bench.call(stub, bench.tile(ir.i32))


def test_every_function_of_libdevice_is_implemented_and_documented() -> None:
    for name in libdevice.__all__:
        stub = getattr(libdevice, name)
        assert implementation_of(stub) is not None, name
        assert len(stub.__doc__) > 8, name


def test_every_stub_is_found_by_its_name() -> None:
    """Cache keys and pickles name a function by its module and qualified name."""
    for name in libdevice.__all__:
        stub = getattr(libdevice, name)
        assert getattr(sys.modules[stub.__module__], stub.__qualname__) is stub, name


def test_modules_of_libdevice_are_imported_at_the_first_use() -> None:
    program = """
import sys
import tilewright.language as tl

library = "tilewright.language.extra.libdevice."
print([name for name in sys.modules if name.startswith(library)])
tl.extra.libdevice.popc
print([name.removeprefix(library) for name in sys.modules if name.startswith(library)])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["[]", "['integer_functions']"], done.stderr
