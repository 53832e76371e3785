"""Errors while Tilewright stands for Triton: its words and places, its causes, its constructors."""

from __future__ import annotations

import ast
import importlib
import pickle
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.triton_alias.alias_fixture import triton_alias
from tilewright.backends import GPUTarget
from tilewright.compiler import ASTSource
from tilewright.compiler import compile as compile_kernel
from tilewright.runtime import jit
from tilewright.support import errors

SIZE = 3

with triton_alias():
    triton_language = importlib.import_module("triton.language")


@jit
def misspelt(out, n):
    triton_language.stroe(out, n)


@pytest.fixture(autouse=True)
def alias() -> Generator[None]:
    with triton_alias():
        yield


@jit
def helper(x, N: tl.constexpr):
    return x + tl.arange(0, N)


@jit
def middle(x, N: tl.constexpr):
    y = 2 * x
    return helper(y, N)


@jit
def nested(out, n):
    tl.store(out, n)
    a = middle(n, 2097152)
    tl.store(out, a)


@jit
def undefined(out, n):
    tl.store(out, nowhere)  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


@jit
def pointers(out, n):
    a = out + out
    tl.store(out, a)


@jit
def signs(out, n):
    a = n // n.to(tl.uint32)
    tl.store(out, a)


@jit
def literal(out, n):
    a = tl.full((4,), 1, tl.int8) + 300
    tl.store(out, a)


@jit
def shapes(out, n):
    a = tl.arange(0, 4) + tl.arange(0, 8)
    tl.store(out, a)


@jit
def large(out, n):
    a = tl.zeros((2048, 1024), tl.float32)
    tl.store(out, a)


@jit
def wide(out, n):
    tl.store(out, 0x1FFFFFFFFFFFFFFFF)


@jit
def asserted(out, n):
    tl.static_assert(False, "boo")


@jit
def at_run_time(out, n):
    a = tl.arange(0, n)
    tl.store(out, a)


@jit
def product(out, n):
    a = tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float32))
    tl.store(out, a)


@jit
def sliced(out, n):
    out[10:]


@jit
def far_axis(out, n):
    a = tl.expand_dims(tl.arange(0, 4), -3)
    tl.store(out, a)


@jit
def repeated_axis(out, n):
    a = tl.expand_dims(tl.arange(0, 4), (0, -3))
    tl.store(out, a)


@jit
def program_axis(out, n):
    a = tl.program_id(20)
    tl.store(out, a)


@jit
def short_rows(out, n):
    a = tl.make_tensor_descriptor(out, [4], [1], [1])
    tl.store(out, a.load([0]))


@jit
def two_types(out, n):
    if n > 2:
        a = tl.arange(0, 4)
    else:
        a = tl.arange(0, 8)
    tl.store(out + a, a)


@jit
def two_results(n):
    if n > 2:
        return tl.arange(0, 4)
    else:
        return tl.arange(0, 8)


@jit
def result_types(out, n):
    a = two_results(n)
    tl.store(out + a, a)


@jit
def leaves(out, n):
    for i in range(n):
        if i > 2:
            return


WORDS: dict[str, tuple[Any, str]] = {
    "sliced": (sliced, "at 2:4: unsupported tensor index: [slice(10, None, None)]"),
    "far axis": (far_axis, "at 2:8: invalid axis -3. Expected -2 <= axis < 2"),
    "repeated axis": (
        repeated_axis,
        "at 2:8: expand_dims received duplicate axes, normalized axes = [0, 0]",
    ),
    "program axis": (program_axis, "at 2:8: program_id axis must be 0, 1, or 2 but got 20"),
    "short rows": (
        short_rows,
        "at 2:8: Descriptor block shape must have at least 16 bytes in the last dimension, "
        "but got 1 * 8 = 8 bytes",
    ),
    "undefined": (undefined, "at 2:18: nowhere is not defined"),
    "pointers": (pointers, "at 2:8: invalid operands of type pointer<fp64> and pointer<fp64>"),
    "signs": (
        signs,
        "at 2:8: Cannot use /, #, or % with int32 and uint32 "
        "because they have different signedness",
    ),
    "literal": (literal, "at 2:8: Scalar 300 is out of range for type int8"),
    "wide": (
        wide,
        "at 2:4: Nonrepresentable integer 36893488147419103231",
    ),
    "shapes": (
        shapes,
        "at 2:8: Cannot make_shape_compatible: incompatible dimensions at index 0: 4 and 8",
    ),
    "large": (large, "at 2:8: numel (2097152) exceeds triton maximum tensor numel (1048576)"),
    "nested": (nested, "at 3:8: numel (2097152) exceeds triton maximum tensor numel (1048576)"),
    "asserted": (asserted, "at 2:4:"),
    "at run time": (at_run_time, "at 2:8: 'end' of arange must be of type tl.constexpr"),
    "product": (product, "at 2:8: Both operands must be same dtype. Got fp16 and fp32"),
}


