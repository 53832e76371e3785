"""Types that an architecture has no instruction for: written with those it has, or refused."""

from __future__ import annotations

import pytest

from tests.unit.backends.nvidia.gpu_tiles import count_up, matmul, turned
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import JITFunction
from tilewright.backends import GPUTarget
from tilewright.compiler import ASTSource, CompiledKernel, compile
from tilewright.support import errors


def compiled(
    kernel: JITFunction, types: list[str], capability: int, **constants: int
) -> CompiledKernel:
    """A kernel whose run-time arguments have those types."""
    signature = dict(zip(kernel.arg_names, types, strict=False))
    source = ASTSource(kernel, signature, constants)
    return compile(source, target=GPUTarget("cuda", capability, 32))


@needs_ptxas
@pytest.mark.parametrize(
    ("capability", "instruction"), [(80, "global.cas.b16"), (90, "global.add.noftz.bf16")]
)
def test_atomic_addition_of_bfloat16(capability: int, instruction: str) -> None:
    kernel = compiled(count_up, ["*bf16"], capability, BLOCK=64)
    assert instruction in str(kernel.asm["ptx"])


@needs_ptxas
@pytest.mark.parametrize("type_", ["fp8e5", "fp8e4nv"])
def test_products_of_fp8_are_of_fp16_on_sm_80(type_: str) -> None:
    types = [f"*{type_}", f"*{type_}", "*fp32", "i32"]
    ptx = str(compiled(matmul, types, 80, N=64, STEP=64).asm["ptx"])
    assert "mma.sync" in ptx and "f32.f16.f16.f32" in ptx
    assert "e5m2" not in ptx and "e4m3" not in ptx


@pytest.mark.parametrize("capability", [80, 90])
def test_atomics_of_fp8_are_refused(capability: int) -> None:
    with pytest.raises(errors.CompilationError, match="cannot atomic_add on fp8e5") as caught:
        compiled(count_up, ["*fp8e5"], capability, BLOCK=64)
    assert "tl.atomic_add(out + i" in str(caught.value)


@pytest.mark.parametrize("capability", [50, 70, 72])
def test_architectures_that_are_too_old(capability: int) -> None:
    with pytest.raises(errors.UnknownTarget, match=f"cuda:{capability}': CUDA 13 makes no more"):
        compiled(count_up, ["*fp32"], capability, BLOCK=64)


LIMITS = [(80, 166912), (86, 101376), (90, 232448)]


@pytest.mark.parametrize(("capability", "limit"), LIMITS)
def test_shared_memory_of_an_architecture(capability: int, limit: int) -> None:
    """What takes how much of it is said, and where."""
    with pytest.raises(errors.OutOfResources) as caught:
        compiled(turned, ["*fp32", "*fp32"], capability, N=65536)
    assert caught.value.limit == limit < caught.value.required == 1 << 18
    line = turned.fn.__code__.co_firstlineno + 4
    assert caught.value.notes == (f"262144 bytes: 65536xf32 for tile.gather, line {line}",)
    assert "note: 262144 bytes" in str(caught.value)


@needs_ptxas
@pytest.mark.parametrize(("capability", "limit"), LIMITS)
def test_large_tiles_go_through_shared_memory_in_rounds(capability: int, limit: int) -> None:
    """256 x 256 x f32 are 256 KB."""
    types = ["*fp32", "*fp32", "*fp32", "i32"]
    found = compiled(matmul, types, capability, N=256, STEP=32)
    assert found.metadata.shared <= limit
