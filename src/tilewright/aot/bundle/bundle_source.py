"""The C source of a bundle: the runtime, the machine code, tables of variants, and functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from tilewright.aot.bundle.bundle_header import c_name, prototype
from tilewright.aot.bundle.bundle_kernel import BundleKernel, BundleVariant, is_integer
from tilewright.aot.bundle.bundle_targets import CPU_LEVELS, MACROS, architecture_of
from tilewright.aot.bundle.cuda_tables import (
    CudaCode,
    by_preference,
    capabilities,
    cuda_codes,
    cuda_row,
    map_row,
    tensor_maps,
)
from tilewright.aot.bundle.grid_expression import grid_in_c
from tilewright.aot.bundle.inlined_sources import inlined, thread_pool_sources
from tilewright.backends import GPUTarget
from tilewright.compiler import CompiledKernel
from tilewright.ir.types import PointerType, Scalar
from tilewright.llvm import (
    CONVERSION_SYMBOLS,
    TargetSpec,
    assembler_directives,
    compile_ir,
    cpu_named,
    cpu_target,
    used_conversions,
    windows_target,
)
from tilewright.support.data_class import dataclass

_FOLDER = Path(__file__).parent
_HEADERS = ("stdarg", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "time")
_WORDS_IN_LINE = 5


def source_text(
    bundle: str, kernels: Sequence[BundleKernel], about: str, windows: bool = False
) -> str:
    """The text of `BUNDLE.c`, which needs the header only. windows: with code of CPUs for it"""
    body = [*_Tables(bundle, kernels, windows).lines()]
    return "\n".join([*_head(bundle, kernels, about, windows), *_runtime(), *body, ""])


def _head(bundle: str, kernels: Sequence[BundleKernel], about: str, windows: bool) -> Iterator[str]:
    codes = [code for kernel in kernels for variant in kernel.variants for code in variant.code]
    cpus = {MACROS[architecture_of(t)] for t in codes if t.backend == "cpu"}
    tests = " || ".join(f"defined({macro})" for macro in sorted(cpus))
    yield f"/* {about} */"
    yield "#define _POSIX_C_SOURCE 200809L"
    yield f'#include "{bundle}.h"'
    yield "#if !defined(_WIN32)\n#include <dlfcn.h>\n#endif"
    yield from (f"#include <{name}.h>" for name in _HEADERS)
    yield f'#define TW_NAME "{bundle}"'
    yield f"#define TW_WORDS {max(1, *(len(kernel.names) for kernel in kernels))}"
    yield f"#define TW_MAPS {_most_maps(kernels)}"
    levels = dict.fromkeys(str(target.arch) for target in codes if target.backend == "cpu")
    yield f'#define TW_CPU_LEVELS "{" ".join(levels)}"'
    yield f"#define TW_HAS_CUDA {int(any(t.backend == 'cuda' for t in codes))}"
    yield f"#if defined(__linux__) && defined(__ELF__) && ({tests or 0})"
    yield "#define TW_HAS_POOL 1\n#else\n#define TW_HAS_POOL 0\n#endif"
    on_windows = "defined(_WIN32) && defined(__x86_64__)" if windows and "x86_64" in tests else "0"
    yield f"#if TW_HAS_POOL || ({on_windows})"
    yield "#define TW_HAS_CPU 1\n#else\n#define TW_HAS_CPU 0\n#endif"
    yield "#if TW_HAS_CPU && defined(__x86_64__)\n#include <cpuid.h>\n#endif\n"


def _most_maps(kernels: Sequence[BundleKernel]) -> int:
    codes = [c for kernel in kernels for variant in kernel.variants for c in variant.code.values()]
    return max(1, *(len(tensor_maps(code)) for code in codes))


def _runtime() -> Iterator[str]:
    """The sources of the thread pool, as they are, and of the runtime."""
    yield "#if TW_HAS_POOL"
    yield _text("pool_prelude.h")
    yield thread_pool_sources()
    yield _text("pool_epilogue.h")
    yield "#endif\n"
    yield inlined(_FOLDER / "bundle_runtime.c")


def _text(name: str) -> str:
    return _FOLDER.joinpath(name).read_text("utf-8")


@dataclass(slots=True)
class _Tables:
    """Writer of all that depends on the kernels. Equal machine code is written once."""

    bundle: str
    kernels: Sequence[BundleKernel]
    windows: bool
    images: dict[bytes, str] = field(default_factory=dict[bytes, str])
    objects: dict[tuple[str, bytes], str] = field(default_factory=dict[tuple[str, bytes], str])

    def lines(self) -> Iterator[str]:
        """The lines of C."""
        for kernel in self.kernels:
            for number, variant in enumerate(kernel.variants):
                yield from self._variant(kernel, f"{kernel.name}_{number}", variant)
            yield from self._kernel(kernel)
        yield from _functions(self.bundle, self.kernels)

    def _variant(self, kernel: BundleKernel, name: str, variant: BundleVariant) -> Iterator[str]:
        places = {argument: place for place, argument in enumerate(kernel.names)}
        if variant.facts:
            facts = (f"{{{places[f.argument]}, {f.kind}, {f.value}}}" for f in variant.facts)
            yield f"static const tw_fact {name}_facts[] = {{{', '.join(facts)}}};"
        passed = ", ".join(str(places[argument]) for argument in variant.passed) or "0"
        yield f"static const uint8_t {name}_passed[] = {{{passed}}};"
        yield from self._cpu_table(name, variant)
        yield from self._cuda_table(name, variant, [places[a] for a in variant.passed])

    def _cpu_table(self, name: str, variant: BundleVariant) -> Iterator[str]:
        by_arch: dict[str, list[tuple[GPUTarget, CompiledKernel]]] = {}
        for target, code in variant.code.items():
            if target.backend == "cpu":
                by_arch.setdefault(architecture_of(target), []).append((target, code))
        if not by_arch:
            return
        yield "#if TW_HAS_CPU"
        for arch, codes in by_arch.items():
            yield f"#if defined({MACROS[arch]})"
            rows: list[str] = []
            for target, code in codes:
                symbol, lines = self._object(target, code)
                yield from lines
                rows.append(_cpu_row(target, code, symbol))
            yield _array("tw_cpu_code", f"{name}_cpu", rows)
            yield "#endif"
        yield "#endif"

    def _object(self, target: GPUTarget, code: CompiledKernel) -> tuple[str, list[str]]:
        """The C symbol of a kernel's code, and its text unless it is written already."""
        obj: bytes = code.asm["obj"]
        key = architecture_of(target), obj
        if key in self.objects:
            return self.objects[key], []
        number, level = len(self.objects), str(target.arch).replace("-", "_")
        symbol = self.objects[key] = f"{self.bundle}_{code.name}_{number}_{level}"
        cpu = cpu_named(str(target.arch))
        assert cpu is not None
        prefix, exports = f"{self.bundle}_{number}", {code.name: symbol}
        lines = self._assembly(obj, cpu_target(cpu), prefix, exports)
        if self.windows and cpu.is_x86:
            spec = windows_target(cpu)
            other = compile_ir(code.asm["llir"], spec)
            there = self._assembly(other, spec, prefix, exports)
            lines = ["#if defined(_WIN32)", *there, "#else", *lines, "#endif"]
        lines.append(
            f"extern int64_t {symbol}(const void *, int64_t, int64_t, const int32_t *, void *, "
            "int32_t *);"
        )
        return symbol, lines

    def _assembly(
        self, obj: bytes, spec: TargetSpec, prefix: str, exports: Mapping[str, str]
    ) -> list[str]:
        """An object, and the float conversions that it calls unless they are written already."""
        lines: list[str] = []
        more = used_conversions(obj, spec)
        if more is not None:
            known = self.objects.get((spec.triple, more))
            own = known or f"{self.bundle}_convert_{len(self.objects)}"
            conversions = {name: f"{own}{name}" for name in CONVERSION_SYMBOLS}
            exports = {**exports, **conversions}
            if known is None:
                self.objects[spec.triple, more] = own
                lines += _assembly(assembler_directives(more, spec, own, conversions))
        return [*lines, *_assembly(assembler_directives(obj, spec, prefix, exports))]

    def _cuda_table(
        self, name: str, variant: BundleVariant, places: Sequence[int]
    ) -> Iterator[str]:
        codes = cuda_codes([k for t, k in variant.code.items() if t.backend == "cuda"])
        if not codes:
            return
        rows: list[str] = []
        for code in by_preference(codes):
            image, lines = self._image(code)
            yield from lines
            maps, table = tensor_maps(code.kernel), "NULL"
            if maps:
                table = f"{name}_maps_{len(rows)}"
                yield _array("tw_map", table, [map_row(plain, places) for plain in maps])
            rows.append(cuda_row(code, image, table, len(maps)))
        yield _array("tw_cuda_code", f"{name}_cuda", rows)
        yield f'static const char {name}_capabilities[] = "{capabilities(codes)}";'
        yield f"static tw_loaded {name}_loaded[TW_CONTEXTS];"

    def _image(self, code: CudaCode) -> tuple[str, list[str]]:
        """The name of an image, and its text unless it is written already."""
        if code.image in self.images:
            return self.images[code.image], []
        name = self.images[code.image] = f"image_{len(self.images)}"
        data = code.image + bytes(-len(code.image) % 8)
        words = [f"{int.from_bytes(data[i : i + 8], 'little'):#x}" for i in range(0, len(data), 8)]
        rows = [
            ", ".join(words[i : i + _WORDS_IN_LINE]) for i in range(0, len(words), _WORDS_IN_LINE)
        ]
        return name, [f"static const uint64_t {name}[] = {{", *(f"{row}," for row in rows), "};"]

    def _kernel(self, kernel: BundleKernel) -> Iterator[str]:
        name = kernel.name
        names = ", ".join(f'"{argument}"' for argument in kernel.names) or "NULL"
        yield f"static const char *const {name}_names[] = {{{names}}};"
        yield f"static const tw_variant {name}_variants[] = {{"
        for number, variant in enumerate(kernel.variants):
            yield from _variant_row(f"{name}_{number}", kernel, variant)
        yield "};"
        pointers = (isinstance(type_, PointerType) for type_ in kernel.arguments.values())
        kinds = "".join("P" if pointer else "q" for pointer in pointers) + "q" * len(kernel.choices)
        yield (
            f'static const tw_kernel {name}_kernel = {{"{name}", {name}_names, "{kinds}", '
            f"{len(kernel.variants)}, {name}_variants}};"
        )


