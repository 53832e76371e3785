"""Runs programs on guarded devices and compares them with the model."""

from __future__ import annotations

import gc
import itertools
import linecache
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.fuzz.program_dtypes import Array, Stops, Undefined, same_bits
from tests.fuzz.program_source import source
from tests.fuzz.program_tree import ArrayArg, Program
from tests.fuzz.reference_model import contents, expected
from tests.guarded_devices import Device, device_class
from tilewright.support import errors, settings
from tilewright.support.data_class import dataclass

_numbers = itertools.count()
_STOPPED = (errors.InvalidValue, errors.DeviceAssertionFailure)
"""What a step of 0 gives while compiling, and while running."""


@contextmanager
def collecting_later() -> Generator[None]:
    """A block of many programs, whose garbage is collected at its end: that is a sixth faster."""
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()
        gc.unfreeze()


@dataclass(frozen=True)
class Failure:
    """What is wrong with a program. device: or "model"; kind: "differs", an exception, a signal."""

    seed: int
    device: str
    kind: str
    detail: str

    @property
    def signature(self) -> tuple[str, str, str]:
        """Alike for failures that may have one cause."""
        words = self.detail.split("\n", 1)[0] if self.kind != "differs" else ""
        return self.device, self.kind, "".join(c for c in words if not c.isdigit())[:120]


@contextmanager
def kernel_of(program: Program) -> Generator[Any]:
    """The kernel of a program, whose source is in no file."""
    text = source(program)
    file = f"<program {program.seed}, {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": "fuzzed"}
    try:
        exec(compile(text, file, "exec"), names)
        yield names["kernel"]
    finally:
        del linecache.cache[file]


def device_of(program: Program, name: str) -> Device:
    """A new device; in the emulator a quarter of the programs run their warps in random order."""
    device = device_class(name)()
    device.seed = order_of(program)
    return device


def order_of(program: Program) -> int | None:
    """What decides the order of warps in the emulator; None for all in step, which is faster."""
    return program.seed if program.seed % 4 == 1 else None


def launched(program: Program, kernel: Any, device_name: str) -> dict[str, Array]:
    """The arrays of a program after its launch."""
    device = device_of(program, device_name)
    arrays: dict[str, Array] = {}
    for name, value in contents(program).items():
        same_as = program.array(name).same_as
        arrays[name] = arrays[same_as] if same_as else device.array(value)
    args = [arrays[a.name] if isinstance(a, ArrayArg) else a.value for a in program.args]
    verify = settings().compilation.scope(verify=program.seed % 32 == 0)
    with warnings.catch_warnings(), np.errstate(all="ignore"), verify:
        warnings.simplefilter("ignore")
        device.run(kernel, (program.grid,), *args, **program.words)
    return arrays


def difference(found: dict[str, Array], wanted: dict[str, Array]) -> str:
    """The first elements that differ, or nothing."""
    for name, array in wanted.items():
        same = same_bits(found[name], array)
        if not same.all():
            places = np.flatnonzero(~same)
            shown = "; ".join(f"{name}[{p}] is {found[name][p]}, not {array[p]}"
                              for p in places[:4])  # fmt: skip
            return f"{shown} ({len(places)} of {array.size})"
    return ""


def failure_of(
    program: Program, devices: Sequence[str], about_to: Callable[[str], None] = lambda _: None
) -> Failure | None:
    """The first failure of a program; about_to: is told what happens next.

    Raises Undefined for a program that has no single meaning.
    """
    about_to("model")
    try:
        wanted: dict[str, Array] | None = expected(program)
    except Stops:
        wanted = None
    about_to("source")
    with kernel_of(program) as kernel:
        for name in devices:
            if name in program.skip:
                continue
            about_to(name)
            failure = _failure_on(program, kernel, name, wanted)
            if failure is not None:
                return failure
    return None


def _failure_on(
    program: Program, kernel: Any, name: str, wanted: dict[str, Array] | None
) -> Failure | None:
    """wanted: None of a program that must stop with a designed error."""
    try:
        found = launched(program, kernel, name)
    except Exception as error:
        if wanted is None and isinstance(error, _STOPPED):
            return None
        return Failure(program.seed, name, type(error).__name__, str(error))
    detail = difference(found, wanted) if wanted is not None else ""
    if detail:
        return Failure(program.seed, name, "differs", detail)
    return Failure(program.seed, name, "accepted", "") if wanted is None else None


__all__ = ["Failure", "Undefined", "difference", "failure_of", "kernel_of", "launched"]
