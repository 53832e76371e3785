"""`python -m triton.tools.compile`: one variant of a kernel as C source for CUDA's driver API.

    python -m triton.tools.compile kernels.py -n matmul -s "*fp16:16, *fp16:16, i32:16, 64" \\
        -g "M/64, 1, 1" -t cuda:90:32 -w 4 -on matmul_fp16

writes `matmul_fp16.HASH_FACTS.c` and `.h`, by the scheme of names of Triton 3.6: the function
`matmul_fp16_HASH_FACTS(stream, arguments)`, and `load_` and `unload_` with that name. The source is
a bundle (`aot/bundle`), so a failure of the driver is a CUresult, with a sentence in `..._error()`.
`triton.tools.link` joins several variants.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.aot import KernelSpec, kernel_named
from tilewright.aot.bundle.build_bundle import build_bundle
from tilewright.aot.bundle.bundle_header import c_name, c_type
from tilewright.aot.bundle.planned_variants import planned_variant
from tilewright.backends import default_backend
from tilewright.ir.types import PointerType, Scalar
from tilewright.support import TilewrightError, errors
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass

__all__ = ["CompileArgs", "compile_kernel", "main"]

LINK_COMMENT = "// tilewright-link: "
"""Begins the line of a header that `triton.tools.link` reads."""

_WRAPPER = """
static CUresult {name}_result(int code) {{
    switch (code) {{
    case TILEWRIGHT_OK:
        return CUDA_SUCCESS;
    case TILEWRIGHT_NO_DRIVER:
        return CUDA_ERROR_NOT_INITIALIZED;
    case TILEWRIGHT_WRONG_DEVICE:
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    case TILEWRIGHT_DRIVER_ERROR:
        return CUDA_ERROR_UNKNOWN;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }}
}}

void load_{name}(void) {{
    tilewright_queue queue = tilewright_cuda(NULL);
    (void){name}_load(&queue); /* a failure is reported by the launch */
}}

void unload_{name}(void) {{
    tilewright_queue queue = tilewright_cuda(NULL);
    (void){name}_unload(&queue);
}}