def _array(type_: str, name: str, rows: Sequence[str]) -> str:
    body = ",\n    ".join(rows)
    return f"static const {type_} {name}[] = {{\n    {body}}};"


def _variant_row(name: str, kernel: BundleKernel, variant: BundleVariant) -> Iterator[str]:
    constants = ", ".join(f"{k}={v}" for k, v in variant.constants.items()) or "no constants"
    text = constants.replace("\\", "\\\\").replace('"', "'").replace("\n", " ")
    facts = f"{name}_facts, {len(variant.facts)}" if variant.facts else "NULL, 0"
    backends = {target.backend for target in variant.code}
    yield f'    {{"{text}", {facts}, {len(variant.passed)}, {name}_passed,'
    yield f"     TW_CPU_CODE({name}_cpu)," if "cpu" in backends else "     NULL, 0,"
    count = f"(int32_t)(sizeof {name}_cuda / sizeof *{name}_cuda)"
    cuda = f"{count}, {name}_cuda, {name}_capabilities, {name}_loaded"
    cuda = cuda if "cuda" in backends else "0, NULL, NULL, NULL"
    yield f"     {cuda}}},"


def _cpu_row(target: GPUTarget, code: CompiledKernel, symbol: str) -> str:
    metadata = code.metadata.as_dict()
    numbers = (
        CPU_LEVELS[str(target.arch)], symbol, metadata["scratch_bytes"], metadata["alone"],
        int(bool(metadata["waits"])), int(bool(metadata["together"])),
    )  # fmt: skip
    return f"{{{', '.join(map(str, numbers))}}}"


