"""Kernels whose text the host writes: with the function that ends them, and its arguments, inside.

After triton-lang/triton, `python/triton_kernels/triton_kernels/specialize.py`, `matmul_ogs.py`: a
text becomes a `JITFunction` by `_unsafe_update_src`, tuples are put together in it, a descriptor of
the host is made again in the kernel from its own shape, functions take starred arguments, and
helpers ask what they were given by `isinstance`.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportPossiblyUnboundVariable=false

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.triton_alias.alias_fixture import triton_alias

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

with triton_alias():
    import triton
    import triton.language as tl


with triton_alias():
    import inspect
    import re
    import sys
    import types

    from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def kind_of(array: tl.tensor | tl.tensor_descriptor) -> tl.dtype:
    if isinstance(array, tl.tensor):
        return array.dtype.element_ty
    elif isinstance(array, tl.tensor_descriptor):
        return array.dtype
    else:
        raise ValueError("neither a pointer nor a descriptor")


@triton.jit
def copy_kernel(
    X, Y, YPtr, rows, FINISH: tl.constexpr, finish_args, MODE: tl.constexpr,
    BLOCK: tl.constexpr, unused=None,
):  # fmt: skip
    tl.static_assert(MODE is None or MODE == "described", "no other mode yet")
    if MODE is not None:
        Y = tl.make_tensor_descriptor(YPtr, Y.shape, Y.strides[:-1] + (1,), Y.block_shape)  # noqa: N806
    kind: tl.constexpr = kind_of(X)
    tl.static_assert(kind == kind_of(Y), "one dtype")
    row = tl.program_id(0) * BLOCK
    y = FINISH(X.load([row, 0]).to(tl.float32), *finish_args)
    if unused is None:
        Y.store([row, 0], y.to(kind))


@triton.jit
def scale_and_shift(x, factor, shift_ptr):
    return x * factor + tl.load(shift_ptr)


@triton.jit
def swish(x, beta):
    return x * tl.sigmoid(beta * x)


def defined(text: str, **names: Any) -> Any:
    """A kernel of a text that begins with `def`."""

    def empty() -> None:
        pass

    known = dict(empty.__globals__, **names)
    made = types.FunctionType(empty.__code__, known)
    exec(text, known)
    name = text[4 : text.index("(")]
    made.__signature__ = inspect.signature(known[name])  # pyright: ignore[reportAttributeAccessIssue]
    made.__name__ = name
    made.__module__ = sys.modules[__name__].__name__
    kernel = triton.JITFunction(made, do_not_specialize=["rows"])
    kernel._unsafe_update_src(text)
    return kernel


def specialized(kernel: Any, name: str, finish: Any, arguments: list[str]) -> Any:
    """The kernel with a function for FINISH, and a parameter for each of `finish_args`."""
    source = inspect.getsource(kernel.fn)
    header, body = re.split(r"\):.*\n", source[source.index("def ") :], maxsplit=1)
    header = header.replace("FINISH: tl.constexpr, finish_args", ", ".join(arguments))
    header = header.replace(kernel.__name__, name)
    first = f"    FINISH: tl.constexpr = {finish.__name__}\n"
    first += f"    finish_args = ({', '.join(arguments)},)\n"
    return defined(f"{header}):\n{first}{body}", **{finish.__name__: finish})


def run(kernel: Any, x: Any, *arguments: Any) -> Any:
    y = torch.zeros_like(x)
    rows, columns = x.shape
    triton.set_allocator(
        lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=x.device)
    )
    block = [16, columns]
    kernel[(triton.cdiv(rows, 16),)](
        TensorDescriptor.from_tensor(x, block), TensorDescriptor.from_tensor(y, block), y, rows,
        *arguments, "described", 16,
    )  # fmt: skip
    return y


def test_kernels_end_with_the_functions_that_the_host_writes_in(device: str) -> None:
    x = torch.randn(21, 8, device=device)
    shift = torch.full((1,), 3.0, device=device)
    shifted = specialized(copy_kernel, "shifted", scale_and_shift, ["factor", "shift_ptr"])
    swished = specialized(copy_kernel, "swished", swish, ["beta"])
    assert shifted.arg_names[4:6] == ["factor", "shift_ptr"] and "swish" in swished.src
    found = [run(shifted, x, 0.5, shift), run(swished, x, 2.0), run(copy_kernel, x, swish, (1.0,))]
    wide = x.double()
    expected = [wide * 0.5 + 3, wide * torch.sigmoid(2 * wide), wide * torch.sigmoid(wide)]
    for mine, true in zip(found, expected, strict=True):
        torch.testing.assert_close(mine.double(), true, rtol=1e-5, atol=1e-5)


def test_an_error_shows_the_line_of_the_written_text(device: str) -> None:
    kernel = defined("def wrong(x, rows):\n    tl.store(x, tl.arange(0, rows))\n")
    with pytest.raises(triton.CompilationError) as caught:
        kernel[(1,)](torch.zeros(4, device=device), 4)
    assert "tl.store(x, tl.arange(0, rows))" in str(caught.value)
