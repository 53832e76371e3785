"""LLVM's code generators for what `code_targets` describes; imports llvmlite (30 ms)."""

import functools

from llvmlite import binding

from tilewright.llvm.code_targets import TargetSpec
from tilewright.llvm.llvm_lock import LLVM_LOCK

__all__ = ["data_layout", "target_machine"]


@functools.cache
def _register_targets() -> None:
    """All of them: 1.3 ms, where the native one alone takes 0.9.

    Addresses of shared memory on NVIDIA's chips have 32 bits; LLVM's default is 64.
    """
    with LLVM_LOCK:
        binding.set_option("tilewright", "--nvptx-short-ptr")
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        binding.initialize_native_asmparser()


@functools.cache
def target_machine(spec: TargetSpec) -> binding.TargetMachine:
    """LLVM's code generator for `spec`; one per process.

    Code is position independent, with the small code model: the linkers of `object_loader` place
    all sections of an object close together and reach other libraries through stubs.
    """
    _register_targets()
    target = binding.Target.from_triple(spec.triple)
    on_windows = spec.triple.endswith("-elf")
    return target.create_target_machine(
        cpu=spec.cpu,
        features=spec.features,
        opt=spec.effort,
        reloc="default" if on_windows else "pic",
        codemodel="large" if on_windows else "small",
    )


@functools.cache
def data_layout(spec: TargetSpec) -> str:
    """LLVM's description of sizes and alignments on `spec`."""
    return str(target_machine(spec).target_data)
