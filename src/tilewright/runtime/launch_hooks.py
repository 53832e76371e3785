"""Functions that are called around every launch, for profilers.

tilewright.runtime.launch_hooks.launch_enter.add(lambda metadata: print(metadata.get()["name"]))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.support import HookChain


class LaunchMetadata:
    """The description of a launch that hooks receive; computed at the first `get`.

    arrays() -> the arguments that are arrays in the memory of the host.
    """

    def __init__(
        self,
        compute: Callable[[], dict[str, Any]],
        arrays: Callable[[], list[Any]] = list,
    ) -> None:
        self.arrays = arrays
        self._compute = compute
        self._found: dict[str, Any] | None = None

    def get(self) -> dict[str, Any]:
        """name, kernel, grid, and what the kernel's own `launch_metadata` function adds."""
        if self._found is None:
            self._found = self._compute()
        return self._found


launch_enter: HookChain[[LaunchMetadata]] = HookChain()
launch_exit: HookChain[[LaunchMetadata]] = HookChain(reversed=True)
