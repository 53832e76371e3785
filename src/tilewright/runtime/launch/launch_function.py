"""Launches one kernel from Python: by generated code, or step by step if its variant is new."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tilewright.compiler import CompiledKernel
from tilewright.runtime.arguments.kernel_parameters import KernelParam
from tilewright.runtime.launch.bound_call import BoundCall, bind
from tilewright.runtime.launch.compile_hooks import CompileSkipped
from tilewright.runtime.launch.launch_code import launch_functions
from tilewright.runtime.launch.variant import Variant
from tilewright.runtime.launch.variant_cache import VariantCache
from tilewright.runtime.launch_hooks import LaunchMetadata, launch_enter, launch_exit
from tilewright.support import Grid, attribute_late, grid_for, normal_grid, user_boundary

_CHECKED = "tilewright.runtime.launch.checked_launch:launch_checked"

Launch = Callable[[Grid, Sequence[Any]], object]
Describe = Callable[[CompiledKernel, tuple[int, int, int], BoundCall], dict[str, Any]]


class LaunchFunction:
    """How Python launches a kernel.

    launch(grid, *args, **keywords) -> CompiledKernel: the generated function (see `launch_code`).
    describe(kernel, extents, call) -> the metadata of a launch, called if a launch hook reads it;
    assigned: the settings of compilation that were assigned in this process.
    """

    def __init__(
        self,
        name: str,
        params: Sequence[KernelParam],
        variants: VariantCache,
        describe: Describe,
        assigned: Mapping[str, object],
    ) -> None:
        self._name = name
        self._params = params
        self._variants = variants
        self._describe = describe
        self._assigned = assigned
        environment = {
            "boundary": user_boundary,
            "variants": variants.by_key,
            "clock": variants.clock,
            "assigned": assigned,
            "bind_and_launch": self._bind_and_launch,
            "launch_for": self._launch_for,
            "enter": launch_enter,
            "exit": launch_exit,
            "normal_grid": normal_grid,
            "grid_for": grid_for,
        }
        self.launch, self._order = launch_functions(name, params, environment)

    def bind(self, /, *args: object, **keywords: object) -> BoundCall:
        """The launch with these arguments, which is not made.

        Errors: ArgumentCount, MissingArgument, UnknownArgument.
        """
        given, rest, others = self._order(None, *args, **keywords)
        return bind(self._name, self._params, given, rest, others, self._assigned)

    def launch_slowly(
        self, grid: object, /, *args: object, **keywords: object
    ) -> CompiledKernel | None:
        """As `launch`, and without its generated code: for kernels that check their accesses."""
        return self._bind_and_launch(grid, *self._order(None, *args, **keywords))

    def _bind_and_launch(
        self,
        grid: object,
        args: Sequence[object],
        rest: Sequence[object],
        keywords: Mapping[str, object],
    ) -> CompiledKernel | None:
        """Where generated code ends: a new variant, launch hooks, or arguments with a mistake."""
        call = bind(self._name, self._params, args, rest, keywords, self._assigned)
        try:
            variant = self._variants.variant(call)
        except CompileSkipped:
            return None
        extents = grid_for(grid, call.named)
        describe = partial(self._describe, variant.kernel, extents, call)
        metadata = LaunchMetadata(describe, call.host_arrays)
        launch_enter(metadata)
        launch = variant.launch
        # A check for races gets the addresses of the arrays, and reports what does go wrong.
        if variant.pairs and "race" not in variant.kernel.metadata.options.check:
            launch = self._launch_for(variant, extents, call.args, call.values)
        values = variant.pick(call.values)
        if hasattr(variant.kernel.metadata, "checks"):
            # Loaded late: the errors are those of the interpreter, which needs NumPy.
            launch_checked: Any = attribute_late(_CHECKED)
            launch_checked(variant.kernel, extents, call, values)
        else:
            launch(extents, values)
        # not in a `finally`: hooks at the exit see only launches that were made
        launch_exit(metadata)
        return variant.kernel

    def _launch_for(
        self, variant: Variant, grid: Grid, args: Sequence[Any], values: Sequence[Any]
    ) -> Launch:
        """How to launch a variant with arguments that may overlap; warns if they must not."""
        overlaps, pick = self._variants.overlaps, variant.pick
        kernel = overlaps.kernel_for(variant.kernel, grid, pick(args), pick(values))
        return variant.launch if kernel is variant.kernel else kernel.launcher.launch
