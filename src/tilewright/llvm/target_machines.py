"""LLVM's code generators for the targets of `code_targets`."""

import functools
from ctypes import string_at
from typing import Any

from tilewright.llvm.code_targets import TargetSpec
from tilewright.llvm.library_calls import Reference, call, filled_text, optional_text
from tilewright.llvm.llvm_lock import LLVM_LOCK
from tilewright.llvm.parsed_module import ParsedModule


def set_option(option: str) -> None:
    """Set one of LLVM's options, for the whole process."""
    call("SetCommandLine", b"tilewright", option.encode())


def machine_options(spec: TargetSpec) -> dict[str, Any]:
    """The options of code generation for `spec`, by llvmlite's names.

    Code is position independent, with the small code model: the linkers of `object_loader` place
    all sections of an object close together and reach other libraries through stubs.
    """
    on_windows = spec.triple.endswith("-elf")
    return {
        "cpu": spec.cpu,
        "features": spec.features,
        "opt": spec.effort,
        "reloc": "default" if on_windows else "pic",
        "codemodel": "large" if on_windows else "small",
    }


class TargetMachine(Reference):
    """An LLVM code generator. RuntimeError for an unknown triple."""

    def __init__(self, spec: TargetSpec) -> None:
        triple = spec.triple.encode()
        target, problem = optional_text("GetTargetFromTriple", triple)
        if not target:
            raise RuntimeError(problem)
        cpu, features, opt, reloc, codemodel = machine_options(spec).values()
        texts = (triple, cpu.encode(), features.encode())
        more = (opt, reloc.encode(), codemodel.encode(), 0, 0, b"")
        made = call("CreateTargetMachine", target, *texts, *more)
        super().__init__(made, "DisposeTargetMachine")

    @property
    def triple(self) -> str:
        """The target triple, in LLVM's own form."""
        return filled_text("GetTargetMachineTriple", self)

    @property
    def data_layout(self) -> str:
        """See the function `data_layout`."""
        data = Reference(call("CreateTargetMachineData", self), "DisposeTargetData")
        return filled_text("CopyStringRepOfTargetData", data)

    def emit_object(self, module: ParsedModule) -> bytes:
        """The object file of a module."""
        return self._emitted(module, as_object=True)

    def emit_assembly(self, module: ParsedModule) -> str:
        """The assembly text of a module, PTX for NVIDIA's chips."""
        return self._emitted(module, as_object=False).decode()

    def _emitted(self, module: ParsedModule, *, as_object: bool) -> bytes:
        pointer, problem = optional_text("TargetMachineEmitToMemory", self, module, int(as_object))
        if not pointer:
            raise RuntimeError(problem)
        buffer = Reference(pointer, "DisposeMemoryBuffer")
        return string_at(call("GetBufferStart", buffer), call("GetBufferSize", buffer))


@functools.cache
def register_targets() -> None:
    """Register all targets, which takes 1.3 ms; the native one alone 0.9.

    Addresses of shared memory on NVIDIA's chips have 32 bits; LLVM's default is 64.
    """
    with LLVM_LOCK:
        set_option("--nvptx-short-ptr")
        for what in ("TargetInfos", "Targets", "TargetMCs", "AsmPrinters"):
            call(f"InitializeAll{what}")
        call("InitializeNativeAsmParser")


@functools.cache
def target_machine(spec: TargetSpec) -> TargetMachine:
    """LLVM's code generator for `spec`; one per process."""
    register_targets()
    return TargetMachine(spec)


@functools.cache
def data_layout(spec: TargetSpec) -> str:
    """LLVM's description of sizes and alignments on `spec`."""
    return target_machine(spec).data_layout
