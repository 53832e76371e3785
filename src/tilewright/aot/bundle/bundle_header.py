"""The header of a bundle: types that all bundles share, and a function for each kernel."""

from __future__ import annotations

from pathlib import Path

from tilewright.aot.bundle.bundle_kernel import BundleKernel
from tilewright.ir.types import DType, PointerType, Scalar

_TYPES = Path(__file__).with_name("bundle_types.h")

_FLOATS = {"f32": "float", "f64": "double"}
_RESERVED = frozenset(
    "alignas alignof and asm auto bool break case catch char class const constexpr continue "
    "default delete do double else enum explicit export extern false float for friend goto if "
    "inline int long mutable namespace new not nullptr operator or private protected public "
    "register restrict return short signed sizeof static static_assert struct switch template "
    "this thread_local throw true try typedef typename typeof union unsigned using virtual void "
    "volatile while xor grid grid_x grid_y grid_z queue words".split()
)
"""Keywords of C and C++, and names of variables in the functions of a bundle."""

_BITS_ONLY = ("f16", "bf16")


def header_text(bundle: str, kernels: list[BundleKernel], about: str) -> str:
    """The text of `BUNDLE.h`. about: a sentence on how it was made."""
    guard = f"TILEWRIGHT_BUNDLE_OF_{bundle}"
    lines = [
        f"/* {about} */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        _TYPES.read_text("utf-8"),
    ]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", "", *_common(bundle)]
    for kernel in kernels:
        lines += ["", *_comment(kernel), f"{prototype(bundle, kernel)};"]
    return "\n".join([*lines, "", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


def _common(bundle: str) -> list[str]:
    return [
        "/* The sentence of the latest failure in this thread. */",
        f"const char *{bundle}_error(void);",
        "",
        "/* TILEWRIGHT_ABI of the library, to compare with that of this header. */",
        f"uint32_t {bundle}_abi(void);",
        "",
        "/* Load all kernels for the device of a queue, so that no launch has to. */",
        f"int {bundle}_load(const tilewright_queue *queue);",
        "",
        "/* CUDA: free what the current context holds, while no launch runs. */",
        f"int {bundle}_unload(const tilewright_queue *queue);",
        "",
        "/* Set the number of threads of the pool while no launch runs; 0: one for each CPU. */",
        f"int {bundle}_set_threads(int32_t threads);",
    ]


def prototype(bundle: str, kernel: BundleKernel) -> str:
    """The declaration of the function of a kernel. A null queue is the bundle's thread pool."""
    parameters = ["const tilewright_queue *queue"]
    if kernel.grid is None:
        parameters += [f"int64_t grid_{axis}" for axis in "xyz"]
    for name, type_ in kernel.arguments.items():
        parameters.append(declaration(name, type_, name in kernel.stored))
    parameters += [f"int64_t {c_name(name)}" for name in kernel.choices]
    head = f"int {bundle}_{kernel.name}("
    return head + _wrapped(parameters, len(head)) + ")"


def c_name(name: str) -> str:
    """The name of a parameter in C."""
    text = "".join(char if char.isascii() else f"_u{ord(char):04x}" for char in name)
    return f"{text}_" if text in _RESERVED or text.startswith("tw_") else text


def declaration(name: str, type_: Scalar, stored: bool) -> str:
    """The declaration of a parameter; floats of 16 bits are passed as their bits."""
    if isinstance(type_, PointerType):
        element = type_.element
        typed = element.name in _FLOATS or (element.is_integer and not element.is_bool)
        return f"{'' if stored else 'const '}{c_type(element) if typed else 'void'} *{c_name(name)}"
    return f"{c_type(type_)} {c_name(name)}"


def c_type(type_: DType) -> str:
    """The type of a number in C; floats of 16 bits are `uint16_t`."""
    if type_.name in _FLOATS:
        return _FLOATS[type_.name]
    if type_.is_integer and not type_.is_bool:
        return f"{'' if type_.is_signed else 'u'}int{type_.bits}_t"
    return "uint16_t" if type_.name in _BITS_ONLY else "uint8_t"


def _wrapped(parameters: list[str], indent: int) -> str:
    lines, width = [parameters[0]], indent + len(parameters[0])
    for parameter in parameters[1:]:
        if width + len(parameter) > 96:
            lines.append(",\n" + " " * indent + parameter)
            width = indent + len(parameter)
        else:
            lines.append(f", {parameter}")
            width += len(parameter) + 2
    return "".join(lines)


def _comment(kernel: BundleKernel) -> list[str]:
    grid = "(grid_x, grid_y, grid_z)" if kernel.grid is None else kernel.grid
    lines = [f"/* {kernel.name}, grid {grid}."]
    for name, type_ in kernel.arguments.items():
        element = type_.element if isinstance(type_, PointerType) else type_
        if element.name in _BITS_ONLY:
            what = "points to" if isinstance(type_, PointerType) else "holds the bits of"
            lines.append(f"   {name} {what} {element.name}.")
    for one, other in kernel.separate:
        lines.append(f"   {one} and {other} must not overlap.")
    return [*lines[:-1], lines[-1] + " */"]
