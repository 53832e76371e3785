"""Counter-based random numbers: Philox4x32-10, or 4x64 for 64-bit counters.

The same seed and offset give the same number on every backend, in every tile shape; a backward pass
can draw the numbers of the forward pass again. Source: Salmon, Moraes, Dror, Shaw, "Parallel random
numbers: as easy as 1, 2, 3", SC 2011. The key is the seed; the counter words are (offset low,
offset high, 0, 0).
"""

from __future__ import annotations

import builtins

from tilewright.language.compile_time import constexpr
from tilewright.language.core import Operand
from tilewright.language.stub_dispatch import builtin
from tilewright.language.tensors import tensor

Tensors4 = builtins.tuple[tensor, tensor, tensor, tensor]

# A constexpr, as in Triton: kernels name it as a default.
N_ROUNDS_DEFAULT = constexpr(10)
"""Rounds of Philox that its authors recommend."""


@builtin
def philox(
    seed: Operand,
    c0: Operand,
    c1: Operand,
    c2: Operand,
    c3: Operand,
    n_rounds: int | constexpr = 10,
) -> Tensors4:
    """Four tiles of random words for the counter (c0, c1, c2, c3): uint32, or uint64 if c0 has 64
    bits.

    seed: an integer, taken as uint64; with 32-bit counters its halves are the two key words.
    """
    ...


@builtin
def philox_impl(
    c0: Operand,
    c1: Operand,
    c2: Operand,
    c3: Operand,
    k0: Operand,
    k1: Operand,
    n_rounds: int | constexpr = 10,
) -> Tensors4:
    """The rounds of `philox` for a key of two words; all words uint32 or all uint64."""
    ...


@builtin
def randint4x(seed: Operand, offset: Operand, n_rounds: int | constexpr = 10) -> Tensors4:
    """Four tiles of uniform uint32 words in the shape of `offset`; the cheapest form."""
    ...


@builtin
def randint(seed: Operand, offset: Operand, n_rounds: int | constexpr = 10) -> tensor:
    """A tile of uniform uint32 words in the shape of `offset`."""
    ...


@builtin
def uint_to_uniform_float(x: Operand) -> tensor:
    """Random words of 32 or 64 bits as fp32 in [0, 1)."""
    ...


@builtin
def rand(seed: Operand, offset: Operand, n_rounds: int | constexpr = 10) -> tensor:
    """A tile of uniform fp32 numbers in [0, 1) in the shape of `offset`."""
    ...


@builtin
def rand4x(seed: Operand, offsets: Operand, n_rounds: int | constexpr = 10) -> Tensors4:
    """Four tiles of uniform fp32 numbers in [0, 1)."""
    ...


@builtin
def pair_uniform_to_normal(u1: Operand, u2: Operand) -> builtins.tuple[tensor, tensor]:
    """Two independent normal numbers from two uniform ones (Box and Muller)."""
    ...


@builtin
def randn(seed: Operand, offset: Operand, n_rounds: int | constexpr = 10) -> tensor:
    """A tile of normal fp32 numbers, mean 0 and variance 1, in the shape of `offset`."""
    ...


@builtin
def randn4x(seed: Operand, offset: Operand, n_rounds: int | constexpr = 10) -> Tensors4:
    """Four tiles of normal fp32 numbers."""
    ...
