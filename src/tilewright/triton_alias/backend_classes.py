"""`triton.backends`: the back ends by name, and their classes for other packages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from types import SimpleNamespace
from typing import Any

from tilewright.backends import GPUTarget, backend_named, backend_names
from tilewright.compiler import Language, options_of
from tilewright.runtime import ActiveDriver as DriverBase
from tilewright.runtime import driver, driver_class
from tilewright.support import errors
from tilewright.support.data_class import dataclass
from tilewright.triton_alias import memory_accesses

__all__ = [
    "BaseBackend",
    "CUDABackend",
    "DriverBase",
    "GPUTarget",
    "Language",
    "TritonBackend",
    "backends",
    "default_driver",
    "make_backend",
    "max_shared_mem",
    "min_dot_size",
]

Benchmarker = Callable[..., Any]
"""The type of `do_bench`."""
GPUDriver = DriverBase


class BaseBackend(ABC):
    """The compiler for a target: a view of one of our back ends, with Triton's names."""

    backend_name = ""

    def __init__(self, target: GPUTarget) -> None:
        if not self.supports_target(target):
            raise errors.UnknownTarget(str(target), backend_names())
        self.target = target

    @classmethod
    @abstractmethod
    def supports_target(cls, target: GPUTarget) -> bool:
        """Whether code can be made for a target."""

    def hash(self) -> str:
        """A text that differs between back ends that may generate different code."""
        return f"{backend_named(self.target.backend).version(self.target)}-{self.target}"

    def parse_options(self, opts: Mapping[str, Any]) -> Any:
        """The options of a launch as attributes, with defaults; options that the back end does not
        have are ignored."""
        backend = backend_named(self.target.backend)
        known = {name: value for name, value in opts.items() if name in backend.options.names()}
        options = options_of(backend, known)
        return SimpleNamespace(**asdict(options), hash=lambda: str(options.meaningful()))

    load_dialects = staticmethod(memory_accesses.load_dialects)

    def get_codegen_implementation(self, options: object) -> dict[str, object]:
        """The functions that Triton's front end takes from a back end; ours takes none."""
        return {}

    def get_module_map(self) -> dict[str, object]:
        """Modules that replace others in kernels of this back end: none."""
        return {}

    @staticmethod
    def parse_attr(desc: str) -> list[list[object]]:
        """The facts of an argument for the letters of its specialization."""
        return [["tt.divisibility", 16]] if "D" in desc else []


@cache
def _compiler_class(name: str) -> type[BaseBackend]:
    class NamedBackend(BaseBackend):
        backend_name = name

        @classmethod
        def supports_target(cls, target: GPUTarget) -> bool:
            return target.backend == name

    NamedBackend.__name__ = NamedBackend.__qualname__ = f"{name.upper()}Backend"
    NamedBackend.__doc__ = f"The compiler for {name}."
    return NamedBackend


@dataclass(frozen=True)
class TritonBackend:
    """A back end: the classes of its compiler and its driver."""

    compiler: type[BaseBackend]
    driver: Callable[[], DriverBase]


_NAMES = {"cuda": "nvidia"}
"""Triton's names of back ends whose targets have another name."""

backends = {
    _NAMES.get(name, name): TritonBackend(_compiler_class(name), driver_class(name))
    for name in backend_names()
}
CUDABackend, CudaDriver = _compiler_class("cuda"), driver_class("cuda")


def make_backend(target: GPUTarget) -> BaseBackend:
    """The compiler for a target. Errors: UnknownTarget."""
    if target.backend not in backend_names():
        raise errors.UnknownTarget(str(target), backend_names())
    return _compiler_class(target.backend)(target)


def default_driver() -> DriverBase:
    """The driver of this machine's best device."""
    return driver.default


def max_shared_mem(device: int) -> int:
    """Bytes of shared memory that one program may have on a device."""
    return driver.active.utils.get_device_properties(device)["max_shared_mem"]


def CudaUtils() -> Any:
    """Queries about NVIDIA's devices."""
    return CudaDriver().utils


def min_dot_size(target: GPUTarget) -> Callable[[Any, Any], tuple[int, int, int]]:
    """A function of two operands' types -> the minimal extents of `tl.dot`: dots smaller than an
    instruction are padded."""
    return lambda lhs, rhs: (1, 1, 1)
