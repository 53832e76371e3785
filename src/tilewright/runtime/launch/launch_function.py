"""Launches from Python: those that native dispatch does not make, or not yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tilewright.compiler import CompiledKernel
from tilewright.runtime import launch
from tilewright.runtime.arguments.kernel_parameters import KernelParam
from tilewright.runtime.launch.bound_call import Binder, BoundCall
from tilewright.runtime.launch.compile_hooks import CompileSkipped
from tilewright.runtime.launch.variant import Variant
from tilewright.runtime.launch.variant_cache import VariantCache
from tilewright.runtime.launch_hooks import LaunchMetadata, launch_enter, launch_exit
from tilewright.support import Grid, grid_for, normal_grid

Describe = Callable[[CompiledKernel, tuple[int, int, int], BoundCall], dict[str, Any]]


class LaunchFunction:
    """Launches of a kernel from Python.

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
        self._binder = Binder(name, params, assigned)
        self._variants = variants
        self._describe = describe

    def bind(self, /, *args: object, **keywords: object) -> BoundCall:
        """Bind the arguments of a launch. Errors: see `Binder.bind`."""
        return self._binder.bind(args, keywords)

    def launch(self, grid: object, /, *args: object, **keywords: object) -> CompiledKernel | None:
        """Launch over a grid. None: a hook vetoed the compilation of the variant."""
        call = self._binder.bind(args, keywords)
        try:
            variant = self._variants.variant(call)
        except CompileSkipped:
            return None
        extents = grid_for(grid, call.named) if callable(grid) else normal_grid(grid)
        if launch_enter or launch_exit:
            self._launch_with_hooks(variant, extents, call)
        else:
            self._launch_variant(variant, extents, call)
        return variant.kernel

    def _launch_with_hooks(self, variant: Variant, extents: Grid, call: BoundCall) -> None:
        describe = partial(self._describe, variant.kernel, extents, call)
        metadata = LaunchMetadata(describe, call.host_arrays)
        launch_enter(metadata)
        self._launch_variant(variant, extents, call)
        # not in a `finally`: exit hooks are called only for launches that were made
        launch_exit(metadata)

    def _launch_variant(self, variant: Variant, extents: Grid, call: BoundCall) -> None:
        kernel, values = variant.kernel, variant.pick(call.values)
        if variant.pairs:
            overlaps = self._variants.overlaps
            kernel = overlaps.kernel_for(kernel, extents, variant.pick(call.args), values)
        if variant.checked:
            launch.launch_checked(kernel, extents, call, values)
        elif kernel is variant.kernel:
            variant.launch(extents, values)
        else:
            kernel.launcher.launch(extents, values)
