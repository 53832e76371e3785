"""`compile`: from a source to a compiled kernel, through the disk cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from tilewright.backends import (
    Backend,
    CommonOptions,
    GPUTarget,
    StageContext,
    backend_named,
    default_backend,
)
from tilewright.compiler.kernel import Artifact, Artifacts, CompiledKernel
from tilewright.compiler.sources import SOURCE, IRSource, KernelSource
from tilewright.compiler.stages import Run, dump, dump_metadata
from tilewright.compiler.store import Entry, package_version, shared_store
from tilewright.frontend import FrontendOptions
from tilewright.ir import Module, parse_module
from tilewright.support import errors, settings, timed, user_boundary

Words = Mapping[str, Any]


def compile(
    src: KernelSource | IRSource | str | Path,
    target: GPUTarget | None = None,
    options: Words | CommonOptions | None = None,
) -> CompiledKernel:
    """Compile a kernel; no device is needed for a target that is given.

    src: a kernel with types, or a stage of one (a path of a file stands for its `IRSource`);
    target: default is this machine; options: of the target's backend, by name.
    Errors: CompilationErrors in the kernel, BackendErrors, InvalidOption.
    """
    with user_boundary:
        source = IRSource(src) if isinstance(src, str | Path) else src
        backend = default_backend() if target is None else backend_named(target.backend)
        if not isinstance(options, CommonOptions):
            options = options_of(backend, options or {})
        return compile_source(source, backend, target or backend.target(), options)


def options_of(backend: Backend, words: Words) -> CommonOptions:
    """The options of a backend by name; UnknownName for one that it does not have."""
    known = backend.options.names()
    for word in words:
        if word not in known:
            raise errors.UnknownName("option", word, known, f"the backend {backend.name}")
    defaults: dict[str, Any] = {"enable_fp_fusion": settings().compilation.fp_fusion}
    if settings().compilation.debug:
        defaults["debug"] = True
    return backend.options(**{**defaults, **words})


def frontend_options(backend: Backend, options: CommonOptions) -> FrontendOptions:
    """What of the options changes the meaning of a kernel."""
    return FrontendOptions(
        backend=backend.name,
        f32_default_precision=settings().compilation.f32_default
        or options.default_dot_input_precision,
        debug=options.debug,
        sanitize_overflow=options.sanitize_overflow,
    )


def _kernel_hash(
    source: KernelSource | IRSource, backend: Backend, target: GPUTarget, options: CommonOptions
) -> str:
    """The name of a compiled kernel: a sha256 over all that decides its code."""
    parts = (
        source.key(),
        repr(options),
        repr(target),
        settings().cache_key(),
        backend.version(target),
        package_version(),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def compile_source(
    source: KernelSource | IRSource, backend: Backend, target: GPUTarget, options: CommonOptions
) -> CompiledKernel:
    """As `compile`, with everything decided."""
    digest = _kernel_hash(source, backend, target, options)
    front = frontend_options(backend, options)
    overridden = settings().compilation.override_dir is not None
    store = shared_store()
    entry: Entry | None = None
    if not (overridden or settings().cache.always_compile):
        with timed("disk cache"):
            entry = store.read(digest)
    if entry is not None:
        metadata, made = entry.metadata, dict[str, Artifact](entry.artifacts)
    else:
        context = StageContext(target, options, {**asdict(options), "hash": digest})
        made = Run(source, backend, context, digest).run(front)
        metadata = json.loads(json.dumps(context.metadata))  # as it comes back from the cache
        entry = _entry(metadata, made)
        if not overridden:
            store.write(digest, entry)
    _dump_all(source.name, digest, entry)
    asm = Artifacts(made, backend, target, partial(_front_end_module, source, front))
    metadata = {**metadata, **asdict(options), "target": target}
    return CompiledKernel(source, backend, target, asm, metadata)


def _entry(metadata: dict[str, Any], made: Mapping[str, Artifact]) -> Entry:
    return Entry(metadata, {k: v for k, v in made.items() if not isinstance(v, Module)})


def _dump_all(kernel: str, digest: str, entry: Entry) -> None:
    folder = settings().compilation.dump_dir
    if folder is not None:
        dump(folder, kernel, digest, entry.artifacts)
        dump_metadata(folder, kernel, digest, entry.metadata)


def _front_end_module(source: KernelSource | IRSource, options: FrontendOptions) -> Module:
    """The tile IR before any pass of a backend."""
    if isinstance(source, KernelSource):
        return source.lower(options)
    if source.extension in (SOURCE, "tile", "ttir"):
        return parse_module(source.text)
    raise errors.InvalidOption("artifact", f"one after {source.extension}", SOURCE)


def compile_kernel(
    module: Module, backend: Backend, target: GPUTarget, options: CommonOptions
) -> CompiledKernel:
    """Compile a module of tile IR, which is changed in place; the disk cache has no part in it."""
    source = IRSource("", SOURCE, {"name": module.kernel.name})
    context = StageContext(target, options, {**asdict(options), "hash": "0" * 64})
    made = Run(source, backend, context, "0" * 64).run_module(module)
    asm = Artifacts(made, backend, target)
    return CompiledKernel(source, backend, target, asm, {**context.metadata, "target": target})
