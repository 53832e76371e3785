"""From the front end's module of a kernel to its explanation."""

from __future__ import annotations

from tilewright.backends.explanation import Explanation, LaunchSizes
from tilewright.backends.manifest import StageContext
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.explain.occupancy import resources_of
from tilewright.backends.nvidia.explain.op_rows import Obstacles, op_rows
from tilewright.backends.nvidia.explain.roofline import bound_of
from tilewright.backends.nvidia.passes.legalize_dots import fma_reason
from tilewright.backends.nvidia.passes.promote_copies import PromoteCopies
from tilewright.backends.nvidia.passes.select_products import product_obstacles
from tilewright.backends.nvidia.pipeline import front_pipeline, options_pipeline
from tilewright.ir import Module
from tilewright.ops import DotOp

__all__ = ["explain_kernel"]


def explain_kernel(module: Module, context: StageContext, sizes: LaunchSizes | None) -> Explanation:
    """See `Backend.explain`. Puts the module, which is changed, through the passes again: what is
    kept of a kernel has no places in the source."""
    arch = row_for(int(context.target.arch))
    options, metadata = context.options, context.metadata
    bound = None if sizes is None else bound_of(module.kernel, sizes, arch)
    by_fma = {op.loc: fma_reason(op, arch) for op in _products(module)}
    front_pipeline(int(context.target.arch), options.bulk_loads).run(module)
    obstacles = by_fma | product_obstacles(module.kernel, arch, options.num_warps)
    not_promoted = _not_promoted(module, context)
    options_pipeline(context).run(module)
    # With the warps that only ask for copies.
    warps = int(metadata.get("threads") or arch.warp_size * options.num_warps) // arch.warp_size
    resources = resources_of(
        arch, warps, metadata["registers"], metadata["spills"], metadata["shared"]
    )
    rows = op_rows(module.kernel, arch, obstacles, not_promoted)
    return Explanation(metadata["name"], arch.name, rows, resources, bound)


def _not_promoted(module: Module, context: StageContext) -> Obstacles:
    """Why the copy engine does not make loads through pointers that products read."""
    trial = module.kernel.clone()
    if context.options.bulk_loads == "all":
        for step in options_pipeline(context).steps:
            if isinstance(step.work, PromoteCopies):
                return step.work.promote(trial)
            step.work.run(trial)
    return {}


def _products(module: Module) -> list[DotOp]:
    return [op for op in module.kernel.walk() if isinstance(op, DotOp)]
