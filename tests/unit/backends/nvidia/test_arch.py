"""Every fact of every architecture row, against ptxas and LLVM."""

from dataclasses import fields

import pytest

from tests.unit.backends.nvidia.ptx_probes import FEATURES, instruction, mma, module
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends.nvidia.arch import ARCHITECTURES, Arch, row_for
from tilewright.backends.nvidia.assemble.ptxas import assemble
from tilewright.llvm import emit_assembly
from tilewright.support import errors

ROWS = list(ARCHITECTURES.values())
FORMS = sorted({form for row in ROWS for form in row.mma}, key=str)
KERNEL = """
define ptx_kernel void @probe(ptr addrspace(1) %p) {
  store i32 1, ptr addrspace(1) %p
  ret void
}
"""


STATIC_BYTES = 48 * 1024
"""Shared memory that a kernel may declare; more is requested at load time."""


def version_of(row: Arch) -> str:
    """The version in the directive `.version`."""
    return f"{row.ptx // 10}.{row.ptx % 10}"


def accepted(body: str, row: Arch, directives: str = "") -> bool:
    try:
        assemble(module(body, row.cpu, version_of(row), directives), row.cpu, "probe")
    except errors.PTXASError:
        return False
    return True


@needs_ptxas
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_instructions(row: Arch) -> None:
    wrong = [
        f"{feature} ({instruction(body)})"
        for feature, body in FEATURES.items()
        if accepted(body, row) != getattr(row, feature)
    ]
    assert wrong == []


@needs_ptxas
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_matrix_products(row: Arch) -> None:
    wrong = [
        form
        for form in FORMS
        if accepted(mma(form.operand, form.accumulator, form.shape), row) != (form in row.mma)
    ]
    assert wrong == []


def test_every_instruction_field_is_probed() -> None:
    flags = {f.name for f in fields(Arch) if f.type == "bool"}
    assert flags == set(FEATURES)


@needs_ptxas
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_shared_memory(row: Arch) -> None:
    """ptxas lets code for one capability alone declare all that may be asked for."""

    def declares(size: int) -> str:
        use = "mov.u32 r0, t; mov.u32 r1, s; st.shared.u32 [t], r0; st.shared.u32 [s], r1;"
        return f".shared .align 128 .b8 t[{size}]; {use}"

    limit = row.shared_optin if row.cpu.endswith("a") else STATIC_BYTES
    left = limit - 1024  # the probe declares 1024 bytes itself
    assert accepted(declares(left), row)
    assert not accepted(declares(left + 1), row)


@needs_ptxas
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_llvm_emits_what_ptxas_accepts(row: Arch) -> None:
    ptx = emit_assembly(KERNEL, row.target)
    assert f".version {version_of(row)}" in ptx
    assert f".target {row.cpu}" in ptx
    assert assemble(ptx, row.cpu, "probe").report.registers > 0


LIMITS = {
    # shared memory that may be asked for and that a multiprocessor has (KB), warps, blocks
    75: (64, 64, 32, 16),
    80: (163, 164, 64, 32),
    86: (99, 100, 48, 16),
    89: (99, 100, 48, 24),
    90: (227, 228, 64, 32),
    100: (227, 228, 64, 32),
    120: (99, 100, 48, 24),
}


@pytest.mark.parametrize("capability", LIMITS)
def test_limits(capability: int) -> None:
    row = row_for(capability)
    shared = (row.shared_optin // 1024, row.shared_sm // 1024)
    assert (*shared, row.warps_sm, row.blocks_sm) == LIMITS[capability]
    assert row.shared_optin + row.shared_reserved == row.shared_sm


def test_rows_are_named_for_their_capability() -> None:
    assert [row.name for row in ROWS] == [
        "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120",
    ]  # fmt: skip
    for row in ROWS:
        assert row.cpu.rstrip("a") == row.name
        assert row_for(row.capability) is row


def test_later_members_of_a_family_get_code_that_runs_on_them() -> None:
    for capability in (87, 103, 121):
        row = row_for(capability)
        assert not row.cpu.endswith("a")
        assert int(row.cpu.removeprefix("sm_")) <= capability
    assert not row_for(103).setmaxnreg


@needs_ptxas
def test_row_for_the_whole_family_of_sm_100() -> None:
    row = row_for(103)
    wrong = [f for f, body in FEATURES.items() if accepted(body, row) != getattr(row, f)]
    assert wrong == []


@pytest.mark.parametrize("capability", [70, 72, 110, 130, 9])
def test_unknown_capability(capability: int) -> None:
    with pytest.raises(errors.UnknownTarget, match=f"cuda:{capability}") as caught:
        row_for(capability)
    assert "cuda:90" in str(caught.value)
    assert ("CUDA 13 makes no more code" in str(caught.value)) == (capability < 75)


def test_derived_facts() -> None:
    assert row_for(90).access_bytes == 16
    assert row_for(100).access_bytes == 32
    assert [f.shape for f in row_for(80).mma_forms("f16", "f32")] == [(16, 8, 8), (16, 8, 16)]
    assert row_for(80).mma_forms("f8e4m3", "f32") == ()
