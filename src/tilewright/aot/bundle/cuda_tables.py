"""Rows of a bundle's tables for GPUs: images, launch shapes, tensor maps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tilewright.compiler import CompiledKernel
from tilewright.support import import_late
from tilewright.support.data_class import dataclass

ANY, EXACT, PTX = 0, 1, 2
"""Devices that code runs on: those of its major version from its capability on; those of its
capability; all from its capability on."""

_LINES = re.compile(
    r"^[ \t]*(?:(?:\.loc|\.file|//)[^\n]*|\.section[^{]*\{[^}]*\})?\n", re.MULTILINE
)
"""The parts of PTX that only state places in the source, comments, and empty lines."""

_RANK = 5
"""Dimensions of a tensor map, as in bundle_runtime.c."""


@dataclass(frozen=True, slots=True)
class CudaCode:
    """Code for GPUs. kind: ANY, EXACT or PTX; image: a cubin, or PTX with a zero at its end"""

    kernel: CompiledKernel
    capability: int
    kind: int
    image: bytes


def cuda_codes(kernels: Sequence[CompiledKernel]) -> list[CudaCode]:
    """The code of a variant for all its GPUs, and PTX for later ones.

    PTX comes from the highest target whose PTX later GPUs accept: that for "sm_90a" runs on sm_90
    only (PTX ISA, `.target`).
    """
    codes = [_cubin(kernel) for kernel in kernels]
    portable = [kernel for kernel in kernels if not _is_exact(kernel)]
    if portable:
        last = portable[-1]
        text = _LINES.sub("", last.asm["ptx"])
        codes.append(CudaCode(last, int(last.target.arch), PTX, text.encode() + b"\0"))
    return codes


def _cubin(kernel: CompiledKernel) -> CudaCode:
    kind = EXACT if _is_exact(kernel) else ANY
    return CudaCode(kernel, int(kernel.target.arch), kind, bytes(kernel.asm["cubin"]))


def _is_exact(kernel: CompiledKernel) -> bool:
    return re.search(r"^\.target sm_\d+[af]", kernel.asm["ptx"], re.MULTILINE) is not None


def cuda_row(code: CudaCode, image: str, maps: str, map_count: int) -> str:
    """A row of type tw_cuda_code. image, maps: names of arrays in C"""
    metadata = code.kernel.metadata.as_dict()
    threads = int(metadata.get("threads") or 32 * metadata["num_warps"])
    numbers = (
        threads,
        int(metadata.get("shared", 0)),
        int(metadata.get("num_ctas", 1)),
        int(metadata.get("resident") or 0),
        int(bool(metadata.get("shares_copies"))),
        int(bool(metadata.get("launch_cooperative_grid"))),
        int(bool(metadata.get("launch_pdl"))),
        map_count,
    )
    shape = ", ".join(map(str, numbers))
    name = code.kernel.name
    same_major = code.capability // 10 * 10 + 9
    most = {ANY: same_major, EXACT: code.capability, PTX: "INT32_MAX"}[code.kind]
    return f'{{{code.capability}, {most}, {image}, "{name}", {shape}, {maps}}}'


def by_preference(codes: Sequence[CudaCode]) -> list[CudaCode]:
    """Code in the order in which a GPU takes the first that it runs: PTX last."""
    return sorted(codes, key=lambda code: (code.kind == PTX, -code.capability))


def capabilities(codes: Sequence[CudaCode]) -> str:
    """The GPUs of code for a message: "sm_80 sm_90 sm_90 and later"."""
    return " ".join(f"sm_{c.capability}{' and later' * (c.kind == PTX)}" for c in codes)


def tensor_maps(kernel: CompiledKernel) -> Sequence[Any]:
    """The tensor maps of a kernel, as its metadata has them."""
    return kernel.metadata.as_dict().get("tensor_maps") or ()


def map_row(plain: Any, places: Sequence[int]) -> str:
    """A row of type tw_map. places: of the kernel's arguments among those of the C function"""
    encoder = import_late("tilewright.backends.nvidia.tensor_maps")
    source = encoder.TensorMapSource.from_plain(plain)
    dims = [_number(n, places) for n in reversed(source.dims)]
    # the innermost stride is 1, and not stated
    strides = ["{-1, 1, 1}", *(_number(n, places) for n in reversed(source.strides))]
    box = [str(extent) for extent in reversed(source.box)]
    kind, swizzle = encoder.ELEMENT_KINDS[source.element], encoder.SWIZZLES[source.swizzle]
    numbers = f"{kind}, {source.element_bytes}, {swizzle}"
    lists = ", ".join(f"{{{', '.join(items)}}}" for items in (dims, strides, box))
    return f"{{{places[source.base]}, {len(dims)}, {lists}, {numbers}}}"


def _number(number: Any, places: Sequence[int]) -> str:
    parameter: int | None = number.parameter
    argument = -1 if parameter is None else places[parameter]
    return f"{{{argument}, {number.constant}, {number.divisor}}}"
