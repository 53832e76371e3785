"""The support matrix of `docs/support.md`: each row is what the probes of its op show now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tilewright.language as tl
from scripts.site_pages import text_of
from tests.kernels import support_matrix
from tests.kernels.run_example import EXECUTIONS
from tests.kernels.support_matrix import cell, line, measure, row, rows_of_page
from tests.kernels.support_probes import DTYPES, PROBES, Probe
from tilewright.tools.explain_error_command import error_classes

CLASSES = error_classes().values()

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


def test_docstrings_name_the_errors_of_other_dtypes() -> None:
    """A docstring that lists errors has those that the matrix shows."""
    wrong: dict[str, set[str]] = {}
    for title, text in rows_of_page().items():
        described = text_of(getattr(tl, title.removeprefix("tl."))) if title[:3] == "tl." else ""
        named = {error.code for error in CLASSES if re.search(rf"\b{error.__name__}\b", described)}
        missing = set(re.findall(r"TW\d+", text)) - named
        if "Errors:" in described and missing:
            wrong[title] = missing
    assert wrong == {}


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
    assert cell(measure(probe, "int32", tmp_path)) == "TW113"
    assert cell(dict.fromkeys(EXECUTIONS, "")) == "yes"
    assert len(DTYPES) == 15
