"""Build a bundle: compile the variants for all targets, and write its files with a manifest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.aot.bundle.bundle_header import header_text
from tilewright.aot.bundle.bundle_kernel import (
    BundleKernel,
    BundleVariant,
    PlannedVariant,
    bundle_kernels,
)
from tilewright.aot.bundle.bundle_source import source_text
from tilewright.aot.bundle.bundle_targets import bundle_targets
from tilewright.aot.bundle.cuda_tables import PTX, cuda_codes
from tilewright.aot.bundle.planned_variants import planned_variant
from tilewright.aot.bundle.rust_crate import rust_files
from tilewright.aot.spec_file import read_spec
from tilewright.backends import GPUTarget, backend_named
from tilewright.support import errors
from tilewright.support.data_class import dataclass
from tilewright.support.version import __version__

ABI = 1
"""TILEWRIGHT_ABI of bundle_types.h."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files of a bundle, by name; crate: those of its Rust crate."""

    name: str
    files: Mapping[str, bytes]
    crate: Mapping[str, str]

    def write(self, folder: Path) -> list[Path]:
        """Write the files into a folder, which is created if it is missing. Errors: OSError."""
        return _write(folder, self.files)

    def write_crate(self, folder: Path, library: Path) -> list[Path]:
        """Write the Rust crate, with the shared library, into `rust/`. Errors: OSError."""
        texts = {name: text.encode() for name, text in self.crate.items()}
        return _write(folder, {**texts, f"rust/src/{library.name}": library.read_bytes()})


def _write(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return [folder / name for name in files]


def build_from_spec(
    name: str, spec: Path, targets: Sequence[str] = (), windows: bool = False
) -> Bundle:
    """`build_bundle` of the variants of a spec file. Errors: also those of `read_spec`."""
    return build_bundle(name, [planned_variant(one) for one in read_spec(spec)], targets, windows)


def build_bundle(
    name: str,
    plans: Sequence[PlannedVariant],
    targets: Sequence[str] = (),
    windows: bool = False,
) -> Bundle:
    """Build a bundle of variants for targets, by default for all that bundles support.

    name: of the files, and the beginning of all names in C; windows: also with code of CPUs for
    Windows, which other compilers than LLVM's do not assemble.
    Errors: InvalidOption, InvalidBundle, and those of compilation.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise errors.InvalidOption("name", "letters, digits and underscores", name)
    if not plans:
        raise errors.InvalidBundle(name, "it has no kernels")
    resolved = bundle_targets(targets)
    kernels = bundle_kernels(plans, resolved)
    key = _key(kernels, resolved)
    about = f"Bundle {name}, key {key[:16]}: made by Tilewright {__version__}; do not edit."
    texts = {
        f"{name}.c": source_text(name, kernels, about, windows),
        f"{name}.h": header_text(name, kernels, about),
    }
    files = {file: text.encode() for file, text in texts.items()}
    manifest = _manifest(name, key, kernels, resolved, files)
    return Bundle(name, {**files, f"{name}.json": manifest}, rust_files(name, kernels))


def _key(kernels: Sequence[BundleKernel], targets: Sequence[GPUTarget]) -> str:
    """A hash of what determines the bundle: kernels, compilers by target, the runtime's ABI."""
    codes = [
        _hash(code.asm[_binary(target)])
        for kernel in kernels
        for variant in kernel.variants
        for target, code in variant.code.items()
    ]
    parts = [str(ABI), *map(_compiler, targets), *codes]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _compiler(target: GPUTarget) -> str:
    """The compiler of a target: versions of Tilewright, LLVM and ptxas."""
    return f"tilewright {__version__} {backend_named(target.backend).version(target)}"


def _manifest(
    name: str,
    key: str,
    kernels: Sequence[BundleKernel],
    targets: Sequence[GPUTarget],
    files: Mapping[str, bytes],
) -> bytes:
    described: dict[str, Any] = {
        "bundle": name,
        "abi": ABI,
        "key": key,
        "tilewright": __version__,
        "compilers": {target.label: _compiler(target) for target in targets},
        "kernels": [
            {
                "name": kernel.name,
                "grid": kernel.grid,
                "variants": [_variant(variant) for variant in kernel.variants],
            }
            for kernel in kernels
        ],
        "files": {file: _hash(content) for file, content in files.items()},
    }
    return (json.dumps(described, indent=1) + "\n").encode()


def _variant(variant: BundleVariant) -> dict[str, Any]:
    codes = {target.label: code.asm[_binary(target)] for target, code in variant.code.items()}
    on_gpus = [code for target, code in variant.code.items() if target.backend == "cuda"]
    codes.update({f"sm_{c.capability} ptx": c.image for c in cuda_codes(on_gpus) if c.kind == PTX})
    return {
        "constants": {name: str(value) for name, value in variant.constants.items()},
        "facts": [[f.argument, f.kind.removeprefix("TW_").lower(), f.value] for f in variant.facts],
        "code": {name: {"bytes": len(code), "sha256": _hash(code)} for name, code in codes.items()},
    }


def _binary(target: GPUTarget) -> str:
    return "cubin" if target.backend == "cuda" else "obj"


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
