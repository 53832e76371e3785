"""`tl.atomic_poll`, written in the language."""

from __future__ import annotations

from typing import Any

from tilewright.language.dtypes import int32
from tilewright.language.extra.cuda import globaltimer
from tilewright.language.memory_functions import atomic_load
from tilewright.language.standard import min
from tilewright.language.stub_dispatch import device_function


@device_function
def poll(pointer: Any, expected: Any, sem: Any, scope: Any, timeout_ns: Any) -> Any:
    """Load repeatedly until all numbers are as expected, or the timeout expires."""
    start = globaltimer()
    found = atomic_load(pointer, None, sem, scope) == expected
    if timeout_ns is None:
        while _lacks_one(found):
            found = found | (atomic_load(pointer, None, sem, scope) == expected)
    else:
        while _lacks_one(found) & (globaltimer() - start < timeout_ns):
            found = found | (atomic_load(pointer, None, sem, scope) == expected)
    return found


@device_function
def _lacks_one(found: Any) -> Any:
    if found.type.is_block():
        return min(found.to(int32)) == 0
    return found == 0
