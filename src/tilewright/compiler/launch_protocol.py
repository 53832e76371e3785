"""Launches by the protocol of Triton's launchers, for generated code that uses it.

`torch.compile` writes a Python function for each of its kernels that computes the grid and calls

    run(x, y, z, stream, function, packed_metadata, launch_metadata, enter, exit, *arguments)

So `run` is written for one kernel as well: a launch takes as long as `kernel[grid](*arguments)`,
without the search for a variant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Run = Callable[..., None]

_MISSING = object()
_RUN = """
def run(x, y, z, stream, function, packed_metadata, launch_metadata, enter, exit{parameters}):
    if enter:
        enter(launch_metadata)
    taken = direct(x, y, z, stream{all_given}) if {last} is not MISSING else direct(
        x, y, z, stream{given}
    )
    if not taken:
        general(x, y, z, stream, [value for value in [{listed}] if value is not MISSING])
    if exit:
        exit(launch_metadata)
"""


def run_function(
    direct: Callable[..., bool], general: Callable[..., None], positions: Sequence[int], count: int
) -> Run:
    """`run` of a kernel, which takes all its arguments or only the run-time ones.

    count: number of arguments of the kernel; positions: of the run-time arguments among them;
    direct(x, y, z, stream, *run-time arguments): launches, unless it returns False for arguments of
    unusual kinds; general(x, y, z, stream, given arguments): launches with any arguments

    `run` ignores function and packed_metadata; the hooks are called with launch_metadata.
    """
    names = [f"a{i}" for i in range(count)]
    required, optional = names[: len(positions)], names[len(positions) :]
    text = _RUN.format(
        parameters="".join([*map(_next, required), *(f", {name}=MISSING" for name in optional)]),
        all_given="".join(_next(names[i]) for i in positions),
        given="".join(map(_next, required)),
        last=optional[-1] if optional else "None",
        listed=", ".join(names),
    )
    namespace: dict[str, Any] = {"direct": direct, "general": general, "MISSING": _MISSING}
    exec(text, namespace)  # noqa: S102 -- of numbered names only
    return namespace["run"]


def _next(name: str) -> str:
    return f", {name}"


def general_run_function(general: Callable[..., None]) -> Run:
    """`run` for a kernel without information about its arguments."""

    def run(
        x: int,
        y: int,
        z: int,
        stream: int | None,
        function: object,
        packed_metadata: object,
        launch_metadata: object,
        enter: Callable[..., object] | None,
        exit: Callable[..., object] | None,
        *args: object,
    ) -> None:
        if enter:
            enter(launch_metadata)
        general(x, y, z, stream, args)
        if exit:
            exit(launch_metadata)

    return run
