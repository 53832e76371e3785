"""Specs: the code of a launch from facts alone, also through a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.kernels.tutorial_matmul import tutorial_matmul
from tests.unit.aot import kernels
from tilewright.aot import KernelSpec, read_spec, spec_text, write_spec
from tilewright.backends import GPUTarget
from tilewright.compiler import ASTSource, compile
from tilewright.language import TensorDescriptor
from tilewright.runtime import BoundCall, JITFunction, MockTensor
from tilewright.support import errors

SM_90 = GPUTarget("cuda", 90, 32)
FP16 = MockTensor("float16")
BLOCKS = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8, "EVEN_K": False}


def matmul_call(size: int, **options: object) -> BoundCall:
    """A launch of the tutorial's matmul with square matrices."""
    strides = [size, 1] * 3
    return tutorial_matmul.bind(FP16, FP16, FP16, *[size] * 3, *strides, **BLOCKS, **options)


def calls() -> Mapping[str, tuple[JITFunction, BoundCall]]:
    """Launches of every kind of argument."""
    x = np.zeros(64, "f")
    square = np.zeros((32, 32), np.float16)
    k = kernels
    tensor = TensorDescriptor.from_tensor(square, [16, 16])
    unusual = dict(function=k.double, ACC=tl.float32, SHAPE=(1, [2.5, "a"]), BLOCK=16)
    return {
        "numbers": (k.scale, k.scale.bind(x, 1000, 2.0, BLOCK=32, num_warps=8)),
        "unaligned, negative": (k.scale, k.scale.bind(x[1:], -5, 2, BLOCK=32)),
        "wide": (k.scale, k.scale.bind(x, 1 << 40, True, BLOCK=32)),
        "unusual": (k.unusual, k.unusual.bind(x, 1, (2, x), None, **unusual)),
        "descriptor": (k.add_one, k.add_one.bind(tensor, M=4)),
        "not specialized": (k.plain, k.plain.bind(x, 16)),
        "annotated": (k.annotated, k.annotated.bind(x, 16)),
        "rest": (k.several, k.several.bind(x, 8, x)),
    }


@pytest.mark.parametrize("name", calls())
def test_a_spec_has_the_signature_of_the_launch(name: str, tmp_path: Path) -> None:
    kernel, call = calls()[name]
    spec = KernelSpec.of_call(kernel, call)
    assert spec.signature == call.signature.args
    write_spec(tmp_path / "spec.toml", [spec, spec])
    (read,) = read_spec(tmp_path / "spec.toml")
    assert read == spec
    assert read.signature == call.signature.args


@pytest.mark.parametrize("size", [4096, 1000])
def test_the_tutorials_matmul_is_byte_equal_to_the_launch_s(size: int, tmp_path: Path) -> None:
    """From a file, without an array: TMA loads by a producer warp, as the launch has them."""
    call = matmul_call(size, num_warps=8, num_stages=3)
    source = ASTSource.of(tutorial_matmul, call.signature)
    launched = compile(source, SM_90, {"num_warps": 8, "num_stages": 3})
    write_spec(tmp_path / "spec.toml", [KernelSpec.of_call(tutorial_matmul, call)])
    (spec,) = read_spec(tmp_path / "spec.toml")
    with tilewright.settings().cache.scope(dir=tmp_path / "empty"):
        compiled = spec.compile(SM_90)
    assert compiled.hash == launched.hash
    for stage in ("ptx", "cubin"):
        assert compiled.asm[stage] == launched.asm[stage]
    assert "cp.async.bulk.tensor.2d.shared::cluster.global" in compiled.asm["ptx"]
    assert "setmaxnreg.dec" in compiled.asm["ptx"]


def test_ast_sources_take_facts_as_text(tmp_path: Path) -> None:
    call = matmul_call(4096)
    launched = compile(ASTSource.of(tutorial_matmul, call.signature), SM_90)
    spec = KernelSpec.of_call(tutorial_matmul, call)
    signature = {**spec.arguments, **dict.fromkeys(spec.constexprs, "constexpr")}
    with tilewright.settings().cache.scope(dir=tmp_path):
        compiled = compile(ASTSource(tutorial_matmul, signature, spec.constexprs), SM_90)
    assert compiled.asm["cubin"] == launched.asm["cubin"]


def test_warmup_takes_facts_as_text() -> None:
    x = np.zeros(64, "f")
    launched = kernels.scale[(1,)](x, 16, 2.0, BLOCK=32)
    warm = kernels.scale.warmup("*fp32:16", "i32:16,>=0", "fp32", BLOCK=32)
    assert warm is launched
    assert kernels.scale.warmup("*fp32:16", "i32", "fp32", BLOCK=32) is not launched
    with pytest.raises(errors.InvalidArgumentText, match="argument 'n': 'i32:>=0,<0' has no value"):
        kernels.scale.warmup("*fp32:16", "i32:>=0,<0", "fp32", BLOCK=32)


