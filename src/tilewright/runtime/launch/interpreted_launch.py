"""Launches of kernels that run as Python (`interpret=True`): nothing is compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.backends import backend_named
from tilewright.compiler import frontend_options, options_of
from tilewright.eager import run_kernel
from tilewright.language import DeviceFunction
from tilewright.runtime.launch.bound_call import BoundCall
from tilewright.support import grid_for


def run_interpreted(
    kernel: DeviceFunction,
    grid: object,
    call: BoundCall,
    options: Mapping[str, Any],
    check: Sequence[str],
) -> None:
    """Run a kernel program by program. options: those of the kernel; check: its checks."""
    backend = backend_named("cpu")
    own = {name: value for name, value in options.items() if name != "check"}
    front = frontend_options(backend, options_of(backend, {**own, **call.options}))
    extents = grid_for(grid, call.named)
    arguments = {p.name: a for p, a in zip(call.params, call.args, strict=True)}
    arguments.update(call.meta)
    fixed = [p.name for p in call.params if p.do_not_specialize]
    run_kernel(kernel, extents, arguments, front, check=check, unspecialized=fixed)
