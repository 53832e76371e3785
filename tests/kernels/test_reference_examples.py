"""The reference's examples: one for each public name, which runs and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.reference_examples import Example, examples, families
from scripts.site_pages import MODULES, public_names
from tests.kernels.run_example import ARCHITECTURES, run_example

LANGUAGE = "tilewright.language"
EXAMPLES = examples()
OF_LANGUAGE = [e for e in EXAMPLES if e.module == LANGUAGE]


def test_each_public_name_has_one_example_and_no_other_name_has_one() -> None:
    public = [(module, name) for module in MODULES for name in public_names(module)]
    assert sorted((e.module, e.name) for e in EXAMPLES) == sorted(public)
    assert [family.title for family in families() if not family.summary] == []


def test_only_examples_of_the_host_need_a_gpu() -> None:
    assert [e.title for e in OF_LANGUAGE if e.needs or not e.output] == []
    assert {e.module for e in EXAMPLES if e.needs} == {"tilewright.testing"}


@pytest.mark.parametrize("execution", ["interpreter", "cpu"])
@pytest.mark.parametrize("example", [e for e in EXAMPLES if not e.needs], ids=lambda e: e.title)
def test_an_example_prints_its_output(
    example: Example, execution: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run_example(example, execution, tmp_path)
    assert capfd.readouterr().out == example.output


@pytest.mark.gpu
@pytest.mark.torch
@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.needs], ids=lambda e: e.title)
def test_an_example_that_needs_a_gpu_prints_something(
    example: Example, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run_example(example, "cpu", tmp_path)
    assert capfd.readouterr().out.strip()


@pytest.mark.parametrize("example", OF_LANGUAGE, ids=lambda e: e.title)
def test_an_example_prints_its_output_on_an_emulated_gpu(
    example: Example, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run_example(example, "emulated", tmp_path)
    assert capfd.readouterr().out == example.output


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("example", OF_LANGUAGE, ids=lambda e: e.title)
def test_kernels_of_an_example_are_assembled(
    example: Example, architecture: str, tmp_path: Path
) -> None:
    run_example(example, architecture, tmp_path)
    has_kernel = "kernel[" in example.code
    assert has_kernel == (tmp_path / "kernel.cubin").exists()
