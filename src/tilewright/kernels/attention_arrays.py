"""Arguments of attention: its variant, the sizes of arrays, and their strides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from tilewright.kernels.arrays import Array, dtype_name, strides
from tilewright.kernels.attention_blocks import unchanged_scores
from tilewright.support.errors import did_you_mean


@dataclass(frozen=True, slots=True)
class Variant:
    """The variant of an attention; `attention` describes the fields."""

    causal: bool = False
    scale: float = 0.0
    window: tuple[int, int] = (-1, -1)
    at_end: bool = False
    score: Callable[..., Any] | None = None
    slope: Callable[..., Any] | None = None
    score_args: Sequence[Any] = ()
    starts: tuple[Array, Array, int, int] | None = None
    dropout: float = 0.0
    seed: int | Array = 0
    scales: tuple[float | Array, float | Array, float | Array] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.window, Sequence) or len(self.window) != 2:
            raise ValueError(f"a window is two numbers, (left, right), not {self.window!r}")
        if min(self.window) < -1:
            raise ValueError(f"a window cannot be negative: {self.window}; -1 is without limit")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), not {self.dropout}")
        if self.scales is not None and len(self.scales) != 3:
            raise ValueError(f"expected three scales, of q, k and v, found {len(self.scales)}")

    @property
    def right(self) -> int:
        """How many keys after its own position a query sees; -1: without limit."""
        return 0 if self.causal else self.window[1]

    @property
    def is_plain(self) -> bool:
        """Whether weights follow from scores by at most a causal mask, for arrays that the Tensor
        Memory Accelerator (TMA) can load."""
        is_dense = self.starts is None and not self.dropout
        return is_dense and self.score is None and self.window[0] < 0

    @property
    def first_rows(self) -> tuple[Array | None, Array | None]:
        """The first rows of the sequences of queries and of keys."""
        return self.starts[:2] if self.starts else (None, None)

    def scale_of(self, sizes: Sizes) -> float:
        """The factor of the scores."""
        return self.scale or sizes.head**-0.5

    def constants(self, sizes: Sizes) -> dict[str, Any]:
        """The constants of the kernels."""
        # a row's maximum is taken before scaling, unless a score function needs scaled scores
        score = unchanged_scores if self.scale < 0 and self.score is None else self.score
        return {
            "HEAD": sizes.head, "VALUE": sizes.value, "SHARED": sizes.shared,
            "LEFT": self.window[0], "RIGHT": self.right, "AT_END": self.at_end,
            "SCORE": score, "DROPOUT": self.dropout,
        }  # fmt: skip


def variant_of(function: str, causal: bool, scale: float, words: dict[str, Any]) -> Variant:
    """The variant of a call. Raises TypeError: an unknown keyword."""
    names = [field.name for field in fields(Variant)]
    for word in words.keys() - {*names}:
        hint = did_you_mean(word, names)
        raise TypeError(f"{function}() has no argument '{word}'{f'; {hint}' if hint else ''}")
    return Variant(causal, scale, **words)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of an attention. shared: heads of queries per head of keys; lengths: of the longest
    sequences; value: size of a row of v."""

    batch: int
    heads: int
    shared: int
    q_length: int
    k_length: int
    head: int
    value: int


def sizes_of(q: Array, k: Array, v: Array, variant: Variant) -> Sizes:
    """The sizes of arrays ([batch,] heads, length, head size), or, for packed
    sequences, (rows, heads, head size). Raises ValueError: mismatched shapes."""
    shapes = [tuple(int(n) for n in x.shape) for x in (q, k, v)]
    if len({len(shape) for shape in shapes}) > 1 or len(shapes[0]) not in (3, 4):
        raise ValueError(f"attention of arrays of the shapes {_listed(shapes)}: 3 or 4 dims each")
    kinds = [dtype_name(x) for x in (q, k, v)]
    if len({*kinds}) > 1:
        raise ValueError(f"attention of arrays of several types: {_listed(kinds)}")
    if variant.starts:
        # rows are in front
        (q_batch, *of_q), (k_batch, *of_k), (v_batch, *of_v) = (
            (len(variant.starts[0]) - 1, shape[1], shape[0], shape[2]) for shape in shapes
        )
    else:
        (q_batch, *of_q), (k_batch, *of_k), (v_batch, *of_v) = (
            (1, *shape)[-4:] for shape in shapes
        )
    heads, q_length, head = of_q
    if not q_batch == k_batch == v_batch or of_k[:2] != of_v[:2] or head != of_k[2]:
        raise ValueError(f"mismatched shapes of queries, keys and values: {_listed(shapes)}")
    if of_k[0] == 0 or heads % of_k[0]:
        raise ValueError(f"{heads} heads of queries are not a multiple of {of_k[0]} heads of keys")
    lengths = variant.starts[2:] if variant.starts else (q_length, of_k[1])
    return Sizes(q_batch, heads, heads // of_k[0], *lengths, head, of_v[2])


def _listed(things: Sequence[Any]) -> str:
    return ", ".join(map(str, things))


def row_strides(array: Array, packed: bool = False) -> tuple[int, int, int]:
    """Elements from batch to batch, from head to head, and from row to row. packed: the array is
    (rows, heads, head size). Raises ValueError: a row is not contiguous."""
    *outer, head, row, last = strides(array)
    if last != 1 and int(array.shape[-1]) > 1:
        raise ValueError("rows of queries, keys and values must be contiguous")
    return (0, row, head) if packed else (outer[0] if outer else 0, head, row)


def value_strides(array: Array, packed: bool = False) -> tuple[int, int, int, int]:
    """The same for values, and the stride within a row: columns may be contiguous instead."""
    *_, row, last = strides(array)
    if row == 1 and last != 1 and not packed:
        batch, head, _ = row_strides(array.swapaxes(-1, -2))
        return batch, head, 1, last
    return *row_strides(array, packed), 1


def total_strides(sums: Array | None) -> tuple[int, int]:
    """Strides of batches and heads in an array with one element per row."""
    if sums is None:
        return 0, 0
    *outer, head, _ = strides(sums)
    return outer[0] if outer else 0, head
