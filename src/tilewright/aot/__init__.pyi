from tilewright.aot.find_kernel import check_python, kernel_named, only_kernel_of
from tilewright.aot.spec import KernelSpec
from tilewright.aot.spec_file import SPEC_VERSION, read_spec, spec_text, write_spec

__all__ = [
    "SPEC_VERSION",
    "KernelSpec",
    "check_python",
    "kernel_named",
    "only_kernel_of",
    "read_spec",
    "spec_text",
    "write_spec",
]
