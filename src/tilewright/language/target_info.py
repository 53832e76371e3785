"""`tl.target_info`: compile-time queries about the target."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.language.compile_time import constexpr
from tilewright.language.stub_dispatch import builtin


class Target(NamedTuple):
    """A kind of machine. backend: "cuda" or "cpu"; arch: compute capability, 90 for Hopper."""

    backend: str
    arch: int
    warp_size: int


CPU = Target("cpu", 0, 1)


@builtin
def current_target() -> Target:
    """The Target that the kernel is compiled for."""
    ...


@builtin
def is_cuda() -> constexpr:
    """Whether it is an NVIDIA GPU."""
    ...


@builtin
def cuda_capability_geq(major: int | constexpr, minor: int | constexpr = 0) -> constexpr:
    """Whether it is an NVIDIA GPU of at least this compute capability."""
    ...


@builtin
def is_hip() -> constexpr:
    """Whether it is an AMD GPU: False."""
    ...


@builtin
def is_hip_cdna3() -> constexpr:
    """Whether it is an AMD GPU of CDNA 3: False."""
    ...


@builtin
def is_hip_cdna4() -> constexpr:
    """Whether it is an AMD GPU of CDNA 4: False."""
    ...


__all__ = [
    "CPU",
    "Target",
    "cuda_capability_geq",
    "current_target",
    "is_cuda",
    "is_hip",
    "is_hip_cdna3",
    "is_hip_cdna4",
]