def failure(kernel: Any, interpret: bool = False) -> errors.CompilationError:
    kernel = jit(kernel.fn, interpret=interpret)  # pyright: ignore[reportCallIssue]
    with pytest.raises(errors.CompilationError) as caught:
        kernel[(1,)](np.zeros(1), 5)
    return caught.value


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (two_types, "Mismatched type for a between then block (<[4], int32>) and else block"),
        (result_types, "Return type mismatch: <[4], int32> and <[8], int32>"),
        (leaves, "Cannot have `return` statements inside `while` or `for` statements in triton."),
    ],
)
def test_words_of_what_only_the_compiler_refuses(kernel: Any, words: str) -> None:
    assert words in str(failure(kernel))


@jit
def three(out, n):
    tl.store(out + tl.arange(0, 3), n)


@jit
def seven(out, n):
    tl.store(out, tl.sum(tl.full((8, 7), 1.0, tl.float64)))


@jit
def shallow(out, n):
    a = tl.full((16, 8), 1.0, tl.float16)
    tl.store(out, tl.sum(tl.dot(a, tl.trans(a))))


@jit
def shallow_bytes(out, n):
    a = tl.full((16, 16), 1, tl.int8)
    tl.store(out, tl.sum(tl.dot(a, tl.trans(a))))


@jit
def other_fp8(out, n):
    tl.store(out, tl.sum(tl.full((16,), 1.0, tl.float8e4b8).to(tl.float32)))


@jit
def newer_fp8(out, n):
    tl.store(out, tl.sum(tl.full((16,), 1.0, tl.float8e4nv).to(tl.float32)))


LIMITS = [
    (three, 90, "arange's range must be a power of 2"),
    (seven, 90, "Shape element 1 must be a power of 2"),
    (shallow, 90, "Input shapes should have M >= 1, N >= 1 and K >= 16"),
    (shallow_bytes, 90, "Input shapes should have M >= 1, N >= 1 and K >= 32"),
    (other_fp8, 90, "type fp8e4b8 not supported in this architecture"),
    (newer_fp8, 80, "type fp8e4nv not supported in this architecture"),
]


def compiled_for(arch: int, kernel: Any) -> Any:
    source = ASTSource(kernel, {"out": "*fp64", "n": "i32"})
    return compile_kernel(source, GPUTarget("cuda", arch, 32), {"num_warps": 1})


@pytest.mark.parametrize(("kernel", "arch", "words"), LIMITS)
def test_triton_s_limits_on_gpus(kernel: Any, arch: int, words: str) -> None:
    with pytest.raises(errors.CompilationError) as caught:
        compiled_for(arch, kernel)
    assert str(caught.value.__cause__) == words
    # elsewhere, and without the alias, these kernels run
    kernel[(1,)](np.zeros(3), 5)


def test_without_the_alias_gpus_have_no_such_limits() -> None:
    errors.triton_words.shown = False
    assert "ptx" in compiled_for(90, three).asm


@jit
def old_fp8(out, n):
    a = tl.full((32, 32), 1.0, tl.float8e4b15)
    tl.store(out, tl.sum(tl.dot(a, a)))


def test_a_format_that_hopper_converts_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="deprecated on Hopper"):
        compiled_for(90, old_fp8)


@jit
def chosen_by_numbers(out):
    tl.store(out + tl.arange(0, 4), tl.where(tl.arange(0, 4) & 1, 1.0, 2.0))


@pytest.mark.parametrize("interpret", [False, True])
def test_a_condition_of_numbers_is_warned_of(interpret: bool) -> None:
    kernel: Any = jit(interpret=interpret)(chosen_by_numbers.fn)
    out = np.zeros(4)
    with pytest.warns(UserWarning, match="the condition of tl.where is") as warned:
        kernel[(1,)](out)
    assert warned[0].filename == __file__
    assert out.tolist() == [2, 1, 2, 1]


@jit
def stored(out, n):
    tl.store(out, n)


