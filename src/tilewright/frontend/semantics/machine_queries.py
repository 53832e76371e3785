"""Clocks, program indices, and compile-time queries about the target."""

from __future__ import annotations

from tilewright import language as tl
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.literal_constants import constant
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.ir.types import i32
from tilewright.language import constexpr, tensor
from tilewright.ops import AsmOp, TimerOp, VolatileAsmOp

cuda, target = tl.extra.cuda, tl.target_info

DEPENDENT_LAUNCHES = 90
"""The least compute capability with dependent launches: a kernel may start early."""


@implements(cuda.globaltimer)
def globaltimer(ctx: Context) -> tensor:
    return ctx.tensor(TimerOp())


@implements(cuda.smid)
def smid(ctx: Context) -> tensor:
    if not ctx.options.capability:
        return tensor(constant(ctx, 0, i32))
    return ctx.tensor(AsmOp((), "mov.u32 $0, %smid;", "=r", (i32,)))


@implements(cuda.num_threads)
def num_threads(ctx: Context) -> constexpr:
    return constexpr(32 * ctx.options.warps or 1)


@implements(cuda.num_warps)
def num_warps(ctx: Context) -> constexpr:
    return constexpr(ctx.options.warps or 1)


@implements(cuda.gdc_wait)
def gdc_wait(ctx: Context) -> None:
    _dependent_launch(ctx, "griddepcontrol.wait")


@implements(cuda.gdc_launch_dependents)
def gdc_launch_dependents(ctx: Context) -> None:
    _dependent_launch(ctx, "griddepcontrol.launch_dependents")


def _dependent_launch(ctx: Context, instruction: str) -> None:
    if ctx.options.capability >= DEPENDENT_LAUNCHES:
        # Assembly has a result, which is unused.
        text = f"{instruction}; mov.u32 $0, 0;"
        ctx.emitter.emit(VolatileAsmOp((), text, "=r", (i32,)))


@implements(target.current_target)
def current_target(ctx: Context) -> tl.target_info.Target:
    capability = ctx.options.capability
    return target.Target("cuda", capability, 32) if capability else target.CPU


@implements(target.is_cuda)
def is_cuda(ctx: Context) -> constexpr:
    return constexpr(ctx.options.capability > 0)


@implements(target.cuda_capability_geq)
def cuda_capability_geq(ctx: Context, major: object, minor: object = 0) -> constexpr:
    function = "cuda_capability_geq"
    first = constant_arguments.integer(ctx, function, "major", major)
    second = constant_arguments.integer(ctx, function, "minor", minor)
    return constexpr(ctx.options.capability >= 10 * first + second)


@implements(target.is_hip)
def is_hip(ctx: Context) -> constexpr:
    return constexpr(False)


@implements(target.is_hip_cdna3)
def is_hip_cdna3(ctx: Context) -> constexpr:
    return constexpr(False)


@implements(target.is_hip_cdna4)
def is_hip_cdna4(ctx: Context) -> constexpr:
    return constexpr(False)
