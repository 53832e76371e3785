"""Runs the stages of a backend on the IR of a kernel."""

from __future__ import annotations

from dataclasses import asdict

from tilewright.backends import Backend, CommonOptions, GPUTarget, StageContext
from tilewright.compiler.kernel import Artifact, CompiledKernel
from tilewright.ir import Module


def compile_kernel(
    module: Module, backend: Backend, target: GPUTarget, options: CommonOptions
) -> CompiledKernel:
    """Compile the frontend's module to a kernel of `backend`."""
    context = StageContext(target, options, {**asdict(options), "name": module.kernel.name})
    parameters = [str(arg.type) for arg in module.kernel.args]
    made: dict[str, Artifact] = {}
    artifact: Artifact = module
    for stage in backend.stages:
        artifact = made[stage.extension] = stage.run(artifact, context)
    return CompiledKernel(backend, target, made, context.metadata, parameters)
