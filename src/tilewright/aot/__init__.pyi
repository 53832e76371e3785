from tilewright.aot.compile_variants import MAX_COUNT, Precompiled, precompile
from tilewright.aot.find_kernel import check_python, kernel_named, only_kernel_of
from tilewright.aot.recording import Recording
from tilewright.aot.spec import KernelSpec
from tilewright.aot.spec_file import SPEC_VERSION, read_spec, spec_text, write_spec
from tilewright.aot.variants import count_of, generic_of, variants_of

__all__ = [
    "MAX_COUNT",
    "SPEC_VERSION",
    "KernelSpec",
    "Precompiled",
    "Recording",
    "check_python",
    "count_of",
    "generic_of",
    "kernel_named",
    "only_kernel_of",
    "precompile",
    "read_spec",
    "spec_text",
    "variants_of",
    "write_spec",
]
