"""`triton.compile` leaves cubins where launchers of others look for them."""

from __future__ import annotations

import base64
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tilewright
import tilewright.language as tl
from tests.unit.triton_alias.alias_fixture import triton_alias
from tilewright.compiler import ASTSource
from tilewright.support import errors

DEVICE = SimpleNamespace(type="cuda")
HOPPER = tilewright.GPUTarget("cuda", 90, 32)


@tilewright.jit
def scale(x, out, n, by, B: tl.constexpr, CHECK: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + i, i < n)
    if CHECK:
        tl.device_assert(value > 0, "negative")
    tl.store(out + i, value * by, i < n)


def compiled(
    by: str = "fp32", check: bool = False, target: Any = HOPPER, name: str = "scale", **options: Any
) -> Any:
    types = {"x": "*fp32", "out": "*fp32", "n": "i32", "by": by, "B": "constexpr"}
    source = ASTSource(
        scale, {**types, "CHECK": "constexpr"}, {"B": 128, "CHECK": check}, {(0,): []}
    )
    source.name = name
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


def test_long_names_of_kernels_are_cut_in_names_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernel = compiled(name="scale" * 60)
    (cubin,) = files(tmp_path)
    assert (cubin.name, kernel.name) == ("scale" * 30 + ".cubin", "scale" * 60)


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


def test_launches_from_cpp_know_all_that_they_need() -> None:
    kernel = pickle.loads(pickle.dumps(compiled()))  # as a worker sends it
    schema = kernel.launch_metadata_schema
    assert dict(schema) == {"entry_name": "scale", "num_warps": 4, "shared_mem": 0}
    assert schema["num_warps"] == 4


@pytest.mark.parametrize(
    ("what", "needs"),
    [
        ({"by": "fp16"}, "numbers of 16 bits"),
        ({"check": True}, r"a host that reports its assertions \(inductor.assert_indirect_indexi"),
        ({"num_ctas": 2, "launch_pdl": True}, "a launch with a dependency, clusters"),
    ],
)
def test_kernels_that_need_more_are_refused_with_the_reason(
    what: dict[str, Any], needs: str
) -> None:
    kernel = pickle.loads(pickle.dumps(compiled(**what)))
    with pytest.raises(errors.NotInLibrary, match=f"by C\\+\\+ alone: 'scale' needs {needs}"):
        kernel.launch_metadata_schema["entry_name"]


@pytest.mark.torch
def test_aot_inductor_saves_the_kernel() -> None:
    heuristics = pytest.importorskip("torch._inductor.runtime.triton_heuristics")
    cache = pytest.importorskip("torch._inductor.codecache").CudaKernelParamCache
    kernel, meta = compiled(), {"kernel_name": "scale_0"}
    tuner = SimpleNamespace(inductor_meta=meta, triton_meta={}, device_props=DEVICE)
    launcher = SimpleNamespace(
        bin=kernel, config=tilewright.Config({"B": 128}), def_args=[], call_args=[],
        global_scratch=None, profile_scratch=None,
    )  # fmt: skip
    heuristics.CachingAutotuner.save_gpu_kernel(tuner, "stream", launcher)
    saved = cache.get("scale_0")
    assert (saved["mangled_name"], saved["num_warps"], saved["shared_mem"]) == ("scale", 4, 0)
    assert Path(saved["cubin_path"]).read_bytes() == kernel.asm["cubin"]


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
