"""The parts of a float and tables in registers: NumPy's rule and the instruction give the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.backends.cpu.elementwise import Array, compiled, interpreted, kernel, parsed
from tilewright.interp import numpy_dtype
from tilewright.ir import parse_function, print_function
from tilewright.ir.types import dtype_named
from tilewright.ir.verifier import report
from tilewright.llvm import host_cpu
from tilewright.transforms.expand import avx512_ops

inf, nan = float("inf"), float("nan")
OPS = (avx512_ops.ExponentOp, avx512_ops.SignificandOp, avx512_ops.ScaleOp)
NUMBERS = (
    0.0, -0.0, 1.0, 1.9999999, 2.0, -3.0, 10.0, 0.1, 1e-38, 1e-45, -1e-45, 3e38, inf, -inf, nan,
    5e-324,
)  # fmt: skip
BODIES = {
    op.opcode: f"%y = {op.opcode} {', '.join(f'%x{i}' for i in range(count))} : {{t}}TYPE>"
    for op, count in zip(OPS, (1, 1, 2), strict=True)
}
TABLES = {count: [float(3 * i) for i in range(count)] for count in (16, 32)}

on_avx512 = pytest.mark.skipif(not host_cpu().has_avx512, reason="another CPU")


def _operands(dtype: str, name: str, count: int) -> list[Array]:
    numbers = np.array(NUMBERS).astype(numpy_dtype(dtype_named(dtype)))
    if name != "arith.scale":
        return [np.resize(numbers, count)]
    steps = [0, 1, -1, 2.5, -2.5, 127, -149, 300, -300, 4000, -4000, 1e30, -1e30, inf, -inf, nan]
    finite = np.resize(numbers[np.isfinite(numbers) & (numbers != 0)], count)
    return [finite, np.repeat(np.array(steps, numbers.dtype), count // len(steps))]


@on_avx512
@pytest.mark.parametrize("block", [2, 8, 16, 64, 256])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", BODIES)
def test_the_instruction_is_the_numpy_rule(name: str, dtype: str, block: int) -> None:
    arrays = _operands(dtype, name, 256)
    text = kernel(BODIES[name].replace("TYPE", dtype), (dtype,) * len(arrays), dtype, block)
    with np.errstate(all="ignore"):
        expected = interpreted(parsed(text), dtype, *arrays, block=block)
    np.testing.assert_array_equal(compiled(text, dtype, block=block)(*arrays), expected)


@on_avx512
@pytest.mark.parametrize("block", [1, 4, 32])
@pytest.mark.parametrize("count", TABLES)
def test_a_table_is_read_modulo_its_length(count: int, block: int) -> None:
    body = f"%y = arith.lookup %x0 {{table = {TABLES[count]}}} : {{t}}f32>"
    text = kernel(body, ("i32",), "f32", block)
    index = np.arange(-64, 64, dtype=np.int32)
    expected = (3 * (index % count)).astype(np.float32)
    np.testing.assert_array_equal(interpreted(parsed(text), "f32", index, block=block), expected)
    np.testing.assert_array_equal(compiled(text, "f32", block=block)(index), expected)


def test_parts_of_a_number_multiply_to_it() -> None:
    """The definition, by the NumPy rules."""
    body = """%k = arith.exponent %x0 : {t}f32>
      %m = arith.significand %x0 : {t}f32>
      %y = arith.scale %m, %k : {t}f32>"""
    x = np.array([10.0, 0.3, 1e-40, 3e38, inf, 0.0, 1.0, 1e-45], np.float32)
    text = kernel(body, ("f32",), "f32", 8)
    np.testing.assert_array_equal(interpreted(parsed(text), "f32", x, block=8), x)


def test_the_text_form_is_read_back_and_a_table_of_another_length_is_refused() -> None:
    body = f"%y = arith.lookup %x0 {{table = {TABLES[16]}}} : {{t}}f32>"
    function = parsed(kernel(body, ("i32",), "f32"))
    text = print_function(function)
    assert print_function(parse_function(text)) == text
    assert report(function) is None
    message = report(parsed(kernel(body.replace("[0.0, ", "["), ("i32",), "f32")))
    assert message is not None and "16 or 32" in message
