"""`triton.compile`: a kernel with the files that programs for Triton look for.

`torch.compile` hands the cubins below TRITON_CACHE_DIR to a launcher of its own, in C++, and keeps
them with what else it caches of a graph; kernels that it does not find there go by `run`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.backends import GPUTarget
from tilewright.compiler import CompiledKernel, KernelSource
from tilewright.compiler import compile as compile_kernel
from tilewright.support import environment_text
from tilewright.support.disk_cache import replace_folder
from tilewright.triton_alias.argument_paths import path_key
from tilewright.triton_alias.shared_libraries import offer_libraries

_WIDENED = ("f16", "bf16")
"""Types that are passed as float32 by launchers that know Triton's kernels."""

_NEEDS = ("tensor_maps", "asserts", "prints", "resident", "launch_cooperative_grid", "launch_pdl")
"""Metadata of kernels whose launches need more than a grid."""


def compile(
    src: Any,
    target: GPUTarget | None = None,
    options: Mapping[str, Any] | None = None,
) -> CompiledKernel:
    """As `tilewright.compile`; with TRITON_CACHE_DIR, the cubin of a kernel that others can launch
    is the file <folder>/<hash in base 32>/<name>.cubin there. One for a CPU has the artifacts "so"
    and "launcher.so", see `shared_libraries`."""
    kernel = compile_kernel(src, target, options)
    if kernel.target.backend == "cpu":
        offer_libraries(kernel)
    folder = environment_text("TRITON_CACHE_DIR")
    if folder is not None and isinstance(src, KernelSource) and _is_plain(kernel):
        place = Path(folder) / path_key(kernel.hash)
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            replace_folder(place, {f"{kernel.name}.cubin": kernel.kernel})
    return kernel


def _is_plain(kernel: CompiledKernel) -> bool:
    """Whether a grid of blocks of 32 * num_warps threads that gets the arguments as they are is all
    that a launch needs."""
    if kernel.target.backend != "cuda" or any(p in _WIDENED for p in kernel.parameters):
        return False
    metadata = kernel.metadata.as_dict()
    threads = metadata.get("threads") or 32 * metadata["num_warps"]
    return (
        not any(metadata.get(name) for name in _NEEDS)
        and metadata["num_ctas"] == 1
        and threads == 32 * metadata["num_warps"]
    )
