"""`triton._utils` and small functions of `triton.runtime` that other packages import.

A path is a tuple of indices into nested tuples and lists.
"""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from tilewright.compiler import find_type, name_of_type, type_named
from tilewright.language import TRITON_MAX_TENSOR_NUMEL
from tilewright.runtime import dtype_of
from tilewright.support import errors

AnyType = TypeVar("AnyType")
Path = tuple[int, ...]


def find_paths_if(iterable: Any, pred: Callable[[Path, Any], bool]) -> list[Path]:
    """The paths of the leaves for which `pred(path, leaf)` holds, in order."""
    return [path for path, leaf in _leaves(iterable, ()) if pred(path, leaf)]


def _leaves(value: Any, path: Path) -> Iterable[tuple[Path, Any]]:
    if not isinstance(value, tuple | list):
        yield path, value
        return
    for index, item in enumerate(cast("Sequence[Any]", value)):
        yield from _leaves(item, (*path, index))


def get_iterable_path(iterable: Any, path: Path) -> Any:
    """The leaf at a path."""
    for index in path:
        iterable = iterable[index]
    return iterable


def is_power_of_two(x: int) -> bool:
    """Whether an integer is a power of two, or zero."""
    return x & (x - 1) == 0


def validate_block_shape(shape: Sequence[int]) -> int:
    """The number of elements of a block. Errors: NonPowerOfTwo, BlockTooLarge, TypeError."""
    elements = 1
    for extent in shape:
        if not is_power_of_two(extent):
            raise errors.NonPowerOfTwo("an extent of a block", extent)
        elements *= extent
    if elements > TRITON_MAX_TENSOR_NUMEL:
        raise errors.BlockTooLarge(tuple(shape), elements, TRITON_MAX_TENSOR_NUMEL)
    return elements


class _TypeNames(dict[str, str]):
    """Name of a dtype -> its name in signatures, resolved at each lookup."""

    def __missing__(self, name: str) -> str:
        """Look a name up. Raises KeyError for a name that is no dtype."""
        type_ = find_type(name)
        if type_ is None:
            raise KeyError(name)
        return name_of_type(type_)


type_canonicalisation_dict = _TypeNames()


def canonicalize_dtype(dtype: Any) -> str:
    """The name that signatures have for a dtype of torch, NumPy or the language: "fp16", "u1"."""
    return name_of_type(dtype_of(dtype))


def canonicalize_ptr_dtype(dtype: Any, is_const: bool) -> str:
    """The name of a pointer to elements of a dtype: "*fp16"; "*kfp16" if they are only read."""
    return f"{'*k' if is_const else '*'}{canonicalize_dtype(dtype)}"


def get_primitive_bitwidth(dtype: str) -> int:
    """Bits of a type by the name that signatures have for it."""
    return cast("Any", type_named(dtype, "dtype")).bits


def get_full_name(fn: Callable[..., Any]) -> str:
    """Module and qualified name of a function."""
    return f"{fn.__module__}.{fn.__qualname__}"


def get_jit_fn_file_line(fn: Any) -> tuple[str, int]:
    """File and line of the `def` of a kernel."""
    lines, first = inspect.getsourcelines(fn.fn)
    above = next(i for i, line in enumerate(lines) if line.lstrip().startswith("def "))
    return fn.fn.__code__.co_filename, first + above


def is_namedtuple(val: object) -> bool:
    """Whether something is a class of named tuples."""
    return isinstance(val, type) and issubclass(val, tuple) and "_fields" in dir(cast("Any", val))


def path_key(key: str) -> str:
    """A hexadecimal text in base 32, without padding: the folder of a kernel in Triton's cache."""
    return base64.b32encode(bytes.fromhex(key)).decode().rstrip("=")