CUresult {name}({parameters}) {{
    tilewright_queue queue = tilewright_cuda((void *)stream);
    return {name}_result({name}_{kernel}({arguments}));
}}
"""


@dataclass(slots=True)
class CompileArgs:
    """The arguments of the command, by Triton's names."""

    path: str = ""
    kernel_name: str = ""
    signature: str = ""
    grid: str = ""
    target: str | None = None
    num_warps: int = 1
    num_stages: int = 3
    out_name: str | None = None
    out_path: Path | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """The arguments of a variant by name. types: without compile-time values; hints: 1 or 16, of
    arguments; pieces: of the option `--signature`; places: of the names among the parameters"""

    types: Mapping[str, str]
    hints: Mapping[str, int]
    constants: Mapping[str, object]
    pieces: Sequence[str]
    places: Mapping[str, int]

    @property
    def passed(self) -> list[str]:
        """Names of the arguments that the function takes."""
        return [name for name in self.types if self.hints.get(name) != 1]

    @property
    def suffix(self) -> str:
        """Positions of all parameters; "c" after those that are 1, "d" after multiples of 16."""
        marks = {1: "c", 16: "d"}
        return "".join(
            f"{place}{marks.get(self.hints.get(name, 0), '')}"
            for name, place in self.places.items()
        )


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; mistakes are printed."""
    chosen = CompileArgs(**vars(_parser().parse_args(words)))
    try:
        _, paths = compile_kernel(chosen)
    except synchronous(TilewrightError, OSError) as problem:
        print(f"triton.tools.compile: {problem}", file=sys.stderr)
        return 1
    for path in paths:
        print(path)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("triton.tools.compile", description="Compile a kernel to C.")
    parser.add_argument("path", help="a file of kernels, which is run")
    parser.add_argument("--kernel-name", "-n", required=True)
    parser.add_argument("--target", "-t", help="as cuda:90:32 (default: this machine's GPU)")
    parser.add_argument("--num-warps", "-w", type=int, default=1)
    parser.add_argument("--num-stages", "-ns", type=int, default=3)
    parser.add_argument("--out-name", "-on", help="of the function (default: the kernel's)")
    parser.add_argument("--out-path", "-o", type=Path, help="of the files, without a suffix")
    parser.add_argument("--signature", "-s", required=True, help='as "*fp32:16, i32, 64"')
    parser.add_argument("--grid", "-g", required=True, help='expressions of C, as "n/64, 1, 1"')
    return parser


def compile_kernel(args: CompileArgs) -> tuple[str, list[Path]]:
    """Compile, and write the files; returns the name of the function, and their paths.

    Errors: those of specs, bundles and compilation; OSError.
    """
    kernel = kernel_named(args.path, args.kernel_name)
    signature = read_signature([param.name for param in kernel.params], args.signature)
    grid = [size.strip() for size in args.grid.split(",")]
    if len(grid) != 3:
        raise errors.InvalidOption("--grid", "three expressions of C", args.grid)
    out_name = args.out_name or args.kernel_name
    launch = f"warps{args.num_warps}xstages{args.num_stages}"
    text = " ".join((*signature.pieces, launch))
    ending = f"{hashlib.sha256(text.encode()).hexdigest()[:8]}_{signature.suffix}"
    name = f"{out_name}_{ending}"
    spec = KernelSpec(
        kernel,
        {argument: _stated(signature, argument) for argument in signature.types},
        signature.constants,
        {"num_warps": args.num_warps, "num_stages": args.num_stages},
    )
    plan = planned_variant(spec)
    declared = {argument: _c_type(type_) for argument, type_ in plan.arguments.items()}
    bundle = build_bundle(name, [plan], [_target(args.target)])
    include = f'#include "{name}.h"\n'
    source = bundle.files[f"{name}.c"].decode()
    source = source.replace(include, bundle.files[f"{name}.h"].decode(), 1)
    ones = [argument for argument, hint in signature.hints.items() if hint == 1]
    fixed = {**signature.constants, **dict.fromkeys(ones, 1)}
    algorithm = f"{'x'.join(map(str, fixed.values()))}_{launch}"
    path = args.out_path or Path(out_name)
    paths = [path.with_suffix(f".{ending}{suffix}") for suffix in (".c", ".h")]
    passed = (f"{declared[argument]} {c_name(argument)}" for argument in signature.passed)
    parameters = ", ".join(["CUstream stream", *passed])
    listed = [[declared[argument], c_name(argument)] for argument in signature.types]
    hints = [signature.hints.get(argument) for argument in signature.types]
    linked = {"name": out_name, "algorithm": algorithm, "function": name}
    header = _header(name, parameters, {**linked, "arguments": listed, "hints": hints})
    wrapper = _wrapper(name, kernel.__name__, signature, parameters, grid)
    for file, content in zip(paths, (f"{source}{header}{wrapper}", header), strict=True):
        file.write_text(content, encoding="utf-8")
    return name, paths


def read_signature(names: Sequence[str], text: str) -> Signature:
    """The option `--signature` for parameters of these names. Errors: InvalidOption."""
    pieces = [piece.strip() for piece in text.split(",")]
    if len(pieces) != len(names):
        expected = f"{len(names)} types or values, for {', '.join(names)}"
        raise errors.InvalidOption("--signature", expected, text)
    types: dict[str, str] = {}
    hints: dict[str, int] = {}
    constants: dict[str, object] = {}
    for name, piece in zip(names, pieces, strict=True):
        type_, _, hint = piece.partition(":")
        number = _number(piece)
        if number is not None:
            constants[name] = number
            continue
        if hint not in ("", "1", "16") or (hint == "1" and type_[:1] == "*"):
            raise errors.InvalidOption(f"hint of '{name}'", "16, or 1 for an integer", piece)
        types[name] = type_
        if hint:
            hints[name] = int(hint)
    return Signature(types, hints, constants, pieces, {n: i for i, n in enumerate(names)})


def _number(text: str) -> int | float | None:
    for read in (int, float):
        try:
            return read(text)
        except synchronous(ValueError):
            continue
    return None


def _stated(signature: Signature, name: str) -> str:
    """The text of an argument for a spec."""
    endings = {1: "=1", 16: ":16"}
    return signature.types[name] + endings.get(signature.hints.get(name, 0), "")


def _target(text: str | None) -> str:
    """The name of a bundle's target. Errors: InvalidOption."""
    if text is None:
        target = default_backend().target()
        text = f"{target.backend}:{target.arch}"
    found = re.fullmatch(r"cuda:(\d+)(?::\d+)?", text)
    if found is None:
        raise errors.InvalidOption("--target", "a GPU as cuda:90:32", text)
    return f"sm_{found[1]}"


def _c_type(type_: Scalar) -> str:
    return "CUdeviceptr" if isinstance(type_, PointerType) else c_type(type_)


def _header(name: str, parameters: str, linked: dict[str, object]) -> str:
    return f"""\
#include <cuda.h>
#include <stdint.h>
{LINK_COMMENT}{json.dumps(linked)}
#ifdef __cplusplus
extern "C" {{
#endif
CUresult {name}({parameters});
void load_{name}(void);
void unload_{name}(void);
const char *{name}_error(void);
#ifdef __cplusplus
}}
#endif
"""


def _wrapper(
    name: str, kernel: str, signature: Signature, parameters: str, grid: Sequence[str]
) -> str:
    arguments = ["&queue", *(f"(int64_t)({size})" for size in grid)]
    for argument, type_ in signature.types.items():
        value = f"{'(void *)(uintptr_t)' * type_.startswith('*')}{c_name(argument)}"
        arguments.append("1" if signature.hints.get(argument) == 1 else value)
    return _WRAPPER.format(
        name=name, kernel=kernel, parameters=parameters, arguments=", ".join(arguments)
    )


if __name__ == "__main__":
    sys.exit(main())
