"""`compile`: from a source to a compiled kernel, through the disk cache."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import asdict, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from tilewright import ir
from tilewright.backends import (
    Backend,
    CommonOptions,
    GPUTarget,
    StageContext,
    backend_named,
    default_backend,
)
from tilewright.compiler.artifacts import SOURCE, Artifact, Artifacts
from tilewright.compiler.compiled_kernel import CompiledKernel, Rebuild
from tilewright.compiler.kernel_metadata import KernelMetadata
from tilewright.compiler.kernel_store import Entry, Store, package_version, shared_store
from tilewright.compiler.sources import IRSource, KernelSource
from tilewright.frontend import FrontendOptions
from tilewright.ir import Module
from tilewright.support import (
    CompilationSettings,
    collection_paused,
    errors,
    import_late,
    kernel_hooks,
    settings,
    show_warnings,
    timed,
    user_boundary,
)
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass

T = TypeVar("T")
_TILE_IR = (SOURCE, "tile", "ttir")
Named = Mapping[str, Any]


def compile(
    src: KernelSource | IRSource | str | Path,
    target: GPUTarget | None = None,
    options: Named | CommonOptions | None = None,
) -> CompiledKernel:
    """Compile a kernel; a device is not needed if the target is given.

    src: a kernel with types, or a stage of one (a path of a file means its `IRSource`); target: the
    default is this machine; options: of the target's backend, by name. Errors: CompilationErrors in
    the kernel, BackendErrors, InvalidOption.
    """
    with user_boundary:
        source = IRSource(src) if isinstance(src, str | Path) else src
        backend = default_backend() if target is None else backend_named(target.backend)
        if not isinstance(options, CommonOptions):
            options = options_of(backend, options or {})
        return compile_source(source, backend, target or backend.target(), options)


def options_of(backend: Backend, named: Named) -> CommonOptions:
    """The options of a backend by name; UnknownName for an option that it does not have."""
    names = backend.options.names()
    for name in named:
        if name not in names:
            raise errors.UnknownName("option", name, names, f"the backend {backend.name}")
    compilation = settings().compilation
    defaults: dict[str, Any] = {
        "enable_fp_fusion": compilation.fp_fusion,
        "bulk_loads": compilation.bulk_loads,
    }
    # unlike the others, it is a switch for all kernels, whatever these options are
    forced: dict[str, Any] = {"debug": True} if compilation.debug else {}
    return _one(backend.options(**{**defaults, **named, **forced}))


@lru_cache(maxsize=1024)
def _one(options: T) -> T:
    """Equal options as one object, since many kernels have equal options."""
    return options


def frontend_options(
    backend: Backend, options: CommonOptions, target: GPUTarget | None = None
) -> FrontendOptions:
    """The options, and the kind of GPU target, that change the meaning of a kernel."""
    takes_ptx = any(stage.extension == "ptx" for stage in backend.stages)
    arch = target.arch if target is not None and takes_ptx else 0
    front = FrontendOptions(
        backend=backend.name,
        capability=arch if isinstance(arch, int) else 0,
        warps=options.num_warps if takes_ptx else 0,
        f32_default_precision=settings().compilation.f32_default
        or options.default_dot_input_precision,
        debug=options.debug,
        sanitize_overflow=options.sanitize_overflow,
        strict_triton=options.strict_triton,
        triton_limits=options.strict_triton or (takes_ptx and errors.triton_words.shown),
        ieee_rounding=options.ieee_rounding,
        int64_offsets=options.int64_offsets,
    )
    return _one(front)


def _inputs_hash(
    source: KernelSource | IRSource, target: GPUTarget, options: CommonOptions, settings_key: str
) -> str:
    """A sha256 of everything that determines a kernel's code, except for the tools."""
    parts = (source.key(), repr(options.meaningful()), repr(target), settings_key)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def kernel_hash(inputs: str, backend: Backend, target: GPUTarget) -> str:
    """The name of a compiled kernel in the disk cache of this machine."""
    parts = (inputs, backend.version(target), package_version(backend.name))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def rehearse(source: KernelSource, target: GPUTarget) -> None:
    """Compile a kernel only to import modules and start processes.

    Nothing is stored, and the last stage, which may use the device, is skipped.
    """
    backend = backend_named(target.backend)
    backend.prepare()
    options = options_of(backend, {})
    front, current = frontend_options(backend, options, target), settings()
    shorter = replace(backend, stages=backend.stages[:-1])
    store = shared_store(current.cache)
    Compilation(source, shorter, target, options, front, "", "", store, current.compilation).run()


