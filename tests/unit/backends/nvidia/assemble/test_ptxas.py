"""Running ptxas: its report, its refusals, and where it is found."""

import stat
import sys
from pathlib import Path

import pytest

from tests.unit.backends.nvidia.ptx_probes import module
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends.nvidia.assemble import ptxas
from tilewright.backends.nvidia.assemble.ptxas import Report, assemble, parse_report
from tilewright.support import errors, settings

STORE = "  mov.u32 r0, 1;\n  st.shared.u32 [s], r0;\n  bar.sync 0;"

LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized
ptxas info    : Compiling entry function 'other' for 'sm_90a'
ptxas info    : Function properties for other
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
ptxas info    : Compiling entry function 'mine' for 'sm_90a'
ptxas info    : Function properties for mine
    48 bytes stack frame, 44 bytes spill stores, 40 bytes spill loads
ptxas info    : Used 168 registers, used 3 barriers, 4096 bytes smem, 48 bytes cumulative stack size
ptxas info    : Compile time = 4.980 ms
"""


def test_report_of_one_kernel_among_others() -> None:
    report = parse_report(LOG, "mine")
    assert report == Report(168, 48, 44, 40, 4096, 3, report.warnings)
    assert len(report.warnings) == 1 and "C7510" in report.warnings[0]
    assert parse_report(LOG, "other").registers == 8
    assert parse_report(LOG, "min").registers == 0


@needs_ptxas
def test_assemble() -> None:
    made = assemble(module(STORE, "sm_90a"), "sm_90a", "probe")
    assert made.cubin.startswith(b"\x7fELF")
    assert made.report.shared == 1024
    assert made.report.barriers == 1
    assert 0 < made.report.registers < 20
    assert "probe" in made.log


@needs_ptxas
def test_limit_of_registers_makes_spills() -> None:
    loads = "\n".join(f"  ld.volatile.global.f32 f{i}, [d0+{4 * i}];" for i in range(20))
    more = "\n".join(f"  ld.volatile.global.f64 g{i}, [d0+{8 * i}];" for i in range(20))
    stores = "\n".join(f"  st.volatile.global.f32 [d0+{4 * i}], f{i};" for i in range(20))
    last = "\n".join(f"  st.volatile.global.f64 [d0+{8 * i}], g{i};" for i in range(20))
    ptx = module(f"  ld.param.u64 d0, [a];\n{loads}\n{more}\n{stores}\n{last}", "sm_80")
    free = assemble(ptx, "sm_80", "probe").report
    tight = assemble(ptx, "sm_80", "probe", maxnreg=24).report
    assert (free.spill_stores, free.spill_loads) == (0, 0)
    assert tight.registers <= 24 < free.registers
    assert tight.spill_stores > 0 and tight.spill_loads > 0 and tight.stack > 0


@needs_ptxas
def test_refused_ptx_names_kernel_message_and_lines() -> None:
    ptx = module("  mov.u32 r0, 1;\n  wgmma.fence.sync.aligned;\n", "sm_80")
    with pytest.raises(errors.PTXASError) as caught:
        assemble(ptx, "sm_80", "probe")
    text = str(caught.value)
    line = next(i for i, t in enumerate(ptx.splitlines(), 1) if "wgmma" in t)
    assert "probe: Instruction 'wgmma.fence' not supported on .target 'sm_80'" in text
    assert f"PTX line {line}:" in text
    assert f"-> {line:5d} |   wgmma.fence.sync.aligned;" in text
    assert f"   {line - 1:5d} |   mov.u32 r0, 1;" in text


@needs_ptxas
def test_too_much_shared_memory_is_refused_without_a_line() -> None:
    ptx = module(".shared .b8 t[60000]; mov.u32 r0, t; st.shared.u32 [t], r0;", "sm_80")
    with pytest.raises(errors.PTXASError, match="too much shared data"):
        assemble(ptx, "sm_80", "probe")


def test_excerpt_at_the_ends_of_the_text() -> None:
    error = ptxas.explain_failure("ptxas k.ptx, line 1; error   : bad", "k", "first\nsecond")
    assert error.notes == ("PTX line 1:\n  ->     1 | first\n         2 | second",)
    error = ptxas.explain_failure("ptxas k.ptx, line 9; error   : bad", "k", "first\nsecond")
    assert error.notes == ()
    assert "k: bad" in str(error)


def test_failure_without_a_message_shows_all_that_was_said() -> None:
    assert "k: Killed" in str(ptxas.explain_failure("Killed\n", "k", ""))


# --- finding it -----------------------------------------------------------------------------------


def program(folder: Path, name: str, text: str = "#!/bin/sh\nexit 0\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_setting_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program(tmp_path / "path", "ptxas").parent))
    chosen = program(tmp_path / "chosen", "my-ptxas")
    monkeypatch.setenv("TILEWRIGHT_PTXAS_PATH", str(chosen))
    assert ptxas.find_ptxas() == chosen


def test_setting_that_names_no_file(tmp_path: Path) -> None:
    with settings().cuda.scope(ptxas_path=tmp_path / "none"):
        with pytest.raises(errors.ToolMissing, match=r"cuda\.ptxas_path"):
            ptxas.find_ptxas()


def test_path_comes_before_the_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_PTXAS_PATH", raising=False)
    program(tmp_path / "cuda" / "bin", "ptxas")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    monkeypatch.setenv("PATH", str(program(tmp_path / "path", "ptxas").parent))
    assert ptxas.find_ptxas() == tmp_path / "path" / "ptxas"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ptxas.find_ptxas() == tmp_path / "cuda" / "bin" / "ptxas"


def test_wheel_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "nvidia" / "cu13" / "bin", "only-in-the-wheel")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    found = ptxas._find("only-in-the-wheel")  # pyright: ignore[reportPrivateUsage]
    assert found == tmp_path / "nvidia" / "cu13" / "bin" / "only-in-the-wheel"


def test_the_wheel_of_triton_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = program(tmp_path / "triton" / "backends" / "nvidia" / "bin", "only-in-a-wheel")
    metadata = tmp_path / "triton-3.6.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: triton\nVersion: 3.6.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    assert ptxas._find("only-in-a-wheel") == own  # pyright: ignore[reportPrivateUsage]
    nvidias = program(tmp_path / "nvidia" / "cu13" / "bin", "only-in-a-wheel")
    assert ptxas._find("only-in-a-wheel") == nvidias  # pyright: ignore[reportPrivateUsage]


def test_missing_disassembler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def nothing(tool: str) -> None:
        return None

    monkeypatch.setattr(ptxas, "_find", nothing)
    with pytest.raises(errors.ToolMissing, match="nvdisasm"):
        ptxas.sass(b"")


def test_sass_is_what_the_disassembler_prints(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program(tmp_path, "nvdisasm", '#!/bin/sh\necho "listing of $(cat $2)"\n')
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert ptxas.sass(b"machine code") == "listing of machine code\n"


@needs_ptxas
def test_version() -> None:
    assert ptxas.version(ptxas.find_ptxas())[0].isdigit()
