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
from tilewright.support import environment_text, errors
from tilewright.support.disk_cache import replace_folder
from tilewright.triton_alias.argument_paths import path_key
from tilewright.triton_alias.shared_libraries import offer_libraries

_WIDENED = ("f16", "bf16")
"""Types that are passed as float32 by launchers that know Triton's kernels."""

_NEEDS = {
    "tensor_maps": "tensor maps, which its host makes (bulk_loads, tensor descriptors)",
    "asserts": "a host that hears of its assertions (inductor.assert_indirect_indexing)",
    "prints": "a host that prints",
    "resident": "a grid that fits the device at a time (persistent)",
    "launch_cooperative_grid": "a cooperative launch",
    "launch_pdl": "a launch with a dependency",
}
"""Metadata of kernels whose launches need more than a grid, and what."""


_LONGEST_NAME = 150
"""Of a cubin's file, in characters, as Triton cuts them: names of fused kernels can be longer than
a file system allows."""


class LaunchSchema(dict[str, object]):
    """What a launch from C++ is told of a kernel for GPUs, by PyTorch's names; or that it cannot
    be one, by NotInLibrary, for which `obstacle` is the reason."""

    obstacle = ""

    def __getitem__(self, name: str) -> object:
        """One of them."""
        if self.obstacle:
            raise errors.NotInLibrary(self.obstacle)
        return super().__getitem__(name)


def compile(
    src: Any,
    target: GPUTarget | None = None,
    options: Mapping[str, Any] | None = None,
) -> CompiledKernel:
    """As `tilewright.compile`; with TRITON_CACHE_DIR, the cubin of a kernel that others can launch
    is the file <folder>/<hash in base 32>/<name>.cubin there, long names cut. One for a CPU has the
    artifacts "so" and "launcher.so", see `shared_libraries`; one for a GPU its
    `launch_metadata_schema`."""
    kernel = compile_kernel(src, target, options)
    if kernel.target.backend == "cpu":
        offer_libraries(kernel)
    if kernel.target.backend != "cuda":
        return kernel
    schema = launch_schema(kernel)
    setattr(kernel, "launch_metadata_schema", schema)  # noqa: B010 -- none of `CompiledKernel`'s own
    folder = environment_text("TRITON_CACHE_DIR")
    if folder is not None and isinstance(src, KernelSource) and _is_plain(kernel, schema):
        place = Path(folder) / path_key(kernel.hash)
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            replace_folder(place, {f"{kernel.name[:_LONGEST_NAME]}.cubin": kernel.kernel})
    return kernel


def launch_schema(kernel: CompiledKernel) -> LaunchSchema:
    """What AOTInductor saves of a kernel beside its cubin. num_warps: with those that only copy."""
    metadata = kernel.metadata.as_dict()
    threads = metadata.get("threads") or 32 * metadata["num_warps"]
    schema = LaunchSchema(
        entry_name=kernel.name, num_warps=threads // 32, shared_mem=metadata["shared"]
    )
    needs = [need for name, need in _NEEDS.items() if metadata.get(name)]
    if metadata["num_ctas"] != 1:
        needs.append("clusters")
    if any(parameter in _WIDENED for parameter in kernel.parameters):
        needs.append("numbers of 16 bits")
    if needs:
        schema.obstacle = f"'{kernel.name}' needs {', '.join(needs)}"
    return schema


def _is_plain(kernel: CompiledKernel, schema: LaunchSchema) -> bool:
    """Whether a grid of blocks of 32 * num_warps threads that gets the arguments as they are is all
    that a launch needs."""
    return not schema.obstacle and schema["num_warps"] == kernel.metadata.num_warps