def compile_source(
    source: KernelSource | IRSource, backend: Backend, target: GPUTarget, options: CommonOptions
) -> CompiledKernel:
    """`compile` with resolved target and options."""
    current = settings()
    inputs = _inputs_hash(source, target, options, current.cache_key())
    digest = kernel_hash(inputs, backend, target)
    front = frontend_options(backend, options, target)
    store, compilation = shared_store(current.cache), current.compilation
    work = Compilation(source, backend, target, options, front, inputs, digest, store, compilation)
    # Replacements of stages are not part of the key, so nothing may be stored or read.
    if current.compilation.override_dir is not None or kernel_hooks.stages is not None:
        return work.compiled(store=False)
    always = current.cache.always_compile
    cached = None if always else work.cached()
    if cached is None and current.cache.remote is not None and not always:
        cached, kernel = _remote_kernels().pulled_or_compiled(work, current.cache)
    else:
        kernel = cached or work.compiled()
    if cached is not None:
        show_warnings(getattr(cached.metadata, "warnings", ()))
    if kernel_hooks.listener is not None:
        kernel_hooks.listener(
            src=source,
            metadata=kernel.metadata.as_dict(),
            metadata_group=store.files(digest, kernel.name),
            times=work.times,
            cache_hit=cached is not None,
        )
    return kernel


@dataclass(slots=True)
class CompileTimes:
    """Microseconds of one compilation.

    ir_initialization: front end, or reading a kernel from the disk cache, for which the others are
    0; lowering_stages: (extension, time) of each stage of the back end; store_results: writing to
    the disk cache
    """

    ir_initialization: int = 0
    lowering_stages: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    store_results: int = 0

    @property
    def total_lowering(self) -> int:
        """Time of all stages."""
        return sum(time for _, time in self.lowering_stages)

    @property
    def total(self) -> int:
        """Time of the whole compilation."""
        return self.ir_initialization + self.total_lowering + self.store_results