def test_aliasing_is_a_fact() -> None:
    arguments = {"x": "*fp32:16", "n": "i32", "factor": "fp32"}
    apart = KernelSpec(kernels.scale, arguments, {"BLOCK": 32}).compile()
    same = KernelSpec(kernels.scale, arguments, {"BLOCK": 32}, {"may_overlap": True}).compile()
    assert not apart.metadata.options.may_overlap
    assert same.metadata.options.may_overlap


GOOD: dict[str, Any] = {"x": "*fp32:16", "n": "i32", "factor": "fp32"}


@pytest.mark.parametrize(
    ("arguments", "constexprs", "options", "error", "message"),
    [
        (GOOD | {"y": "i32"}, {"BLOCK": 8}, {}, errors.UnknownArgument, "no parameter 'y'"),
        (GOOD, {}, {}, errors.MissingArgument, "'BLOCK'"),
        ({"x": "*fp32"}, {"BLOCK": 8}, {}, errors.MissingArgument, "'n', 'factor'"),
        (GOOD, {"BLOCK": 8, "n": 1}, {}, errors.RepeatedArgument, "'n'"),
        (GOOD | {"n": "i32:>=0,<0"}, {"BLOCK": 8}, {}, errors.InvalidArgumentText, "is empty"),
        (GOOD, {"BLOCK": 8}, {"warps": 8}, errors.UnknownArgument, "no parameter 'warps'"),
        (GOOD | {"BLOCK": "i32"}, {}, {}, errors.InvalidArgumentText, "is a constexpr"),
    ],
)
def test_bad_specs(
    arguments: Any, constexprs: Any, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        KernelSpec(kernels.scale, arguments, constexprs, options)


def test_a_type_against_the_annotation() -> None:
    with pytest.raises(errors.InvalidArgumentText, match="contradicts the annotation i64"):
        KernelSpec(kernels.annotated, {"x": "*fp32", "n": "i32"})


KERNEL = '[[kernel]]\nkernel = "tests.unit.aot.kernels:scale"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version = 2", "spec.toml: the spec has version 2, and this Tilewright reads version 1"),
        ("", "spec.toml: the spec has no version"),
        ("version = [", "spec.toml: is no TOML"),
        ("version = 1\nkernel = 3", "'kernel' is no list of tables"),
        ("version = 1\n[[kernel]]\nname = 'x'", "spec.toml, kernel 1: there is no field 'name'"),
        ("version = 1\n[[kernel]]\nkernel = 'scale'", "kernel 1: no kernel is named"),
        (f"version = 1\n{KERNEL}arguments = {{ n = 1 }}", "argument 'n' is no text"),
        (f"version = 1\n{KERNEL}arguments = 1", "argument 'arguments' is no text"),
        (f"version = 1\n{KERNEL}constexprs = 1", "'constexprs' is no table"),
        (f"version = 1\n{KERNEL}constexprs = {{ B = {{}} }}", "has one item that names a kind"),
        (f"version = 1\n{KERNEL}constexprs = {{ B = {{ dtype = 'x' }} }}", "there is no dtype 'x'"),
    ],
)
def test_bad_files(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(text)
    with pytest.raises(errors.InvalidSpec) as caught:
        read_spec(tmp_path / "spec.toml")
    assert message in str(caught.value)


def test_missing_kernels(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(f"version = 1\n{KERNEL}".replace("scale", "scales"))
    with pytest.raises(errors.KernelMissing, match="has no kernel 'scales'; its kernels are"):
        read_spec(tmp_path / "spec.toml")


def test_a_kernel_that_no_name_reaches() -> None:
    @tilewright.jit
    def local(x):
        tl.store(x, 1)

    with pytest.raises(errors.InvalidSpec, match="inside a function, which no name reaches"):
        spec_text(KernelSpec(local, {"x": "*fp32"}))


def test_a_kernel_of_a_file(tmp_path: Path) -> None:
    source = "import tilewright\nimport tilewright.language as tl\n@tilewright.jit\n"
    (tmp_path / "of_a_file.py").write_text(f"{source}def one(x):\n    tl.store(x, 1)\n")
    table = 'kernel = "of_a_file.py:one"\narguments = { x = "*fp32" }\ngrid = "(1,)"'
    (tmp_path / "spec.toml").write_text(f"version = 1\n[[kernel]]\n{table}\n")
    (spec,) = read_spec(tmp_path / "spec.toml")
    assert spec.grid == "(1,)"
    write_spec(tmp_path / "again.toml", [spec])
    (again,) = read_spec(tmp_path / "again.toml")
    assert again.signature == spec.signature
