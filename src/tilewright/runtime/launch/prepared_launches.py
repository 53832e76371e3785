"""Launches that the layouts of some arrays decide, made by one call of machine code.

A function over arrays finds out from their shapes, strides and dtypes what it launches, which may
take longer than the launch. It prepares launches instead::

    prepared = kernel.prepared_launches("x_ptr", "out_ptr", "")

    def function(x, out, mode):
        if prepared.launch(x, out, mode):
            return                              # the launch was made
        grid, args = ...                        # decided by what `x`, `out` and `mode` are alone
        kernel[grid](*args)
        prepared.add((x, out, mode), grid, args)

A launch is made if it is known by type, dtype, device, alignment, shape and strides of arrays, by
floats, strings, truth values and None; all else is left to the function, as are launches with hooks
or of arrays that overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tilewright.runtime.launch.used_globals import GlobalCheck


class NativeLaunches(Protocol):
    """The same in machine code."""

    launch: Callable[..., bool]

    def add(
        self, objects: Sequence[object], grid: object, args: Sequence[Any], checks: Sequence[Any]
    ) -> None:
        """See `PreparedLaunches.add`."""
        ...


class PreparedLaunches:
    """See above.

    launch(*objects) -> whether a launch was prepared for such objects, and has been made now;
    make: what makes the machine code's side, None where there is none
    """

    def __init__(self, make: Callable[[], NativeLaunches] | None) -> None:
        self.launch: Callable[..., bool] = _unknown
        self._make = make
        self._launched = False
        self._native: NativeLaunches | None = None

    def add(
        self,
        objects: Sequence[object],
        grid: object,
        args: Sequence[object],
        checks: Sequence[GlobalCheck] = (),
    ) -> None:
        """Prepare the launch `kernel[grid](*args)`, which was just made, for objects like these.

        checks: what must be as it was: `get(name) is value` of each (get, name, value)
        """
        if self._native is None:
            # a process that launches once needs no machine code for it
            if self._make is None or not self._launched:
                self._launched = True
                return
            self._native = self._make()
            self.launch = self._native.launch
        self._native.add(objects, grid, args, checks)


def _unknown(*_objects: object) -> bool:
    return False