@dataclass(frozen=True, slots=True)
class Compilation:
    """One kernel, from the disk cache or newly compiled.

    inputs: hash of what determines its code; digest: its name in the disk cache `store`
    """

    source: KernelSource | IRSource
    backend: Backend
    target: GPUTarget
    options: CommonOptions
    front: FrontendOptions
    inputs: str
    digest: str
    store: Store
    compilation: CompilationSettings
    times: CompileTimes = field(default_factory=CompileTimes)

    def module(self) -> Module:
        """The tile IR before any pass of a backend."""
        return _front_end_module(self.source, self.front)

    @property
    def starts_with_tile_ir(self) -> bool:
        """Whether the source is a kernel or tile IR, not a later stage."""
        return isinstance(self.source, KernelSource) or self.source.extension in _TILE_IR

    def cached(self) -> CompiledKernel | None:
        """The cached kernel, which is compiled again if it turns out to be unusable."""
        start = time.perf_counter_ns()
        with timed("disk cache"):
            entry = self.store.read(self.digest)
        self.times.ir_initialization = max(1, (time.perf_counter_ns() - start) // 1000)
        return None if entry is None else self.from_entry(entry)

    def from_entry(self, entry: Entry) -> CompiledKernel | None:
        """The kernel of an entry of the disk cache; None, and it is discarded, if it is useless."""
        try:
            artifacts = dict[str, Artifact](entry.artifacts)
            return self._kernel(entry, artifacts, self._recompiled, stored=True)
        except synchronous(Exception) as problem:  # valid, but incomplete
            self.store.discard(self.digest, repr(problem))
            return None

    def compiled(
        self, store: bool = True, publish: Callable[[Entry], object] | None = None
    ) -> CompiledKernel:
        """Run the stages of the backend. store: whether to write the result to the disk cache;
        publish: called with the result"""
        entry, artifacts = self.run()
        if publish is not None:
            publish(entry)
        start = time.perf_counter_ns()
        # only artifacts that the cache holds may be dropped from memory
        stored = store and self.store.write(self.digest, entry)
        self.times.store_results = (time.perf_counter_ns() - start) // 1000
        return self._kernel(entry, artifacts, stored=stored)

    def run(self) -> tuple[Entry, dict[str, Artifact]]:
        """Run all stages, perhaps elsewhere."""
        far = compile_elsewhere.get()
        start = time.perf_counter_ns()
        entry = None if far is None else far(self)
        if entry is not None:
            elapsed = (time.perf_counter_ns() - start) // 1000
            self.times.lowering_stages = [("elsewhere", elapsed)]
            return entry, dict[str, Artifact](entry.artifacts)
        metadata = {**asdict(self.options), "hash": self.digest, "target": asdict(self.target)}
        metadata["inputs"] = self.inputs
        if isinstance(self.source, KernelSource):
            metadata["constants"] = self.source.constant_texts
        context = StageContext(self.target, self.options, metadata)
        run = _run_stages().Run(self.source, self.backend, context, self.digest, self.compilation)
        artifacts = run.run(self.front)
        self.times.ir_initialization, *stages = run.times
        self.times.lowering_stages = list(zip(artifacts, stages, strict=False))
        return entry_of(context, artifacts), artifacts

    def artifacts(self) -> dict[str, Artifact]:
        """The artifacts of the stages, for a loaded kernel that has dropped them."""
        entry = self.store.read(self.digest)
        return self.run()[1] if entry is None else dict[str, Artifact](entry.artifacts)

    def _recompiled(self, problem: Exception) -> CompiledKernel:
        """Compile a kernel again that was stored but cannot be loaded."""
        self.store.discard(self.digest, problem)
        return self.compiled()

    def _kernel(
        self,
        entry: Entry,
        artifacts: dict[str, Artifact],
        rebuild: Rebuild | None = None,
        *,
        stored: bool,
    ) -> CompiledKernel:
        restore = self.artifacts if stored else None
        asm = Artifacts(artifacts, self.backend, self.target, self.module, restore)
        metadata = KernelMetadata(entry.metadata, self.options, self.target)
        kernel = CompiledKernel(self.source, self.backend, self.target, asm, metadata, rebuild)
        _dump_all(self.compilation.dump_dir, self.source.name, self.digest, entry)
        return kernel


compile_elsewhere: ContextVar[Callable[[Compilation], Entry | None] | None] = ContextVar(
    "tilewright_elsewhere", default=None
)
"""The function that compiles for this thread in another process, see `far_compiler`. It returns
None for a kernel that has to be compiled here."""


def _remote_kernels() -> Any:
    return import_late("tilewright.compiler.remote_kernels")


def _run_stages() -> Any:
    # a kernel from the disk cache needs none of it
    with collection_paused():
        return import_late("tilewright.compiler.run_stages")


def entry_of(context: StageContext, artifacts: Mapping[str, Artifact]) -> Entry:
    """A compiled kernel as the disk cache returns it."""
    metadata = json.loads(json.dumps(context.metadata))
    texts = {k: v for k, v in artifacts.items() if not isinstance(v, Module)}
    return Entry(metadata, texts)


def _dump_all(folder: Path | None, kernel: str, digest: str, entry: Entry) -> None:
    if folder is not None:
        _run_stages().dump(folder, kernel, digest, entry.artifacts)
        _run_stages().dump_metadata(folder, kernel, digest, entry.metadata)


def _front_end_module(source: KernelSource | IRSource, options: FrontendOptions) -> Module:
    """The tile IR before any pass of a backend."""
    if isinstance(source, KernelSource):
        return source.lower(options)
    if source.extension in _TILE_IR:
        return ir.parse_valid_module(source.text)
    raise errors.InvalidOption("artifact", f"one after {source.extension}", SOURCE)


def compile_kernel(
    module: Module, backend: Backend, target: GPUTarget, options: CommonOptions
) -> CompiledKernel:
    """Compile a module of tile IR, which is changed in place, without the disk cache."""
    source = IRSource("", SOURCE, {"name": module.kernel.name})
    # not a hash of anything: such a kernel is never in the cache
    context = StageContext(target, options, {**asdict(options), "hash": "0" * 64})
    run = _run_stages().Run(source, backend, context, "0" * 64, settings().compilation)
    artifacts = run.run_module(module)
    asm = Artifacts(artifacts, backend, target)
    metadata = KernelMetadata(context.metadata, options, target)
    return CompiledKernel(source, backend, target, asm, metadata)
