"""Texts with ops that are instructions of some CPUs, for other targets: refused, not a crash."""

from __future__ import annotations

import pytest

from tilewright.backends import GPUTarget
from tilewright.compiler import IRSource, compile
from tilewright.support import errors

OPS = {
    "arith.scale": "arith.scale %x, %x : tile<64xf32>",
    "arith.exponent": "arith.exponent %x : tile<64xf32>",
    "arith.significand": "arith.significand %x : tile<64xf32>",
    "arith.lookup": f"arith.lookup %i {{table = [{', '.join(['0.5'] * 16)}]}} : tile<64xf32>",
    "arith.round_normal_to_bf16": "arith.round_normal_to_bf16 %x : tile<64xu16>",
}
LACKING = {
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_80": GPUTarget("cuda", 80, 32),
    "x86-64-v3": GPUTarget("cpu", "x86-64-v3", 1),
    "aarch64": GPUTarget("cpu", "aarch64", 1),
}


def text(op: str, element: str) -> str:
    return f"""func @k(%X: ptr<f32>, %Y: ptr<{element}>) {{
  %i = tile.range {{start = 0, end = 64}} : tile<64xi32>
  %bx = tile.splat %X {{shape = [64]}} : tile<64xptr<f32>>
  %xp = mem.offset %bx, %i : tile<64xptr<f32>>
  %x = mem.load %xp : tile<64xf32>
  %by = tile.splat %Y {{shape = [64]}} : tile<64xptr<{element}>>
  %yp = mem.offset %by, %i : tile<64xptr<{element}>>
  %r = {op}
  mem.store %yp, %r
  cf.return
}}
"""


def source(op: str) -> IRSource:
    return IRSource(text(OPS[op], "u16" if op.endswith("bf16") else "f32"), "ttir")


@pytest.mark.parametrize("target", LACKING)
@pytest.mark.parametrize("op", OPS)
def test_an_instruction_that_the_target_lacks(op: str, target: str) -> None:
    with pytest.raises(errors.TilewrightError, match=f"{op} is an instruction of AVX") as refused:
        compile(source(op), LACKING[target])
    assert not isinstance(refused.value, errors.InternalCompilerError)


@pytest.mark.parametrize("op", [op for op in OPS if not op.endswith("bf16")])
def test_an_instruction_that_the_target_has(op: str) -> None:
    kernel = compile(source(op), GPUTarget("cpu", "x86-64-v4", 1))
    assert "llvm.x86.avx512" in kernel.asm["llir"]
