"""Products of bf16 and bytes by instructions that add up groups, and where the CPU lacks these, by
functions in LLVM IR that compute what they do."""

import re

import ml_dtypes
import numpy as np
import pytest

from tests.unit.backends.cpu.microkernel.grouped_products import KINDS, assert_product
from tests.unit.backends.cpu.textual import assert_as_interpreted
from tilewright.backends.cpu.microkernel import AVX512, DotSpec, packs_columns
from tilewright.backends.cpu.microkernel.blocked_loops import dot_declarations, dot_function
from tilewright.backends.cpu.passes.legalize import Legalize
from tilewright.interp import run_function
from tilewright.ir import parse_module
from tilewright.llvm import host_cpu

SHAPES = [(16, 16, 16), (128, 128, 64), (1, 16, 4), (17, 48, 20), (30, 80, 36), (5, 112, 128)]
FEATURES = {"bfloat": "bf16", "i8": "int8", "u8": "int8"}


def lanes(start: int, step: int, count: int = 16) -> str:
    return ", ".join(f"i32 {start + step * n}" for n in range(count))


def emulated(element: str) -> str:
    """What the instruction computes, in plain IR."""
    if element == "bfloat":
        parts, wide, narrow, count = 2, "float", "bfloat", 32
        extend, multiply, add = ("fpext", "fpext"), "fmul", "fadd"
    else:
        parts, wide, narrow, count = 4, "i32", "i8", 64
        extend, multiply, add = ("zext", "sext"), "mul", "add"
    sums, operand = f"<16 x {wide}>", f"<{count} x {narrow}>"
    lines = [f"define internal {sums} @emulated({sums} %s, {operand} %a, {operand} %b) {{"]
    total = "%s"
    for part in range(parts):
        for name, cast in zip("ab", extend, strict=True):
            mask = f"<16 x i32> <{lanes(part, parts)}>"
            lines.append(
                f"%{name}{part} = shufflevector {operand} %{name}, {operand} poison, {mask}"
            )
            source = f"<16 x {narrow}> %{name}{part}"
            lines.append(f"%w{name}{part} = {cast} {source} to {sums}")
        lines.append(f"%p{part} = {multiply} {sums} %wa{part}, %wb{part}")
        lines.append(f"%t{part} = {add} {sums} {total}, %p{part}")
        total = f"%t{part}"
    return "\n".join([*lines, f"ret {sums} {total}", "}"])


def module(spec: DotSpec, emulate: bool) -> str:
    arguments = "ptr %c, ptr %a, ptr %b"
    call = f"define void @run({arguments}) {{\n  call void @dot({arguments})\n  ret void\n}}\n"
    text = "\n".join([*dot_declarations(spec), dot_function("dot", spec), call])
    if emulate:
        text = re.sub(r"declare .*\n", emulated(spec.element) + "\n", text, count=1)
        text = re.sub(r"@llvm\.x86\.avx512[\w.]+", "@emulated", text)
    return text


each_way = pytest.mark.parametrize("emulate", [True, False], ids=["emulated", "native"])


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("element", KINDS)
@each_way
def test_products_at_every_shape(
    element: str, shape: tuple[int, int, int], emulate: bool, accumulate: bool
):
    if not emulate and FEATURES[element] not in host_cpu().dots:
        pytest.skip("the CPU has no such instruction")
    spec = DotSpec(*shape, element, AVX512, accumulate=accumulate)
    assert_product(spec, module(spec, emulate))


@pytest.mark.parametrize("shape", [(16, 16, 64), (33, 48, 128), (1, 112, 64)], ids=str)
@pytest.mark.parametrize("element", KINDS)
@each_way
def test_column_major_right_operands(element: str, shape: tuple[int, int, int], emulate: bool):
    if not emulate and FEATURES[element] not in host_cpu().dots:
        pytest.skip("the CPU has no such instruction")
    spec = DotSpec(*shape, element, AVX512, b_columns=True)
    assert packs_columns(spec)
    assert_product(spec, module(spec, emulate))


def product_kernel(left: str, right: str, summed: str, sizes: tuple[int, int, int]) -> str:
    m, n, k = sizes

    def pointers(name: str, rows: int, columns: int, kind: str) -> str:
        tile = f"tile<{rows}x{columns}x"
        shape = f"{{shape = [{rows}, {columns}]}}"
        return f"""
      %{name}r = tile.range {{start = 0, end = {rows}}} : tile<{rows}xi32>
      %{name}c = tile.range {{start = 0, end = {columns}}} : tile<{columns}xi32>
      %{name}r1 = tile.expand_dims %{name}r {{axis = 1}} : tile<{rows}x1xi32>
      %{name}c1 = tile.expand_dims %{name}c {{axis = 0}} : tile<1x{columns}xi32>
      %{name}rb = tile.broadcast %{name}r1 {shape} : {tile}i32>
      %{name}cb = tile.broadcast %{name}c1 {shape} : {tile}i32>
      %{name}w = arith.constant {{value = {columns}}} : {tile}i32>
      %{name}o = arith.mul %{name}rb, %{name}w : {tile}i32>
      %{name}at = arith.add %{name}o, %{name}cb : {tile}i32>
      %{name}s = tile.splat %{name.upper()} {shape} : {tile}ptr<{kind}>>
      %{name}p = mem.offset %{name}s, %{name}at : {tile}ptr<{kind}>>"""

    return f"""func @k(%A: ptr<{left}>, %B: ptr<{right}>, %C: ptr<{summed}>) {{
      {pointers("a", m, k, left)}
      {pointers("b", k, n, right)}
      {pointers("c", m, n, summed)}
      %a = mem.load %ap : tile<{m}x{k}x{left}>
      %b = mem.load %bp : tile<{k}x{n}x{right}>
      %acc = mem.load %cp : tile<{m}x{n}x{summed}>
      %d = tile.dot %a, %b, %acc : tile<{m}x{n}x{summed}>
      mem.store %cp, %d
      cf.return
    }}"""


@pytest.mark.parametrize("sizes", [(16, 16, 16), (32, 48, 64), (16, 24, 16), (16, 16, 6)], ids=str)
@pytest.mark.parametrize(("left", "right"), [("i8", "i8"), ("u8", "i8"), ("u8", "u8")])
def test_whole_products_of_bytes(left: str, right: str, sizes: tuple[int, int, int]):
    """Also those that no instruction fits, by kind or by size."""
    m, n, k = sizes
    random = np.random.default_rng(m * n * k)
    types = {"i8": np.int8, "u8": np.uint8}
    a = random.integers(0, 256, m * k).astype(np.uint8).view(types[left])
    b = random.integers(0, 256, k * n).astype(np.uint8).view(types[right])
    args = [a, b, np.full(m * n, -5, np.int32)]
    assert_as_interpreted(product_kernel(left, right, "i32", sizes), args)


def test_the_legal_form_means_what_the_product_meant():
    """The op on bits is executed too, by the rule of NumPy."""
    function = parse_module(product_kernel("bf16", "bf16", "f32", (16, 16, 32))).kernel
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(512).astype(ml_dtypes.bfloat16) for _ in range(2))
    expected, got = np.ones(256, np.float32), np.ones(256, np.float32)
    run_function(function, [a, b, expected], (1, 1, 1))
    Legalize(dots=("bf16",)).run(function)
    assert "cpu.dot_bf16" in [op.opcode for op in function.walk()]
    run_function(function, [a.view(np.uint16), b.view(np.uint16), got], (1, 1, 1))
    np.testing.assert_allclose(got, expected, rtol=1e-6)