def _assembly(directives: Sequence[str]) -> Iterator[str]:
    """Lines of C that have assembler lines outside of functions."""
    yield '__asm__(".pushsection .text\\n"'
    for line in directives:
        text = line.replace('"', '\\"')
        yield f'"{text}\\n"'
    yield '".popsection\\n");'


def _functions(bundle: str, kernels: Sequence[BundleKernel]) -> Iterator[str]:
    yield f"\nconst char *{bundle}_error(void) {{ return tw_text; }}\n"
    yield f"uint32_t {bundle}_abi(void) {{ return TILEWRIGHT_ABI; }}\n"
    listed = ", ".join(f"&{kernel.name}_kernel" for kernel in kernels)
    yield f"static const tw_kernel *const all_kernels[] = {{{listed}}};"
    for action in ("load", "unload"):
        yield f"\nint {bundle}_{action}(const tilewright_queue *queue) {{"
        yield f"    return tw_for_all(all_kernels, {len(kernels)}, queue, tw_{action});"
        yield "}\n"
    yield f"int {bundle}_set_threads(int32_t threads) {{ return tw_set_threads(threads); }}"
    for kernel in kernels:
        yield from _function(bundle, kernel)


def _function(bundle: str, kernel: BundleKernel) -> Iterator[str]:
    yield f"\n{prototype(bundle, kernel)} {{"
    words = [_word(name, type_) for name, type_ in kernel.arguments.items()]
    words += [f"(uint64_t){c_name(name)}" for name in kernel.choices]
    yield f"    uint64_t words[TW_WORDS] = {{{', '.join(words) or '0'}}};"
    if kernel.grid is None:
        sizes = ("grid_x", "grid_y", "grid_z")
    else:
        integers = [name for name, type_ in kernel.arguments.items() if is_integer(type_)]
        constants = kernel.variants[0].constants
        known = {name: c_name(name) for name in (*integers, *kernel.choices)}
        sizes = grid_in_c(kernel.grid, kernel.name, known, constants)
    yield "    const int64_t grid[3] = {"
    yield from (f"        {size}," for size in sizes)
    yield "    };"
    yield f"    return tw_run(&{kernel.name}_kernel, queue, words, grid);"
    yield "}"


def _word(argument: str, type_: Scalar) -> str:
    name = c_name(argument)
    if isinstance(type_, PointerType):
        return f"(uint64_t)(uintptr_t){name}"
    if type_.name in ("f32", "f64"):
        return f"tw_{type_.name}_bits({name})"
    return (
        f"(uint64_t)(int64_t){name}"
        if type_.is_signed and is_integer(type_)
        else f"(uint64_t){name}"
    )
