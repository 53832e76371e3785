"""A Rust crate that contains the shared library of a bundle: no build script, no C compiler.

The library is loaded from memory, so a program is one file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilewright.aot.bundle.bundle_kernel import BundleKernel
from tilewright.ir.types import DType, PointerType, Scalar

_TEMPLATE = Path(__file__).with_name("rust_crate.rs")
_KEYWORDS = frozenset(
    "as async await box break const continue crate dyn else enum extern fn for if impl in let loop "
    "match mod move mut pub ref return static struct trait type unsafe use where while yield "
    "abstract become do final macro override priv try typeof unsized virtual gen".split()
)

_TAKEN = ("function", "queue", "self", "super", "Self")
"""Names of variables of a method, and keywords that cannot be names at all."""


def rust_files(bundle: str, kernels: Sequence[BundleKernel]) -> dict[str, str]:
    """The files of the crate `rust/`, without the library, which is `rust/src/libBUNDLE.so`."""
    cargo = [
        "[package]", f'name = "{bundle}"', 'version = "0.1.0"', 'edition = "2021"', "",
        "[lib]", 'path = "src/lib.rs"', "",
    ]  # fmt: skip
    methods = "\n".join(_method(bundle, kernel) for kernel in kernels)
    text = _TEMPLATE.read_text("utf-8").replace("BUNDLE", bundle)
    return {
        "rust/Cargo.toml": "\n".join(cargo),
        "rust/src/lib.rs": text.replace("    // METHODS\n", methods),
    }


def _method(bundle: str, kernel: BundleKernel) -> str:
    sizes = [f"grid_{axis}" for axis in "xyz"] if kernel.grid is None else []
    parameters = dict.fromkeys(sizes, "i64")
    for name, type_ in kernel.arguments.items():
        parameters[_name(name)] = _rust_type(type_, name in kernel.stored)
    parameters.update((_name(name), "i64") for name in kernel.choices)
    listed = "".join(f", {name}: {type_}" for name, type_ in parameters.items())
    types = "".join(f", {type_}" for type_ in parameters.values())
    return f"""\
    /// Launches `{kernel.name}`.
    ///
    /// # Safety
    /// The pointers are to arrays of the device of the queue, as large as the kernel expects.
    #[allow(clippy::too_many_arguments)]
    pub unsafe fn {_name(kernel.name)}(&self, queue: &Queue{listed}) -> Result<(), Failure> {{
        type Function = unsafe extern "C" fn(*const Queue{types}) -> c_int;
        let function: Function = transmute(self.find(c"{bundle}_{kernel.name}"));
        self.check(function({", ".join(["queue", *parameters])}))
    }}

"""


def _rust_type(type_: Scalar, stored: bool) -> str:
    if isinstance(type_, PointerType):
        element = _number(type_.element) or "c_void"
        return f"*{'mut' if stored else 'const'} {element}"
    return _number(type_) or ("u16" if type_.bits == 16 else "u8")


def _number(type_: DType) -> str:
    """The type of Rust; empty for types that it lacks."""
    if type_.name in ("f32", "f64"):
        return type_.name
    integer = type_.is_integer and not type_.is_bool
    return f"{'i' if type_.is_signed else 'u'}{type_.bits}" if integer else ""


def _name(name: str) -> str:
    if name in _TAKEN:
        return f"{name}_"
    return f"r#{name}" if name in _KEYWORDS else name
