"""Waiting for numbers in memory."""

from __future__ import annotations

from typing import Any

from tilewright.language.control_functions import static_assert
from tilewright.language.dtypes import int32
from tilewright.language.extra.cuda import globaltimer
from tilewright.language.memory_functions import atomic_load
from tilewright.language.standard import min
from tilewright.language.stub_dispatch import device_function


@device_function
def atomic_poll(
    pointer: Any,
    expected_value: Any,
    sem: Any = None,
    scope: Any = None,
    timeout_ns: Any = None,
) -> Any:
    """Wait until memory holds `expected_value`, an integer; int1: where it did in time.

    sem: "acquire" (default) or "relaxed"; scope: as for `atomic_add`. timeout_ns: for all elements
    together, by `tl.extra.cuda.globaltimer`; None waits for ever.
    """
    static_assert(pointer.dtype.element_ty.is_int(), "atomic_poll waits for integers")
    start = globaltimer()
    found = atomic_load(pointer, None, sem, scope) == expected_value
    if timeout_ns is None:
        while _lacks(found):
            found = found | (atomic_load(pointer, None, sem, scope) == expected_value)
    else:
        while _lacks(found) & (globaltimer() - start < timeout_ns):
            found = found | (atomic_load(pointer, None, sem, scope) == expected_value)
    return found


@device_function
def _lacks(found: Any) -> Any:
    if found.type.is_block():
        return min(found.to(int32)) == 0
    return found == 0
