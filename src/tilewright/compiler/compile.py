"""Runs the stages of a backend on the IR of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from tilewright.backends import (
    Backend,
    CommonOptions,
    GPUTarget,
    StageContext,
    backend_named,
    default_backend,
)
from tilewright.compiler.kernel import Artifact, CompiledKernel
from tilewright.compiler.sources import ASTSource
from tilewright.frontend import FrontendOptions
from tilewright.ir import Module
from tilewright.support import errors, settings, user_boundary


def compile(  # noqa: A001
    src: ASTSource,
    target: GPUTarget | None = None,
    options: Mapping[str, object] | CommonOptions | None = None,
) -> CompiledKernel:
    """Compile a kernel for a target.

    target: default is this machine; options: of the target's backend, by name.
    """
    with user_boundary:
        backend = default_backend() if target is None else backend_named(target.backend)
        target = target or backend.target()
        if not isinstance(options, CommonOptions):
            options = options_of(backend, options or {})
        module = src.lower(frontend_options(backend, options))
        return compile_kernel(module, backend, target, options)


def options_of(backend: Backend, words: Mapping[str, object]) -> CommonOptions:
    """The options of a backend from launch words; InvalidOption for one that it does not have."""
    known = backend.options.names()
    for word, value in words.items():
        if word not in known:
            raise errors.InvalidOption(word, f"one of {', '.join(sorted(known))}", value)
    defaults: dict[str, object] = {"enable_fp_fusion": settings().compilation.fp_fusion}
    if settings().compilation.debug:
        defaults["debug"] = True
    return backend.options(**{**defaults, **words})  # pyright: ignore[reportArgumentType]


def frontend_options(backend: Backend, options: CommonOptions) -> FrontendOptions:
    """What of the options changes the meaning of a kernel."""
    return FrontendOptions(
        backend=backend.name,
        f32_default_precision=settings().compilation.f32_default
        or options.default_dot_input_precision,
        debug=options.debug,
        sanitize_overflow=options.sanitize_overflow,
    )


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
