"""What the benchmarks hand to Triton: sources of kernels, and arguments of compilations."""

import ast

import pytest

from benchmarks.compile_time.against_triton import KERNELS, arguments
from benchmarks.gpu.first_launches import TWINS
from benchmarks.triton_twins import kernel_of, source_file, source_of


@pytest.mark.parametrize("name", TWINS)
def test_a_source_is_one_function_without_decorators(name: str):
    module, _, function = name.partition(".")
    (node,) = ast.parse(source_of(source_file(module), function)).body
    assert isinstance(node, ast.FunctionDef)
    assert (node.name, node.decorator_list) == (function, [])


def test_an_unknown_function_has_no_source():
    with pytest.raises(KeyError):
        source_of(source_file("softmax"), "hardmax_kernel")


@pytest.mark.parametrize("name", TWINS)
def test_our_kernel_is_found_by_name(name: str):
    assert kernel_of("tilewright", name).__name__ == name.partition(".")[2]


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=list(KERNELS))
def test_types_and_constants_cover_the_parameters(kernel):
    module, _, function = kernel.source.partition(".")
    (node,) = ast.parse(source_of(source_file(module), function)).body
    assert isinstance(node, ast.FunctionDef)
    names = [arg.arg for arg in node.args.args]
    signature, constants, attributes = arguments(kernel, names)
    assert list(signature) == names
    assert {n for n, t in signature.items() if t == "constexpr"} == set(constants)
    assert all(signature[names[place]] != "constexpr" for (place,) in attributes)
