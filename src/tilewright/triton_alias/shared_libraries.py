"""Kernels for CPUs as shared libraries, which AOTInductor's programs call without Python.

PyTorch 2.13 (`aoti_runtime/cpu_triton_runtime_wrappers.h`) loads two libraries for each kernel: one
with the kernel under its name, and one with a C function that launches it,

    run_from_nativert(uint32 x, uint32 y, uint32 z, int threads, void **args, void *kernel)

args has an entry for each parameter of the source: a pointer itself; the address of a number, which
is an int64_t, bool, double (of a float64) or float (of others); null for a constant. They are the
artifacts "so" and "launcher.so" of a kernel, created at their first use, which needs a linker of
the system.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.compiler import CompiledKernel
from tilewright.llvm import link_shared_library
from tilewright.native import NativeProgram, constant
from tilewright.support import errors
from tilewright.support.data_class import dataclass

ENTRY = "run_from_nativert"


class LibraryJob(ctypes.Structure):
    """A launch, for the threads that share it."""

    _fields_ = (
        ("code", ctypes.c_void_p),  # the kernel's function
        ("slots", ctypes.c_void_p),  # its arguments, 8 bytes each
        ("total", ctypes.c_int64),  # programs
        ("grid", ctypes.c_int32 * 3),
        ("poll", ctypes.c_int32),  # 0: nobody interrupts it
    )


@dataclass(frozen=True, slots=True)
class Launch:
    """The launcher of a kernel.

    title: of the kernel, for messages; parameters: types of the run-time arguments; places: their
    positions among all parameters of the source, None if some have no own position; scratch:
    bytes for each thread; alone: programs of the largest grid that one thread runs; together:
    whether programs wait for each other.
    """

    title: str
    parameters: tuple[str, ...]
    places: tuple[int, ...] | None
    scratch: int
    alone: int
    together: bool

    def __call__(self, artifacts: Mapping[str, Any]) -> bytes:
        """The library. Errors: NotInLibrary, ToolMissing."""
        return link_shared_library([self.program().compile()])

    def program(self) -> NativeProgram:
        """Its code."""
        if self.places is None:
            raise errors.NotInLibrary(f"{self.title} takes tuples or tensor descriptors")
        title = self.title.encode() + b"\0"
        text = "".join(f"\\{byte:02X}" for byte in title)
        numbers = {
            "slot_count": len(self.parameters),
            "scratch_bytes": self.scratch,
            "alone": self.alone,
            "together": int(self.together),
        }
        # the defaults are for Windows only, where PyTorch refuses such libraries
        flags = getattr(os, "RTLD_NOLOAD", 4) | getattr(os, "RTLD_LAZY", 1)
        return NativeProgram(
            source=Path(__file__).with_name("library_launcher.c"),
            exports=[ENTRY],
            structures=[LibraryJob],
            definitions={
                "pack": _pack_function(self.parameters, self.places),
                "kernel_title": f'@kernel_title = private constant [{len(title)} x i8] c"{text}"',
                "loaded_already": constant("loaded_already", flags, bits=32),
                **{name: constant(name, number) for name, number in numbers.items()},
            },
        )


def offer_libraries(kernel: CompiledKernel) -> None:
    """Make a kernel for a CPU create its libraries at their first use."""
    metadata = kernel.metadata.as_dict()
    places = kernel.src.run_time_places()
    launch = Launch(
        title=f"the kernel '{kernel.name}'",
        parameters=kernel.parameters,
        places=None if places is None else places[0],
        scratch=metadata["scratch_bytes"],
        alone=metadata["alone"],
        together=metadata["together"],
    )
    kernel.asm.offer("so", _linked)
    kernel.asm.offer("launcher.so", launch)


def _linked(artifacts: Mapping[str, Any]) -> bytes:
    return link_shared_library([artifacts["obj"]])


_STORED = {"i1": "i8", "f32": "float", "f64": "double"}
"""C types of numbers in slots; all others are whole words."""

_NARROW = {"f16": "half", "bf16": "bfloat"}
"""Types that are passed as float32."""


def _pack_function(parameters: Sequence[str], places: Sequence[int]) -> str:
    lines: list[str] = []
    for i, (parameter, place) in enumerate(zip(parameters, places, strict=True)):
        lines += [
            f"%at{i} = getelementptr ptr, ptr %args, i64 {place}",
            f"%given{i} = load ptr, ptr %at{i}",
            f"%slot{i} = getelementptr i64, ptr %slots, i64 {i}",
            *_stored(i, parameter),
        ]
    body = "\n".join(f"  {line}" for line in [*lines, "ret void"])
    return f"define internal void @pack(ptr %args, ptr %slots) nounwind {{\n{body}\n}}"


def _stored(i: int, parameter: str) -> list[str]:
    """Lines that store the value that argument i points to, or the pointer itself."""
    if parameter.startswith("ptr"):
        return [f"store ptr %given{i}, ptr %slot{i}"]
    if parameter in _NARROW:
        narrow = _NARROW[parameter]
        return [
            f"%n{i} = load float, ptr %given{i}",
            f"%narrow{i} = fptrunc float %n{i} to {narrow}",
            f"store {narrow} %narrow{i}, ptr %slot{i}",
        ]
    stored = _STORED.get(parameter, "i64")
    return [f"%n{i} = load {stored}, ptr %given{i}", f"store {stored} %n{i}, ptr %slot{i}"]
