"""Every ready-made kernel, assembled for every architecture: figures as in the tables, no spills.

The tables are `tests/golden/corpus/*.txt`; a change of them is a change of generated code, to be
judged and then accepted by `pytest --bless tests/corpus`.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import tilewright
from tests.corpus import table
from tests.corpus.assembler import PACKAGE, VERSION, pinned_ptxas
from tests.corpus.figures import Figures, count, figures_of, source_of, widest
from tests.corpus.variants import HERE, READY_MADE, Variant
from tilewright import kernels, settings
from tilewright.backends import GPUTarget
from tilewright.backends.nvidia.arch import ARCHITECTURES
from tilewright.backends.nvidia.assemble import ptxas
from tilewright.backends.nvidia.assemble.ptxas import version
from tilewright.backends.nvidia.driver import device_target
from tilewright.support import PassEnded, PassStarted, recording

FOLDER = Path(__file__).parents[1] / "golden" / "corpus"


@pytest.fixture(autouse=True)
def _wheel(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Assemble by the wheel's ptxas, also where a GPU's driver could."""
    monkeypatch.setattr(device_target, "is_device_target", lambda target: False)
    with settings().cuda.scope(ptxas_path=pinned_ptxas()):
        yield


@cache
def figures_of_kernel(name: str) -> dict[Variant, Figures]:
    return {variant: figures_of(variant) for variant in READY_MADE[name]}


def text_of(name: str) -> str:
    """The table of a kernel."""
    found = {(f"sm_{v.capability}", v.label): f for v, f in figures_of_kernel(name).items()}
    return table.text_of(found, f"ptxas {VERSION}")


@pytest.mark.parametrize("name", READY_MADE)
def test_code_is_as_in_the_table(name: str, request: pytest.FixtureRequest) -> None:
    text = text_of(name)
    report = table.check(
        FOLDER / f"{name}.txt", text, bless=bool(request.config.getoption("--bless"))
    )
    if report is not None:
        pytest.fail(report, pytrace=False)


@pytest.mark.parametrize("name", READY_MADE)
def test_nothing_spills(name: str) -> None:
    spilled = {(v.capability, v.label) for v, f in figures_of_kernel(name).items() if f.spills}
    assert spilled == set()


class ToldChanges:
    """A recorder that prints a function around each pass. untold: those that change it and say no;
    what they leave would not be verified."""

    def __init__(self) -> None:
        self._before = ""
        self.passes = 0
        self.untold: list[str] = []

    def record(self, event: object) -> None:
        """Compare the texts before and after a pass."""
        if isinstance(event, PassStarted):
            self._before = event.text()
        if isinstance(event, PassEnded):
            self.passes += 1
            if not event.changed and event.text() != self._before:
                self.untold.append(event.pass_name)


@pytest.mark.parametrize("name", READY_MADE)
def test_passes_say_when_they_change_a_kernel(name: str) -> None:
    told = ToldChanges()
    with settings().cache.scope(always_compile=True), recording(told):
        figures_of(READY_MADE[name][-1])
    assert told.passes > 20 and told.untold == []


@pytest.mark.parametrize("name", READY_MADE)
def test_every_barrier_of_the_code_is_an_op(name: str) -> None:
    variant = next(v for v in READY_MADE[name] if v.capability == HERE)
    target = GPUTarget("cuda", HERE, 32)
    made = tilewright.compile(source_of(variant), target, variant.options)
    ops, code = str(made.asm["ttgir"]), str(made.asm["llir"])
    assert code.count("bar.sync") == len(re.findall(r"^ *mem\.barrier$", ops, re.MULTILINE))


# --- the corpus is whole --------------------------------------------------------------------------


def test_every_ready_made_kernel_is_in_the_corpus() -> None:
    assert set(READY_MADE) == {*kernels.__all__, "tutorial"}
    assert {path.stem for path in FOLDER.iterdir()} == set(READY_MADE)


@pytest.mark.parametrize("name", READY_MADE)
def test_every_kernel_is_compiled_for_every_architecture(name: str) -> None:
    assert {variant.capability for variant in READY_MADE[name]} == set(ARCHITECTURES)
    assert len({(v.capability, v.label) for v in READY_MADE[name]}) == len(READY_MADE[name])
    everywhere = {v.label for v in READY_MADE[name]}
    assert everywhere == {v.label for v in READY_MADE[name] if v.capability == HERE}


def test_the_assembler_is_the_one_of_the_tables() -> None:
    program = pinned_ptxas()
    assert version(program) == VERSION
    assert program.parent in ptxas._wheel_folders()  # pyright: ignore[reportPrivateUsage]
    project = Path(__file__).parents[2] / "pyproject.toml"
    assert f'"{PACKAGE}=={VERSION};' in project.read_text()


# --- a change is seen -----------------------------------------------------------------------------


def test_a_changed_row_fails_with_its_difference(tmp_path: Path) -> None:
    text = text_of("add")
    row = next(line for line in text.splitlines() if line.split()[:2] == ["sm_90", "fp32"])
    registers = row.split()[2]
    other = row.replace(f" {registers} ", f" {int(registers) + 1} ", 1)
    path = tmp_path / "add.txt"
    path.write_text(text.replace(row, other))
    report = table.check(path, text)
    assert report is not None
    lines = report.splitlines()
    assert lines[1].split()[:4] == ["row", "variant", "registers", "spills"]
    assert lines[2:4] == [f"-{other}", f"+{row}"]
    assert lines[4:] == ["if it is meant: pytest --bless tests/corpus -k add"]
    assert table.check(path, text, bless=True) is None
    assert path.read_text() == text


def test_a_missing_or_added_row_fails(tmp_path: Path) -> None:
    text = text_of("add")
    path = tmp_path / "add.txt"
    assert table.check(path, text) is not None
    path.write_text(text + "sm_90 one more\n")
    assert "-sm_90 one more" in (table.check(path, text) or "")


def test_figures_see_what_the_compiler_knows() -> None:
    """Without the alignment of its pointers the same kernel has narrow accesses."""
    found = {(v.capability, v.label): f for v, f in figures_of_kernel("add").items()}
    assert found[90, "fp32"].load == found[90, "fp32"].store == 16
    assert found[90, "fp32 unaligned"].load == 4


PTX = """
  ld.param.b64 %rd1, [k_param_0];
  @%p1 ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];
  ld.global.cg.L1::no_allocate.v2.b64 {%rd2, %rd3}, [%rd1];
  ld.global.nc.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];
  st.shared.v4.b32 [%r1], {%r1, %r2, %r3, %r4};
  st.volatile.global.b16 [%rd1], %rs1;
  cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {...};
  bar.sync 0;
"""


def test_accesses_and_instructions_are_read_from_ptx() -> None:
    assert widest(PTX, "ld") == 32
    assert widest(PTX, "st") == 2
    assert widest(PTX, "cp.async") == 16
    assert widest("", "ld") == 0
    assert count(PTX, r"mma\.sync") == 1
    assert count(PTX, r"bar\.sync") == 1
