"""Functions applied to each element: of the language, or assembly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tilewright.language.compile_time import constexpr
from tilewright.language.core import Operand
from tilewright.language.dtypes import dtype
from tilewright.language.stub_dispatch import DeviceFunction, builtin
from tilewright.language.tensors import tensor


@builtin
def map_elementwise(scalar_fn: DeviceFunction, *args: Operand, pack: int | constexpr = 1) -> Any:
    """`scalar_fn`, a @jit function of scalars, applied to each element of `args`, which broadcast.

    It may branch and loop for each element by itself. Its result is one scalar, or a tuple, and so
    is that of `map_elementwise` of tiles. pack: elements for one call, adjacent along the last
    dimension: it takes `pack` scalars of the first argument, then those of the second, and so on,
    and returns `pack` of each result. It has no effects on memory.
    """
    ...


@builtin
def extern_elementwise(
    lib_name: str | constexpr,
    lib_path: str | constexpr,
    args: Sequence[Operand],
    arg_type_symbol_dict: Mapping[Any, Any],
    is_pure: bool | constexpr,
    _semantic: object = None,
) -> tensor:
    """A function of NVIDIA's libdevice applied to each element of `args`, which broadcast.

    arg_type_symbol_dict: the symbol and the dtype of its result, by the tuple of the dtypes of the
    arguments: {(tl.float32,): ("__nv_sinf", tl.float32)}. Computed as by `tl.extra.libdevice` on
    every device; lib_name, lib_path and _semantic are ignored.
    """
    ...


F = TypeVar("F", bound=Callable[..., Any])


def extern(fn: F) -> F:
    """Mark a Python function around `extern_elementwise`: kernels call it at compile time."""
    return fn


@builtin
def inline_asm_elementwise(
    asm: str | constexpr,
    constraints: str | constexpr,
    args: Sequence[Operand],
    dtype: dtype | Sequence[dtype],
    is_pure: bool | constexpr,
    pack: int | constexpr,
) -> Any:
    """PTX applied to each element of `args`, which broadcast; a tuple if `dtype` is one.

    asm: with $0, $1 ... for the results and then the arguments, of each `pack` elements; those of
    less than 32 bits are packed to registers. constraints: LLVM's, "=r,r" for example. is_pure: it
    has no side effects. On GPUs it is assembled unchanged; elsewhere the most common instructions
    are translated, and others are an error.
    """
    ...
