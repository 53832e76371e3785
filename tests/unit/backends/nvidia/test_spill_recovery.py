"""Kernels that would spill: compiled again without a pass, or by more warps."""

from typing import Any

import pytest

import tilewright
from tests.corpus.figures import source_of, source_with
from tests.corpus.users import FAMILIES
from tests.corpus.variants import Variant
from tests.kernels.test_large_tiles import one_tile_matmul
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends import GPUTarget
from tilewright.backends.nvidia.spill_recovery import EFFECTIVE, OMITTED, RECOMPILATION
from tilewright.compiler import CompiledKernel

_SKEW = "nvidia-skew-dependent-dots"
_PEEL = "nvidia-peel-mask-selects"
_VERSION = "nvidia-version-loop-body"


def user_kernel(family: str, label: str, capability: int = 90) -> CompiledKernel:
    case = next(case for case in FAMILIES[family] if case.label == label)
    variant = Variant(capability, label, case.kernel, case.types, case.words)
    return tilewright.compile(
        source_of(variant), GPUTarget("cuda", capability, 32), variant.options
    )


@needs_ptxas
@pytest.mark.parametrize("label", ["tl.exp, other where", "alibi", "bias", "two loops, indices",
                                   "dropout"])  # fmt: skip
def test_attention_spills_nothing(label: str) -> None:
    assert user_kernel("attention", label).metadata.spills == 0


@needs_ptxas
def test_the_second_compilation_omits_the_versions_of_the_body() -> None:
    kernel = user_kernel("attention", "alibi")
    assert list(getattr(kernel.metadata, OMITTED)) == [_PEEL, _VERSION]
    assert _SKEW in getattr(kernel.metadata, EFFECTIVE)
    assert "compiled again without" in str(kernel.explain())


@pytest.mark.parametrize(
    ("spills", "effective", "omitted"),
    [
        (16, [_SKEW, _PEEL, _VERSION], [_PEEL, _VERSION]),
        (16, [_SKEW, _PEEL], [_SKEW]),
        (16, [_PEEL], [_PEEL]),
        (16, [], None),
        (4, [_SKEW], None),
        (0, [_SKEW], None),
    ],
)
def test_the_pass_to_omit(spills: int, effective: list[str], omitted: list[str] | None) -> None:
    plan = RECOMPILATION.plan({"spills": spills, EFFECTIVE: effective})
    assert plan == (None if omitted is None else {OMITTED: omitted})


def compiled_matmul(m: int, n: int, capability: int, **options: Any) -> CompiledKernel:
    words = {"M": m, "N": n, "BK": 64, **options}
    source = source_with(one_tile_matmul, "*fp16 *fp16 *fp32 i32/16", words)
    return tilewright.compile(source, GPUTarget("cuda", capability, 32), options)


@needs_ptxas
@pytest.mark.parametrize("capability", [80, 90])
def test_accumulators_of_a_whole_thread_get_more_warps(capability: int) -> None:
    kernel = compiled_matmul(128, 256, capability, num_warps=4)
    assert kernel.metadata.spills == 0
    assert (kernel.metadata.num_warps, kernel.metadata.warps) == (4, 8)
    assert kernel.metadata.threads >= 256
    if capability == 90:
        assert "wgmma.mma_async" in str(kernel.asm["ptx"])
    assert "8 warps instead of num_warps=4" in str(kernel.explain())


@needs_ptxas
@pytest.mark.parametrize(
    ("n", "options"),
    [(128, {"num_warps": 4}), (256, {"num_warps": 8}), (256, {"num_warps": 4, "maxnreg": 255})],
    ids=["narrow", "enough", "maxnreg"],
)
def test_other_programs_keep_their_warps(n: int, options: dict[str, Any]) -> None:
    assert not hasattr(compiled_matmul(128, n, 80, **options).metadata, "warps")
