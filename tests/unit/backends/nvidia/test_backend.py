"""The manifest of the NVIDIA backend, on a machine without a GPU."""

import re
from pathlib import Path

import pytest

from tests.forking import assert_child_succeeds, needs_fork
from tests.unit.backends.nvidia.compiled import compiled
from tests.unit.backends.nvidia.fake_cuda import ILLEGAL_ADDRESS, FakeCuda
from tests.unit.backends.nvidia.gpu_tiles import add
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends import GPUTarget, StageContext
from tilewright.backends.nvidia import backend, stages
from tilewright.backends.nvidia.assemble import ptx_emission, ptxas
from tilewright.backends.nvidia.assemble.ptxas import Assembled, Report
from tilewright.backends.nvidia.backend import BACKEND
from tilewright.backends.nvidia.driver import device_target
from tilewright.compiler import compile
from tilewright.support import TilewrightWarning, errors, settings

TARGET = GPUTarget("cuda", 90, 32)
KERNEL = """
func @kernel(%out: ptr<f32>, %count: i32) {
  cf.return
}
"""


class FakeDriver:
    version = 13010


def test_the_key_of_machine_code_names_what_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(by_driver: bool) -> str:
        monkeypatch.setattr(device_target, "is_device_target", lambda target: by_driver)
        return BACKEND.version(TARGET)

    monkeypatch.setattr(backend, "driver", FakeDriver)
    assert "driver 13010" in version(True)
    monkeypatch.setattr(backend, "find_ptxas", lambda: "the path")
    monkeypatch.setattr(backend, "ptxas_version", lambda path: f"12.9.86 at {path}")
    assert "ptxas 12.9.86 at the path" in version(False)
    assert "sm_90" in version(False)

    def missing() -> None:
        raise errors.ToolMissing("ptxas", "nowhere")

    monkeypatch.setattr(backend, "find_ptxas", missing)
    assert "no ptxas" in version(False)


def test_text_that_may_end_the_process_goes_to_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def isolated(text: str, target: object, kernel: str, risks: list[str]) -> str:
        seen.append(risks)
        return "ptx"

    monkeypatch.setattr(ptx_emission, "emit_ptx_isolated", isolated)
    context = StageContext(TARGET, BACKEND.options(), {"name": "kernel"})
    stage = next(s for s in BACKEND.stages if s.extension == "ptx")
    text = "define void @kernel(i128 %x) {\n  %y = udiv i128 %x, 3\n  ret void\n}\n"
    assert stage.run(text, context) == "ptx"
    assert seen and seen[0]


@needs_ptxas
def test_metadata_names_the_parameters(tmp_path: Path) -> None:
    path = tmp_path / "kernel.tile"
    path.write_text(KERNEL)
    assert compile(path, TARGET).metadata.names == ("out", "count")


