"""Hooks around every launch, for profilers.

tilewright.runtime.launch_hooks.launch_enter.add(lambda metadata: print(metadata.get()["name"]))
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from tilewright.support import HookChain, LaunchMetadata, import_late

launch_enter: HookChain[[LaunchMetadata]] = HookChain()
launch_exit: HookChain[[LaunchMetadata]] = HookChain(reversed=True)


class _Ranges(threading.local):
    """The open ranges of launches in this thread, the latest last."""

    def __init__(self) -> None:
        self.open: list[ExitStack] = []


@contextmanager
def profiled_launches() -> Generator[None]:
    """A block in which launches are ranges of `torch.profiler` under the names of the kernels, and
    of NVTX if PyTorch has a GPU."""
    torch = import_late("torch")
    ranges = _Ranges()

    def begin(metadata: LaunchMetadata | None) -> None:
        # None for launches in compiled functions, which PyTorch itself records
        name = "kernel" if metadata is None else str(metadata.get()["name"])
        with ExitStack() as stack:
            stack.enter_context(torch.profiler.record_function(name))
            if torch.cuda.is_available():
                stack.enter_context(torch.cuda.nvtx.range(name))
            ranges.open.append(stack.pop_all())

    def end(metadata: LaunchMetadata | None) -> None:
        ranges.open.pop().close()

    launch_enter.add(begin)
    launch_exit.add(end)
    try:
        yield
    finally:
        launch_enter.remove(begin)
        launch_exit.remove(end)
