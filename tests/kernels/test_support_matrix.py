"""The support matrix of `docs/support.md`: each row is what the probes of its op show now."""

from __future__ import annotations

from pathlib import Path

import pytest

import tilewright.language as tl
from tests.kernels import support_matrix
from tests.kernels.run_example import EXECUTIONS
from tests.kernels.support_matrix import cell, line, measure, row, rows_of_page
from tests.kernels.support_probes import DTYPES, PROBES, Probe

WITHOUT_A_ROW = {
    "arange", "assume", "cdiv", "ceil_div", "debug_barrier", "device_assert", "device_print",
    "dot_scaled", "expect_zero", "extern", "extern_elementwise", "inline_asm_elementwise",
    "max_constancy", "max_contiguous", "multiple_of", "num_programs",
    "pair_uniform_to_normal", "philox",
    "philox_impl", "program_id", "rand", "rand4x", "randint", "randint4x", "randn", "randn4x",
    "static_assert", "static_print", "swizzle2d", "to_tensor", "uint_to_uniform_float",
}  # fmt: skip
"""Functions whose operands have one dtype, any dtype, or dtypes that depend on each other."""


def test_each_function_of_the_language_has_a_row_or_needs_none() -> None:
    functions = {name for name in tl.__all__ if tl.is_builtin(getattr(tl, name))}
    rows = {probe.name.removeprefix("tl.") for probe in PROBES}
    assert functions - rows <= WITHOUT_A_ROW
    assert not rows & WITHOUT_A_ROW
    assert [*rows_of_page()] == [probe.name for probe in PROBES]


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_a_row_of_the_page_is_what_its_probes_show(probe: Probe, tmp_path: Path) -> None:
    assert line(probe, row(probe, tmp_path)) == rows_of_page()[probe.name]


def test_an_op_that_one_execution_lacks_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    probe = next(probe for probe in PROBES if probe.name == "tl.sin")
    emulate = support_matrix.emulate

    def without_fp16(
        launch: object, device: str, args: tuple[object, ...], words: object
    ) -> object:
        if getattr(args[0], "dtype", None) == "float16":
            raise support_matrix.tilewright.errors.LoweringMissing("tile.sin", "emulated")
        return emulate(launch, device, args, words)

    monkeypatch.setattr(support_matrix, "emulate", without_fp16)
    assert cell(measure(probe, "float16", tmp_path)) == "not emulated"
    assert cell(measure(probe, "int32", tmp_path)) == "no"
    assert cell({*EXECUTIONS}) == "yes"
    assert len(DTYPES) == 15
