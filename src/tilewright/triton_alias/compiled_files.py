"""`triton.compile`: a kernel with the files that programs for Triton read.

`torch.compile` passes the cubins below TRITON_CACHE_DIR to its own launcher in C++, and caches them
with the graph; it launches kernels without such a file by `run`.
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
    "tensor_maps": "tensor maps, which the host encodes (bulk_loads, tensor descriptors)",
    "asserts": "a host that reports its assertions (inductor.assert_indirect_indexing)",
    "prints": "a host that prints",
    "resident": "a grid that is resident at once (persistent)",
    "launch_cooperative_grid": "a cooperative launch",
    "launch_pdl": "a launch with a dependency",
}
"""Metadata of kernels whose launches need more than a grid, with its description."""


_LONGEST_NAME = 150
"""Maximal characters of a cubin's file name, as in Triton: names of fused kernels can be longer
than a file system allows."""


class LaunchSchema(dict[str, object]):
    """The description of a kernel for GPUs for launches from C++, with PyTorch's names; or
    NotInLibrary with the reason, `obstacle`."""

    obstacle = ""

    def __getitem__(self, name: str) -> object:
        """An item of the description."""
        if self.obstacle:
            raise errors.NotInLibrary(self.obstacle)
        return super().__getitem__(name)


def compile(
    src: Any,
    target: GPUTarget | None = None,
    options: Mapping[str, Any] | None = None,
) -> CompiledKernel:
    """Compile as `tilewright.compile` does. With TRITON_CACHE_DIR, the cubin of a kernel that other
    programs can launch is the file <folder>/<hash in base 32>/<name>.cubin there, with long names
    cut. A kernel for a CPU has the artifacts "so" and "launcher.so", see `shared_libraries`; one
    for a GPU has its `launch_metadata_schema`."""
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
    """The description that AOTInductor stores with a cubin. num_warps: including producer warps."""
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
    """Whether a launch needs only a grid of blocks of 32 * num_warps threads and the unchanged
    arguments."""
    return not schema.obstacle and schema["num_warps"] == kernel.metadata.num_warps