def test_options_in_triton_s_words() -> None:
    source = ASTSource(stored, {"out": "*fp64", "n": "i32"})
    with pytest.raises(ValueError, match=r"num_ctas > 1 requires NVIDIA SM90\+"):
        compile_kernel(source, GPUTarget("cuda", 80, 32), {"num_ctas": 2})
    with pytest.raises(ValueError, match="num_warps must be a power of 2"):
        compile_kernel(ASTSource(three, {"out": "*fp64", "n": "i32"}), None, {"num_warps": 3})


@pytest.mark.parametrize(
    ("name", "interpret"),
    # the interpreter leaves a name that is not there to Python
    [(name, interpret) for name in WORDS for interpret in sorted({False, name != "undefined"})],
)
def test_triton_s_words_stand_below_ours(name: str, interpret: bool) -> None:
    kernel, expected = WORDS[name]
    error = failure(kernel, interpret)
    assert str(error).splitlines()[-1] == f"  Triton: {expected}"
    assert str(error).splitlines()[0] == f"{error.message} [{error.code}]"
    words = expected.partition(": ")[2]
    assert error.error_message == "\n".join(filter(None, (error.message, words)))


def test_a_misspelt_name_of_triton_s_module_is_corrected_in_the_interpreter_too() -> None:
    found = [failure(misspelt, interpret) for interpret in (False, True)]
    assert [error.hint for error in found] == 2 * ["did you mean 'store'?"]


def test_a_call_has_the_error_inside_as_its_cause() -> None:
    outer = failure(nested)
    assert "at 3:8:" in str(outer)
    inner = outer.__cause__
    assert isinstance(inner, errors.BlockTooLarge)
    assert "at 3:11:" in str(inner)
    innermost = inner.__cause__
    assert isinstance(innermost, errors.BlockTooLarge)
    assert "at 2:15:" in str(innermost)
    assert "called from" not in str(innermost)
    said = innermost.__cause__
    assert type(said) is ValueError
    assert str(said) == "numel (2097152) exceeds triton maximum tensor numel (1048576)"
    assert said.__cause__ is None


def test_an_operator_s_error_has_no_cause() -> None:
    assert failure(shapes).__cause__ is None
    assert failure(asserted).__cause__ is None


def test_without_the_alias_nothing_is_added() -> None:
    errors.triton_words.shown = False
    error = failure(nested)
    assert "Triton" not in str(error)
    assert error.__cause__ is None
    assert "exceeds triton maximum tensor numel" in str(error.triton_words)


def changed_global() -> Callable[[], object]:
    kernel, out = jit(stores_global), np.zeros(1)
    kernel[(1,)](out)
    globals()["SIZE"] = 4
    return lambda: kernel[(1,)](out)


def stores_global(out):
    tl.store(out, SIZE)


def test_a_changed_global_has_triton_s_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SIZE", 3)
    launch = changed_global()
    with pytest.raises(RuntimeError, match="Global variable SIZE has changed since we compiled"):
        launch()


def test_strict_kernels_keep_triton_s_powers_of_two() -> None:
    error = errors.NonPowerOfTwo("the length of arange", 3)
    assert error.triton_words == "the length of arange must be a power of 2"


def test_triton_s_constructor_makes_an_error() -> None:
    src = "def kernel(x):\n    x = nothing\n"
    node = ast.parse(src).body[0].body[0]  # pyright: ignore[reportAttributeAccessIssue]
    error = errors.CompilationError(src, node, "no such thing")
    assert str(error).splitlines() == [
        "no such thing [TW100]",
        "  Triton: at 2:4:",
        "def kernel(x):",
        "    x = nothing",
        "    ^",
    ]
    assert (error.error_message, error.src, error.node) == ("no such thing", src, node)
    assert "<source unavailable>" in str(errors.CompilationError(None, node, "x"))
    assert str(pickle.loads(pickle.dumps(errors.CompilationError("", None, "x")))) == "x [TW100]"


class OwnError(errors.CompilationError):
    def __init__(self, src: str, node: object) -> None:
        super().__init__(src, node, "own words")


def test_an_error_is_derived_from_as_triton_s() -> None:
    with pytest.raises(errors.CompilationError, match="own words"):
        raise OwnError("", None)
    assert errors.OutOfResources(9, 8, "shared memory").triton_words == (
        "out of resource: shared memory, Required: 9, Hardware limit: 8"
    )
    assert errors.PTXASError("bad").error_message == "ptxas failed: bad\nPTXAS error: bad"
