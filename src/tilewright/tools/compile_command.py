"""`tilewright compile`: compile a kernel, or a stage of one, to any later stage.

    tilewright compile kernel.tile --emit llir
    tilewright compile tilewright.kernels.elementwise:add_kernel \\
        'x_ptr=*fp32:16' 'y_ptr=*fp32:16' 'out_ptr=*fp32:16' n=i32 BLOCK=1024 --emit asm

A Python kernel needs the type of each argument, or the value of each constexpr; the names in
`**META` are given as values, and parameters with defaults may be omitted. Facts follow the type:
`*fp16:16` is aligned to 16 bytes, `i32:16,>=0` is a multiple of 16 and not negative, as launches
find out by themselves, `i32=1` is always 1 (`compiler/argument_notation.py` has all).
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tilewright.aot import kernel_named
from tilewright.backends import GPUTarget, backend_named, default_backend
from tilewright.compiler import (
    ASTSource,
    CompiledKernel,
    IRSource,
    KernelSource,
    compile,
    is_argument_text,
    is_type_name,
)
from tilewright.runtime import JITFunction, KernelParam
from tilewright.support import ListRecorder, recording, settings
from tilewright.tools.command_failure import CommandFailed
from tilewright.tools.opt_command import add_trace_arguments, recorder, show_times
from tilewright.tools.read_tile_ir import read_module, read_text
from tilewright.tools.target_names import add_target, target_named

_TILE_IR = (".tile", ".ttir", ".source")
_OTHER_COMMANDS = {
    ".py": "a file of Python kernels: name one, as in FILE.py:kernel",
    ".c": "Triton-C, which 'tilewright cc' compiles; "
    "this command takes FILE.tile, FILE.llir, module:kernel or FILE.py:kernel",
}
"""Kinds of files that need another argument or another command, by suffix."""
_POINTEES = {"float": "fp32", "double": "fp64", "half": "fp16", "int": "i32", "long": "i64"}
"""The types of the language for C's names, in messages."""
_COMMENTS = {"llir": ";", "asm": "#"}
"""The comment marks of stages, where they are not `//`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "kernel", metavar="KERNEL", help="FILE.tile, FILE.llir, module:kernel or FILE.py:kernel"
    )
    parser.add_argument(
        "arguments", nargs="*", metavar="NAME=TYPE|VALUE", help="types and constexprs of a kernel"
    )
    add_output_arguments(parser)


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the output arguments of `emit`, also for `tilewright cc`."""
    parser.add_argument(
        "--emit", default="ttir", metavar="STAGE",
        help="source, ttir (default), or any later stage of the target, such as llir, ptx or asm",
    )  # fmt: skip
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE",
                        help="an option of the target, such as num_warps=8")  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to a file")
    add_target(parser)
    add_trace_arguments(parser)


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    return emit(chosen, lambda: kernel_source(chosen.kernel, chosen.arguments))


def emit(chosen: argparse.Namespace, source: Callable[[], KernelSource | IRSource]) -> int:
    """Compile a source, created once the stage is known to exist, and write the stage."""
    return emit_variants(chosen, lambda: {"": source()})


def emit_variants(
    chosen: argparse.Namespace, sources: Callable[[], Mapping[str, KernelSource | IRSource]]
) -> int:
    """As `emit`, for several sources, each with a label."""
    # Names are checked before the source is created, which may import the user's module.
    target = None if chosen.target is None else target_named(chosen.target)
    stages = _stages_of(target)
    if chosen.emit not in stages:
        raise CommandFailed(f"--emit takes one of {', '.join(stages)}, not {chosen.emit}")
    made = sources()
    options = named_values(chosen.option)
    events = ListRecorder()
    for label, source in made.items():
        # A cached kernel runs no passes that --print-after and --times could show.
        with settings().cache.scope(always_compile=True), recording(recorder(chosen, events)):
            kernel = compile(source, target, options)
            artifact = kernel.asm[chosen.emit]
        if label:
            _write_variant(artifact, chosen, kernel, label)
        else:
            _write(artifact, chosen.output, kernel)
    show_times(chosen, events)
    return 0


def _stages_of(target: GPUTarget | None) -> list[str]:
    """The stages of a kernel for a target; None: this machine."""
    backend = default_backend() if target is None else backend_named(target.backend)
    return ["source", *(stage.extension for stage in backend.stages), *backend.artifacts]


