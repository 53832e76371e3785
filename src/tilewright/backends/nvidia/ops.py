"""Ops of the NVIDIA backend only, with their NumPy rules."""

from __future__ import annotations

from typing import Any

from tilewright.ir import Effect, Op, Trait, Value, attr, operand, reference, scalar_integer, tile
from tilewright.ir.types import ARRAY_NAMES, Type, dtype_of, shape_of
from tilewright.ops import DotOp


class ConvertOp(Op, opcode="nvidia.convert", traits=(Trait.PURE,)):
    """result = x, its elements spread over the threads as the layout of the result type says"""

    x: Value = operand(tile)
    result_type: Type = attr()

    def infer(self) -> Type:
        return self.result_type


@reference(ConvertOp)
def convert(op: ConvertOp, x: Any) -> Any:
    """The same elements: NumPy has no layouts."""
    return x


class FmaDotOp(Op, opcode="nvidia.dot_fma", traits=(Trait.PURE,)):
    """result = acc + a @ b by multiplications and additions in the type of all three"""

    a: Value = operand(tile)
    b: Value = operand(tile)
    acc: Value = operand(tile)

    def infer(self) -> Type:
        return self.acc.type


@reference(FmaDotOp)
def fma_dot(op: FmaDotOp, a: Any, b: Any, acc: Any) -> Any:
    """Floats are summed in float64 and rounded once; integers wrap."""
    wide = "float64" if acc.dtype.kind == "f" else "int64"
    return (acc.astype(wide) + a.astype(wide) @ b.astype(wide)).astype(acc.dtype)


class RingOp(Op, opcode="nvidia.ring", traits=(Trait.PURE,)):
    """result = a ring of tiles in shared memory, all zeros; the first dim counts its slots

    number: tells the rings of a kernel apart.
    """

    result_type: Type = attr()
    number: int = attr(default=0)

    def infer(self) -> Type:
        return self.result_type


@reference(RingOp)
def ring(op: RingOp) -> Any:
    """Zeros, so that a slot read too early shows."""
    import ml_dtypes  # noqa: PLC0415 -- for names of small floats; only the oracle needs it
    import numpy as np  # noqa: PLC0415

    name = ARRAY_NAMES[dtype_of(op.result_type)]
    return np.zeros(shape_of(op.result_type), getattr(ml_dtypes, name, name))


class AsyncCopyOp(Op, opcode="nvidia.async_copy", effects=(Effect.BARRIER,)):
    """result = ring, but result[slot] = x, which is loaded; the copy is asynchronous

    writer, reader: the tile in the layout in which it is copied, and in which `load_slot` reads it;
    vector: elements that are consecutive and aligned in global memory.
    """

    ring: Value = operand(tile)
    x: Value = operand(tile)
    slot: Value = operand(scalar_integer)
    writer: Type = attr()
    reader: Type = attr()
    vector: int = attr()

    def infer(self) -> Type:
        return self.ring.type


@reference(AsyncCopyOp)
def async_copy(op: AsyncCopyOp, ring: Any, x: Any, slot: Any) -> Any:
    """A copy with one slot replaced."""
    changed = ring.copy()
    changed[int(slot)] = x if x.shape == ring.shape[1:] else x.swapaxes(-1, -2)
    return changed


class LoadSlotOp(Op, opcode="nvidia.load_slot", effects=(Effect.READ,)):
    """result = ring[slot], in the layout of the result type"""

    ring: Value = operand(tile)
    slot: Value = operand(scalar_integer)
    result_type: Type = attr()
    writer: Type = attr()
    vector: int = attr()

    def infer(self) -> Type:
        return self.result_type


@reference(LoadSlotOp)
def load_slot(op: LoadSlotOp, ring: Any, slot: Any) -> Any:
    """One slot."""
    return ring[int(slot)]


def reads_late(load: LoadSlotOp) -> bool:
    """Whether a slot is read part by part at its uses, instead of as a whole at the load.

    Products read so: the reads stand between their instructions instead of all before them.
    """
    # In one block only: a part is read at its first use, which must dominate the others.
    return all(isinstance(user, DotOp) and user.parent is load.parent for user in load.result.uses)


class CommitOp(Op, opcode="nvidia.commit", effects=(Effect.BARRIER,)):
    """Ends a group of asynchronous copies."""

    def infer(self) -> None:
        return None


class WaitOp(Op, opcode="nvidia.wait", effects=(Effect.BARRIER,)):
    """All but the `pending` latest groups of a thread's copies have arrived.

    Other threads see them after a barrier, see insert_shared_barriers.py.
    """

    pending: int = attr(default=0)

    def infer(self) -> None:
        return None


@reference(CommitOp)
def commit(op: CommitOp) -> tuple[()]:
    """Copies are done at once here."""
    return ()


@reference(WaitOp)
def wait(op: WaitOp) -> tuple[()]:
    """Nothing to wait for."""
    return ()
