"""`triton.compile` leaves cubins where launchers of others look for them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

import tilewright
import tilewright.language as tl
from tests.unit.triton_alias.alias_fixture import triton_alias
from tilewright.compiler import ASTSource

HOPPER = tilewright.GPUTarget("cuda", 90, 32)


@tilewright.jit
def scale(x, out, n, by, B: tl.constexpr, CHECK: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + i, i < n)
    if CHECK:
        tl.device_assert(value > 0, "negative")
    tl.store(out + i, value * by, i < n)


def compiled(by: str = "fp32", check: bool = False, target: Any = HOPPER, **options: Any) -> Any:
    types = {"x": "*fp32", "out": "*fp32", "n": "i32", "by": by, "B": "constexpr"}
    source = ASTSource(
        scale, {**types, "CHECK": "constexpr"}, {"B": 128, "CHECK": check}, {(0,): []}
    )
    with triton_alias() as triton:
        return triton.compile(
            source, target=target, options={"debug": True, "sanitize_overflow": False, **options}
        )


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_cubin_is_where_triton_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernels = [compiled(), compiled()]
    folder = base64.b32encode(bytes.fromhex(kernels[0].hash)).decode().rstrip("=")
    (cubin,) = files(tmp_path)
    assert cubin == tmp_path / folder / "scale.cubin"
    assert cubin.read_bytes() == kernels[1].asm["cubin"]
    assert list(kernels[0].src.signature.items())[2:5] == [
        ("n", "i32"), ("by", "fp32"), ("B", "constexpr")
    ]  # fmt: skip
    assert kernels[0].src.constants == {(4,): 128, (5,): False}


@pytest.mark.parametrize(
    "what",
    [{"by": "fp16"}, {"check": True}, {"num_ctas": 2}, {"launch_pdl": True}, {"target": None}],
)
def test_kernels_that_need_more_than_a_grid_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: dict[str, Any]
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    assert compiled(**what).name == "scale"
    assert files(tmp_path) == []


@pytest.mark.torch
def test_torch_s_launcher_takes_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launchers = pytest.importorskip("torch._inductor.runtime.static_triton_launcher")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernel = compiled()
    kernel._cubin_path = str(files(tmp_path)[0])
    with triton_alias() as triton:  # what it finds if torch is imported behind the alias
        monkeypatch.setattr(launchers, "triton_knobs", triton.knobs)
    static = launchers.StaticallyLaunchedCudaKernel(kernel)
    assert (static.name, static.arg_tys) == ("scale", "OOif")
    assert static.cubin_raw == kernel.asm["cubin"]
    assert (static.num_warps, static.shared) == (4, 0)
    assert not (static.has_global_scratch or static.has_profile_scratch)