def kernel_source(kernel: str, arguments: list[str]) -> ASTSource | IRSource:
    """The source to compile. Tile IR is checked first, so that its mistakes are shown as the
    user's."""
    path, _, name = kernel.rpartition(":")
    if not path:
        if arguments:
            raise CommandFailed("only a Python kernel (module:kernel) takes arguments")
        suffix = Path(kernel).suffix
        if suffix in _OTHER_COMMANDS:
            raise CommandFailed(f"{kernel} is {_OTHER_COMMANDS[suffix]}")
        if suffix in _TILE_IR:
            # Checked here only for its errors; IRSource reads the file itself.
            read_module(kernel)
        else:
            read_text(kernel)
        return IRSource(Path(kernel))
    if path.endswith(".c"):
        raise CommandFailed(f"{path} is {_OTHER_COMMANDS['.c']}")
    return _ast_source(kernel_named(path, name), arguments)


def _ast_source(kernel: JITFunction, arguments: list[str]) -> ASTSource:
    """A Python kernel with its arguments in the order of its parameters; other names are the
    constants of its `**META`."""
    given = dict(map(pair, arguments))
    params = [p for p in kernel.params if not (p.is_keywords or p.is_rest)]
    names = [param.name for param in params]
    rest = [name for name in given if name not in names]
    takes_rest = any(param.is_keywords for param in kernel.params)
    missing = [p.name for p in params if p.name not in given and not p.has_default]
    if missing or (rest and not takes_rest):
        what = f"no {', '.join(missing)}" if missing else f"no parameter {', '.join(rest)}"
        usage = " ".join(_usage(param) for param in kernel.params)
        raise CommandFailed(f"{kernel.__name__} got {what}\nit takes: {usage}")
    signature: dict[str, str] = {}
    constants: dict[str, object] = {name: option_value(given[name]) for name in rest}
    for param in params:
        if param.name not in given:
            signature[param.name], constants[param.name] = "constexpr", param.default
            continue
        text = given[param.name]
        type_name = text.partition(":")[0]
        # A text that is not a type is a value: `BLOCK=1024` needs no annotation.
        if type_name.startswith("*") and not is_type_name(type_name):
            meant = _POINTEES.get(type_name[1:], "fp32")
            raise CommandFailed(
                f"'{param.name}' has no type '{type_name}'; write the type as in *{meant}"
            )
        if param.is_constexpr or not is_argument_text(text):
            signature[param.name] = "constexpr"
            constants[param.name] = option_value(text)
            continue
        signature[param.name] = text
    return ASTSource(kernel, signature, constants)


def _usage(param: KernelParam) -> str:
    if param.is_keywords:
        return "NAME=VALUE ..."
    text = f"{param.name}=VALUE" if param.is_constexpr else f"{param.name}=TYPE"
    return f"[{text}]" if param.has_default else text


def named_values(words: Sequence[str]) -> dict[str, object]:
    """Words NAME=VALUE as a dictionary. Errors: CommandFailed."""
    return {name: option_value(text) for name, text in map(pair, words)}


def pair(text: str) -> tuple[str, str]:
    """Split NAME=VALUE. Errors: CommandFailed."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise CommandFailed(f"expected NAME=VALUE, found '{text}'")
    return name, value


def option_value(text: str) -> object:
    """A Python literal, or the text itself."""
    # literal_eval, not eval: options come from a shell and must not run code.
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _write_variant(
    artifact: str | bytes, chosen: argparse.Namespace, kernel: CompiledKernel, label: str
) -> None:
    """Write one of several artifacts: under a comment, or to a separate file."""
    output: Path | None = chosen.output
    if output is not None:
        chosen_values = "".join(f"-{word}" for word in label.split(" "))
        # Characters of macro values that are unsuitable for file names become underscores.
        name = f"{output.stem}{re.sub(r'[^-.=+0-9A-Za-z_]', '_', chosen_values)}{output.suffix}"
        _write(artifact, output.with_name(name), kernel)
        return
    if isinstance(artifact, bytes):
        raise CommandFailed("several variants are binary; name a file with -o")
    print(f"{_COMMENTS.get(chosen.emit, '//')} {label}")
    _write(artifact, None, kernel)


def _write(artifact: str | bytes, output: Path | None, kernel: CompiledKernel) -> None:
    """Print a stage of a kernel, or write it to a file. Errors: CommandFailed."""
    if output is not None:
        output.write_bytes(artifact.encode() if isinstance(artifact, str) else artifact)
    elif isinstance(artifact, str):
        sys.stdout.write(artifact if artifact.endswith("\n") else artifact + "\n")
    # Binary would garble a terminal; a pipe or a file takes it.
    elif sys.stdout.isatty():
        raise CommandFailed(
            f"{kernel.name} is {len(artifact)} bytes of binary; name a file with -o"
        )
    else:
        sys.stdout.buffer.write(artifact)
