"""Hooks around every launch, for profilers.

tilewright.runtime.launch_hooks.launch_enter.add(lambda metadata: print(metadata.get()["name"]))
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Generic, TypeVar

from tilewright.support import HookChain, LaunchMetadata, errors, import_late
from tilewright.support.asynchronous_exceptions import suppress

T = TypeVar("T")

launch_enter: HookChain[[LaunchMetadata]] = HookChain()
launch_exit: HookChain[[LaunchMetadata]] = HookChain(reversed=True)


def location_of(metadata: LaunchMetadata | None) -> str | None:
    """The "file:line" of the kernel that is launched, if it is known."""
    kernel = None if metadata is None else metadata.get().get("kernel")
    return getattr(getattr(kernel, "src", None), "location", None)


def title_of(metadata: LaunchMetadata | None) -> str:
    """The name of a launch in profiles: `add (program.py:12)`.

    None: a launch in a compiled function, which PyTorch itself records.
    """
    name = "kernel" if metadata is None else str(metadata.get()["name"])
    location = location_of(metadata)
    return name if location is None else f"{name} ({location})"


class OpenLaunches(threading.local, Generic[T]):
    """An item for each open launch of this thread, the latest last."""

    def __init__(self) -> None:
        self.items: list[T] = []


@contextmanager
def profiled_launches() -> Generator[None]:
    """A block in which launches are ranges of `torch.profiler` and NVTX, by the kernels' names and
    lines.

    NVTX: by the package `nvtx`, else by PyTorch if it has a GPU. Errors: ToolMissing if there is
    neither PyTorch nor `nvtx`.
    """
    makers, ranges = _range_makers(), OpenLaunches[ExitStack]()

    def begin(metadata: LaunchMetadata | None) -> None:
        title = title_of(metadata)
        with ExitStack() as stack:
            for make in makers:
                stack.enter_context(make(title))
            ranges.items.append(stack.pop_all())

    def end(metadata: LaunchMetadata | None) -> None:
        ranges.items.pop().close()

    launch_enter.add(begin)
    launch_exit.add(end)
    try:
        yield
    finally:
        launch_enter.remove(begin)
        launch_exit.remove(end)


def _range_makers() -> list[Callable[[str], AbstractContextManager[Any]]]:
    torch, nvtx = _imported("torch"), _imported("nvtx")
    makers: list[Callable[[str], AbstractContextManager[Any]]] = []
    if torch is not None:
        makers.append(torch.profiler.record_function)
    if nvtx is not None:
        makers.append(nvtx.annotate)
    elif torch is not None and torch.cuda.is_available():
        makers.append(torch.cuda.nvtx.range)
    if not makers:
        hint = "pip install 'tilewright[profile]', or torch"
        raise errors.ToolMissing("nvtx", "this Python's packages, as torch was", hint)
    return makers


def _imported(name: str) -> Any:
    """A module, or None if it is not installed."""
    with suppress(ModuleNotFoundError):
        return import_late(name)
    return None
