"""`tilewright precompile`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.aot.kernels import scale
from tilewright.aot import KernelSpec, write_spec
from tilewright.support import settings
from tilewright.tools.cli import main

KERNEL = "tests.unit.aot.kernels:scale"


def test_declared_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    declared = ["x=fp32:16", "n=range(1, 4096)", "factor=fp32", "BLOCK=16,32"]
    assert main(["precompile", KERNEL, *declared]) == 0
    printed = capsys.readouterr()
    assert "scale: 10 variants, about " in printed.err
    assert printed.out.startswith("10 variants (2 without facts) have ")


def test_a_spec_file_for_a_target_by_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = {"x": "*fp32:16", "n": "i32:16,>=0", "factor": "fp32"}
    write_spec(tmp_path / "spec.toml", [KernelSpec(scale, arguments, {"BLOCK": 128})])
    command = ["precompile", str(tmp_path / "spec.toml"), "--target", "sm_90", "--jobs", "2"]
    with settings().cache.scope(dir=tmp_path / "cache"):
        assert main(command) == 0
    assert "2 variants (1 without facts)" in capsys.readouterr().out
    assert len(list((tmp_path / "cache" / "kernels").glob("*/kernel.cubin"))) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "expected SPEC.toml, module:kernel or FILE.py:kernel, found nothing"),
        ([KERNEL, "n=range(x)"], "expected range(START, STOP), found 'range(x)'"),
        ([KERNEL, "n=range(0, 8, 0)"], "expected range(START, STOP), found 'range(0, 8, 0)'"),
        ([KERNEL, "m=1"], "scale() has no parameter 'm'"),
        (["x.toml", "n=1"], "a spec file declares all arguments of its kernels"),
        (["x.toml"], "x.toml: No such file or directory"),
        (
            [KERNEL, "x=fp32:16", "n=i32", "factor=1.0", f"BLOCK={','.join(map(str, range(90)))}"],
            "variants are more than 256",
        ),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["precompile", *arguments]) == 1
    assert message in capsys.readouterr().err