@needs_fork
@needs_ptxas
def test_a_target_that_is_named_needs_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the parent has started the driver of that very device, and after a fault."""
    cuda = FakeCuda((90,))
    api = cuda.driver()
    monkeypatch.setattr(device_target, "unavailable_reason", lambda: None)
    monkeypatch.setattr(device_target, "driver", lambda: api)

    def compiled_elsewhere() -> None:
        kernel = compiled(add, "*fp32 *fp32 *fp32 i32", BLOCK=128)
        assert kernel.asm["cubin"].startswith(b"\x7fELF") and "cuLinkCreate" not in cuda.calls

    assert device_target.is_device_target(TARGET)
    with settings().cache.scope(always_compile=True):
        assert_child_succeeds(compiled_elsewhere)
        cuda.fails["cuCtxGetCurrent"] = ILLEGAL_ADDRESS
        compiled_elsewhere()


@pytest.mark.parametrize("text", ["sm80", "sm_80", "80", "sm_80a"])
def test_a_setting_names_another_architecture(text: str) -> None:
    with settings().compilation.scope(override_arch=text):
        assert BACKEND.target() == GPUTarget("cuda", 80, 32)


def test_a_setting_that_names_none() -> None:
    with (
        settings().compilation.scope(override_arch="gfx942"),
        pytest.raises(errors.InvalidOption, match="an architecture such as sm90"),
    ):
        BACKEND.target()


class DriverThatLinks(FakeDriver):
    """Its compiler makes code for linking, in which no registers move (C7504)."""

    def compile_ptx(self, *args: object, **options: object) -> Assembled:
        return Assembled(b"linked", Report(128), "")

    def current_device(self) -> int:
        return 0


@pytest.mark.parametrize("text", ["", "setmaxnreg.inc.sync.aligned.u32 232;"])
@pytest.mark.parametrize("release", ["13.0.88", "12.8.93", "12.6.85", "11.8.89", None])
def test_code_comes_from_ptxas_where_there_is_one_for_the_gpu(
    monkeypatch: pytest.MonkeyPatch, text: str, release: str | None
) -> None:
    """The driver's compiler gives threads up to four times the registers."""

    def found() -> Path:
        if release is None:
            raise errors.ToolMissing("ptxas", "PATH")
        return Path("ptxas")

    made = Assembled(b"assembled", Report(168), "")
    monkeypatch.setattr(device_target, "is_device_target", lambda target: True)
    monkeypatch.setattr(stages, "driver", DriverThatLinks)
    monkeypatch.setattr(ptxas, "find_ptxas", found)
    monkeypatch.setattr(ptxas, "version", lambda path: release)
    monkeypatch.setattr(stages, "assemble", lambda *args, **options: made)
    context = StageContext(TARGET, BACKEND.options(), {"name": "kernel"})
    (stage,) = (s for s in BACKEND.stages if s.extension == "cubin")
    if release in ("13.0.88", "12.8.93"):
        assert stage.run(text, context) == b"assembled"
        return
    with pytest.warns(TilewrightWarning, match="ptxas was not found, or is older than the GPU"):
        assert stage.run(text, context) == b"linked"


@pytest.mark.parametrize(
    "registers, warps, text, limit",
    [
        (39, 16, "", 32),  # four programs of 512 threads instead of three
        (72, 8, "", 64),
        (80, 4, "", 64),  # eight of 128 instead of six
        (64, 8, "", None),  # a fifth program would take a quarter of the registers
        (40, 4, "", None),  # twelve programs have three quarters of all warps
        (39, 16, "wgmma.mma_async", None),
        (39, 16, ".maxnreg 40", None),
    ],
)
@pytest.mark.parametrize("spilled", [0, 8])
def test_a_limit_lets_more_programs_run(
    monkeypatch: pytest.MonkeyPatch,
    registers: int,
    warps: int,
    text: str,
    limit: int | None,
    spilled: int,
) -> None:
    """Where ptxas spills for it, its first result is kept."""
    limits: list[str] = []

    def assembled(ptx: str, *_: object, **options: object) -> Assembled:
        found = re.search(r"\.maxnreg (\d+)\n\{", ptx)
        if found is None:
            return Assembled(b"free", Report(registers), "")
        limits.append(found[1])
        return Assembled(b"limited", Report(int(found[1]), spill_stores=spilled), "")

    monkeypatch.setattr(device_target, "is_device_target", lambda target: False)
    monkeypatch.setattr(stages, "assemble", assembled)
    options = BACKEND.options(num_warps=warps)
    context = StageContext(TARGET, options, {"name": "kernel", "shared": 64})
    (stage,) = (s for s in BACKEND.stages if s.extension == "cubin")
    ptx = f".entry kernel()\n.reqntid {32 * warps}\n{{\n{text}\n}}\n"
    assert stage.run(ptx, context) == (b"free" if limit is None or spilled else b"limited")
    assert limits == ([] if limit is None else [str(limit)])
    assert context.metadata["spills"] == 0


def test_the_key_follows_the_assembler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A device's key is found without running it, in each process that launches from the cache."""
    program = tmp_path / "ptxas"
    monkeypatch.setattr(device_target, "is_device_target", lambda target: True)
    monkeypatch.setattr(backend, "driver", FakeDriver)
    with settings().cuda.scope(ptxas_path=program):
        keys = [BACKEND.version(TARGET)]
        for text in ("one", "another"):
            program.write_text(text)
            keys.append(BACKEND.version(TARGET))
    assert len(set(keys)) == 3 and "no ptxas" in keys[0]
