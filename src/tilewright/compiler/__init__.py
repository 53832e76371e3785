"""From a source to a compiled kernel: the stages of a backend, run in order."""

from tilewright.compiler.compile import compile_kernel
from tilewright.compiler.kernel import Artifacts, CompiledKernel

__all__ = ["Artifacts", "CompiledKernel", "compile_kernel"]
