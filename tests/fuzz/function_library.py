"""Functions that programs reduce, scan and map with: their source, and what they compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.program_dtypes import Array
from tilewright.support.data_class import dataclass


@dataclass(frozen=True)
class Library:
    """A function that folds: its source, and what it makes of (left, right) arrays or pairs."""

    source: str
    combine: Callable[..., Any]


def _library(name: str, params: str, body: str) -> str:
    return f"@tilewright.jit\ndef {name}({params}):\n    return {body}\n"


def _better(value: Any, index: Any, value2: Any, index2: Any) -> Any:
    take = (value > value2) | ((value == value2) & (index < index2))
    return np.where(take, value, value2), np.where(take, index, index2)


def _both_sums(a: Array, b: Array, c: Array, d: Array) -> tuple[Array, Array]:
    return a + c, b ^ d


def _affine(a: Array, b: Array, c: Array, d: Array) -> tuple[Array, Array]:
    return a * c, b * c + d


LIBRARY: dict[str, Library] = {
    "larger": Library(_library("larger", "a, b", "tl.maximum(a, b)"), np.maximum),
    "total": Library(_library("total", "a, b", "a + b"), np.add),
    "parity": Library(_library("parity", "a, b", "a ^ b"), np.bitwise_xor),
    "product": Library(_library("product", "a, b", "a * b"), np.multiply),
    "total_in_steps": Library(
        "@tilewright.jit\ndef total_in_steps(a, b):\n"
        "    for k in range(2):\n        a = (a + b * k).to(b.dtype)\n    return a\n",
        np.add,
    ),
    "parity_while": Library(
        "@tilewright.jit\ndef parity_while(a, b):\n    c = 0\n"
        "    while c < 3:\n        a = a ^ b\n        c += 1\n    return a\n",
        np.bitwise_xor,
    ),
    "both_sums": Library(
        _library("both_sums", "a, b, c, d", "a + c, b ^ d"),
        _both_sums,
    ),
    "better": Library(
        "@tilewright.jit\ndef better(a, i, b, j):\n"
        "    take = (a > b) | ((a == b) & (i < j))\n"
        "    return tl.where(take, a, b), tl.where(take, i, j)\n",
        _better,
    ),
    "affine": Library(
        _library("affine", "a, b, c, d", "a * c, b * c + d"),
        _affine,
    ),
}
"""`affine` is associative only: for scans."""


def _climbed(x: Array) -> Array:
    return x ^ (x & 3)


def _summed_up(x: Array) -> Array:
    return x * x.dtype.type(3)


SCALAR_FUNCTIONS: dict[str, Library] = {
    "climbed": Library(
        "@tilewright.jit\ndef climbed(x):\n    c = x & 0\n"
        "    while c < (x & 3):\n        c += 1\n    return x ^ c\n",
        _climbed,
    ),
    "summed_up": Library(
        "@tilewright.jit\ndef summed_up(x):\n    s = x & 0\n"
        "    for k in range(3):\n        s += x\n    return s\n",
        _summed_up,
    ),
}
"""For `tl.map_elementwise`: each element loops by itself."""
