"""What the benchmarks hand to Triton: sources of kernels, and arguments of compilations."""

import ast
from pathlib import Path

import pytest

from benchmarks import cold_launches
from benchmarks.cold_launches import TWINS
from benchmarks.compile_time import KERNELS, arguments
from benchmarks.triton_twins import KERNELS as FOLDER
from benchmarks.triton_twins import source_of


def path_of(module: str) -> Path:
    """Of the package, or of a user's kernels beside the benchmarks."""
    beside = Path(cold_launches.__file__).with_name(f"{module}.py")
    return beside if beside.exists() else FOLDER / f"{module}.py"


@pytest.mark.parametrize("name", TWINS)
def test_a_source_is_one_function_without_decorators(name: str):
    module, _, function = name.partition(".")
    (node,) = ast.parse(source_of(path_of(module), function)).body
    assert isinstance(node, ast.FunctionDef)
    assert (node.name, node.decorator_list) == (function, [])


def test_an_unknown_function_has_no_source():
    with pytest.raises(KeyError):
        source_of(FOLDER / "softmax.py", "hardmax_kernel")


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=list(KERNELS))
def test_types_and_constants_cover_the_parameters(kernel):
    module, _, function = kernel.source.partition(".")
    (node,) = ast.parse(source_of(path_of(module), function)).body
    assert isinstance(node, ast.FunctionDef)
    names = [arg.arg for arg in node.args.args]
    signature, constants, attributes = arguments(kernel, names)
    assert list(signature) == names
    assert {n for n, t in signature.items() if t == "constexpr"} == set(constants)
    assert all(signature[names[place]] != "constexpr" for (place,) in attributes)
