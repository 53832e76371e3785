"""The state of a running program instance, and the ops that need it: memory, grid, messages.

`@machine_rule(LoadOp)` registers `rule(machine, op, inputs) -> tuple of arrays`. One program runs
at any time, so atomics need no locks, and a barrier has nothing to wait for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from time import perf_counter_ns
from typing import Any, NoReturn

import numpy as np

from tilewright.interp import access_errors
from tilewright.interp.access_checks import AccessChecks
from tilewright.interp.concrete_value import ConcreteValue
from tilewright.interp.element_arithmetic import compute, maximum, minimum
from tilewright.interp.kernel_memory import Access, Memory, WrongAddress, left_out
from tilewright.interp.numpy_dtypes import Array, as_array, bits_of
from tilewright.interp.waiting_programs import ProgramSchedule
from tilewright.ir import Op
from tilewright.ir.types import DType, PointerType, element_of, shape_of
from tilewright.ops import (
    AssertOp,
    AssumeOp,
    AtomicCasOp,
    AtomicOp,
    BarrierOp,
    LoadOp,
    NumProgramsOp,
    PrintOp,
    ProgramIdOp,
    StopOp,
    StoreOp,
    TimerOp,
    operand_text,
    printed_kind,
)
from tilewright.support import ForkLock, errors
from tilewright.support.data_class import dataclass
from tilewright.support.printed_lines import printed_line
from tilewright.support.registration import Registration

Grid = tuple[int, int, int]
MachineRule = Callable[["Machine", Any, Sequence[ConcreteValue]], tuple[Array, ...]]
MACHINE_RULES: dict[type[Op], MachineRule] = {}
"""The rule of each op that requires the machine."""


def write_to_stdout(text: str) -> None:
    """The default writer of messages."""
    sys.stdout.write(text)


@dataclass(slots=True)
class Machine:
    """The state in which program instances run.

    memory: the arrays; grid: extents; program: the indices of the running instance; write: receives
    the text that kernels print; checks: those beyond bounds; schedule: the order of waiting
    programs, or None for one program alone
    """

    memory: Memory
    grid: Grid = (1, 1, 1)
    program: Grid = (0, 0, 0)
    write: Callable[[str], object] = field(default=write_to_stdout)
    checks: AccessChecks | None = None
    schedule: ProgramSchedule | None = None

    def run(self, programs: Iterator[Grid], run_program: Callable[[], object]) -> None:
        """Run every program. run_program(): runs the one that `program` names to its end"""
        self.schedule = ProgramSchedule(run_program, self._enter)
        self.schedule.run(programs)

    def _enter(self, program: Grid) -> None:
        self.program = program
        if self.memory.races is not None:
            self.memory.races.enter(program)


machine_rule = Registration(MACHINE_RULES)
"""Registers the rule of op classes."""


@machine_rule(ProgramIdOp)
def program_id(machine: Machine, op: ProgramIdOp, inputs: Sequence[ConcreteValue]) -> tuple[Array]:
    # int32, as on GPUs.
    return (np.array(machine.program[op.axis], np.int32),)


@machine_rule(NumProgramsOp)
def num_programs(
    machine: Machine, op: NumProgramsOp, inputs: Sequence[ConcreteValue]
) -> tuple[Array]:
    return (np.array(machine.grid[op.axis], np.int32),)


@machine_rule(BarrierOp)
def barrier(machine: Machine, op: BarrierOp, inputs: Sequence[ConcreteValue]) -> tuple[()]:
    """Operations are executed in order anyway."""
    return ()


# --- memory ---------------------------------------------------------------------------------------


@machine_rule(LoadOp)
def load(machine: Machine, op: LoadOp, inputs: Sequence[ConcreteValue]) -> tuple[Array]:
    """Lanes that are masked off give `other`, or 0."""
    pointer = inputs[0]
    access, lanes = _access("load", pointer), _Lanes(machine, pointer, inputs[1:2])
    if machine.checks is not None:
        machine.checks.check_operands("load", pointer, inputs[1:2])
    plain = not getattr(op, "volatile", False)  # this rule loads through descriptors as well
    loaded = lanes.read(access._replace(polls=not plain))
    if machine.schedule is not None:
        machine.schedule.saw(access.root, lanes.addresses, loaded, plain=plain)
    if lanes.mask is None:
        return (loaded.reshape(pointer.data.shape),)
    shape = pointer.data.shape
    other = inputs[2].data if len(inputs) > 2 else left_out(access.dtype, shape)
    # a copy, since broadcast_to returns a read-only view
    result = np.broadcast_to(other, shape).copy()
    result[lanes.mask] = loaded
    return (result,)


@machine_rule(StoreOp)
def store(machine: Machine, op: StoreOp, inputs: Sequence[ConcreteValue]) -> tuple[()]:
    """Store lanes; of several with one address, the last one in row-major order wins."""
    lanes = _Lanes(machine, inputs[0], inputs[2:3])
    # only active lanes are written: a masked-off address may be anything
    if machine.checks is not None:
        machine.checks.check_operands("store", inputs[0], inputs[2:3], inputs[1])
    lanes.write(_access("store", inputs[0]), lanes.active(inputs[1].data))
    if machine.schedule is not None:
        machine.schedule.stored()
    return ()


@machine_rule(AtomicOp)
def atomic(machine: Machine, op: AtomicOp, inputs: Sequence[ConcreteValue]) -> tuple[Array]:
    """Lanes of one address are updated in row-major order; masked-off lanes give 0."""
    return atomic_update(machine, op.kind, op.scope, inputs)


def atomic_update(
    machine: Machine, kind: str, scope: str, inputs: Sequence[ConcreteValue]
) -> tuple[Array]:
    """The old elements at addresses that operands, where a mask holds, are combined with."""
    lanes = _Lanes(machine, inputs[0], inputs[2:3])
    access = _access(f"atomic {kind}", inputs[0])
    if machine.checks is not None:
        machine.checks.check_operands(access.verb, inputs[0], inputs[2:3], inputs[1])
    combine = _ATOMICS[kind]

    def update(old: Array, operand: Array) -> Array:
        return combine(access.dtype, old, operand)

    operand = lanes.active(inputs[1].data)
    old = _take_turns(lanes, access, scope, update, operand)
    return (lanes.whole(access, operand if kind == "store" else old),)


@machine_rule(AtomicCasOp)
def atomic_cas(machine: Machine, op: AtomicCasOp, inputs: Sequence[ConcreteValue]) -> tuple[Array]:
    """Compares bits, as hardware does: NaN equals itself, and 0.0 differs from -0.0."""
    lanes = _Lanes(machine, inputs[0], ())

    def update(old: Array, expected: Array, new: Array) -> Array:
        return as_array(np.where(bits_of(old) == bits_of(expected), new, old))

    operands = [lanes.active(value.data) for value in inputs[1:3]]
    access = _access("atomic cas", inputs[0])
    return (lanes.whole(access, _take_turns(lanes, access, op.scope, update, *operands)),)


_ATOMICS: dict[str, Callable[[DType, Array, Array], Array]] = {
    "add": lambda dtype, x, y: compute(dtype, np.add, x, y),
    "max": maximum,
    "min": minimum,
    "and": lambda dtype, x, y: as_array(x & y),
    "or": lambda dtype, x, y: as_array(x | y),
    "xor": lambda dtype, x, y: as_array(x ^ y),
    "load": lambda dtype, x, y: x,
    "store": lambda dtype, x, y: y,
    "xchg": lambda dtype, x, y: y,
}


class _Lanes:
    """The active elements of a memory access, flat."""

    def __init__(
        self, machine: Machine, pointer: ConcreteValue, mask: Sequence[ConcreteValue]
    ) -> None:
        self.machine = machine
        self.shape = pointer.data.shape
        self.pointers = pointer.data
        self.mask = np.broadcast_to(mask[0].data, self.shape) if mask else None
        self.addresses = self.active(pointer.data)

    def active(self, x: Array) -> Array:
        """Elements of the active lanes, in row-major order."""
        x = np.broadcast_to(x, self.shape)
        # the mask is applied after broadcasting, so that scalars work as values
        return as_array(x.reshape(-1) if self.mask is None else x[self.mask])

    def whole(self, access: Access, active: Array) -> Array:
        """A tile of the elements of the active lanes, and 0 in the others."""
        if self.mask is None:
            return active.reshape(self.shape)
        result = left_out(access.dtype, self.shape)
        result[self.mask] = active
        return result

    def read(self, access: Access, addresses: Array | None = None) -> Array:
        try:
            chosen = self.addresses if addresses is None else addresses
            return self.machine.memory.read(access, chosen)
        except WrongAddress as error:
            self._explain(error)

    def write(self, access: Access, values: Array, addresses: Array | None = None) -> None:
        try:
            chosen = self.addresses if addresses is None else addresses
            self.machine.memory.write(access, chosen, values)
        except WrongAddress as error:
            self._explain(error)

    def _explain(self, error: WrongAddress) -> NoReturn:
        """Raise the error with the program and the position in the tile."""
        # The first lane with the wrong address; several may have it.
        wrong = self.pointers == np.uint64(error.address)
        wrong = wrong if self.mask is None else wrong & self.mask
        index = tuple(map(int, np.argwhere(wrong)[0]))
        raise access_errors.out_of_bounds(error.detail, self.machine.program, index) from None


_UPDATES = ForkLock()
"""Held for an update: launches of other threads may update the same memory."""


def _take_turns(
    lanes: _Lanes, access: Access, scope: str, update: Callable[..., Array], *operands: Array
) -> Array:
    """Read, update and write each lane, in rounds of lanes whose addresses all differ.

    Returns the old values, flat.
    """
    # the dtype in memory, whatever the operands' is
    old, changes = np.empty(lanes.addresses.shape, left_out(access.dtype, ()).dtype), False
    for turn in _turns(lanes.addresses):
        addresses = lanes.addresses[turn]
        with _UPDATES, np.errstate(all="ignore"):
            old[turn] = lanes.read(access, addresses)
            new = update(old[turn], *[x[turn] for x in operands])
            lanes.write(access, new, addresses)
        changes = changes or not np.array_equal(bits_of(new), bits_of(old[turn]))
    if (schedule := lanes.machine.schedule) is not None:
        if changes:
            schedule.stored()
        else:
            outside = scope == "sys"
            schedule.saw(access.root, lanes.addresses, old, plain=False, outside=outside)
    return old


def _turns(addresses: Array) -> list[Array]:
    """Lane numbers in rounds: the k-th round has the k-th lane of every address."""
    # stable, so that lanes of one address stay in row-major order
    order = np.argsort(addresses, kind="stable")
    ordered = addresses[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if order.size else order
    if starts.size == order.size:
        # the usual case: all addresses differ, and one round has every lane
        return [np.arange(order.size)]
    run = np.repeat(starts, np.diff(np.r_[starts, order.size]))
    rank = np.arange(order.size) - run
    return [np.sort(order[rank == k]) for k in range(int(rank.max()) + 1)]


def _access(verb: str, pointer: ConcreteValue) -> Access:
    element = element_of(pointer.type)
    assert isinstance(element, PointerType)
    return Access(verb, element.element, pointer.root)


# --- assertions and prints ------------------------------------------------------------------------


@machine_rule(AssumeOp)
def assume(machine: Machine, op: AssumeOp, inputs: Sequence[ConcreteValue]) -> tuple[()]:
    """Checks the promise that the compiler relies on."""
    if not inputs[0].data.all():
        raise errors.InterpreterError(f"assumption does not hold in program {machine.program}")
    return ()


class ProgramStopped(Exception):
    """Ends a program instance at a `cf.stop`."""


@machine_rule(StopOp)
def stop(machine: Machine, op: StopOp, inputs: Sequence[ConcreteValue]) -> tuple[()]:
    record, *words = inputs
    for index, word in enumerate(words):
        address = record.data + np.uint64(index * word.data.itemsize)
        access = _access("store", record)
        machine.memory.write(access, address.reshape(1), word.data.reshape(1))
    raise ProgramStopped


@machine_rule(AssertOp)
def device_assert(machine: Machine, op: AssertOp, inputs: Sequence[ConcreteValue]) -> tuple[()]:
    holds = inputs[0].data
    if len(inputs) > 1:
        holds = as_array(holds | ~inputs[1].data)
    if not holds.all():
        index = tuple(map(int, np.argwhere(~holds)[0]))
        where = f" at index {index}" if index else ""
        raise errors.DeviceAssertionFailure(f"{op.message}{where}", machine.program)
    return ()


@machine_rule(TimerOp)
def timer(machine: Machine, op: TimerOp, inputs: Sequence[ConcreteValue]) -> tuple[Array]:
    if machine.schedule is not None:
        machine.schedule.timed()
    return (np.array(perf_counter_ns(), np.int64),)


@machine_rule(PrintOp)
def device_print(machine: Machine, op: PrintOp, inputs: Sequence[ConcreteValue]) -> tuple[()]:
    """One line for each element; see ops/print_lines.py."""
    if not inputs:
        machine.write(printed_line(op.prefix, "text", op.hex, 0, (), machine.program))
    lines: list[str] = []
    for number, value in enumerate(inputs):
        text, kind = operand_text(op.prefix, op.args, number), printed_kind(value)
        for index in np.ndindex(shape_of(value.type)):
            bits = _printed_bits(value.data[index], kind)
            lines.append(printed_line(text, kind, op.hex, bits, index, machine.program))
    machine.write("".join(lines))
    return ()


def _printed_bits(element: object, kind: str) -> int:
    """Integers unchanged, floats as the bits of a double."""
    array = as_array(element)
    return int(array.astype(np.float64).view(np.int64) if kind == "float" else array)
