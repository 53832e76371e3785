"""Errors between a compiled kernel and the GPU: one class for each kind of report."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.support.data_class import dataclass
from tilewright.support.errors import BackendError, KernelRunError, LaunchError


@dataclass(eq=False)
class CudaCallFailed(BackendError, RuntimeError):
    """A call of the CUDA driver that failed. `status` is its CUresult."""

    code = "TW310"
    template = "{call} failed: {name} ({status}){text}"

    call: str
    status: int
    name: str
    description: str = ""

    @property
    def text(self) -> str:
        """The driver's description of the status."""
        return f": {self.description}" if self.description else ""

    @property
    def blames_binary(self) -> bool:
        """Whether the driver refuses the kernel's binary."""
        return self.status in _BAD_BINARY

    @property
    def hint(self) -> str | None:
        """Advice for failures whose cause is outside the call."""
        return _LOST if is_fault(self.status) else _CALL_HINTS.get(self.status)


@dataclass(eq=False)
class CudaAfterFork(BackendError, RuntimeError):
    """A use of the GPU in a child that was forked from a process that had used it."""

    code = "TW311"
    template = "CUDA cannot be used in this process: it was forked after its parent had used CUDA"
    hint_template = "start processes with multiprocessing.get_context('spawn'), or fork earlier"


@dataclass(eq=False)
class ArrayRefused(LaunchError, ValueError):
    """An array without a possible tensor map; nothing ran."""

    code = "TW214"
    template = "TMA takes no array at {address:#x} with extents {extents}, strides {strides}"
    hint_template = (
        "addresses and strides are multiples of 16 bytes, strides above 0; "
        "with bulk_loads='none' threads load the array"
    )

    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(eq=False)
class LaunchRefused(LaunchError, RuntimeError):
    """A launch that the driver did not accept; nothing ran."""

    code = "TW211"
    template = "the driver refused to launch {kernel} with grid {grid}: {name}{text}"

    kernel: str
    grid: tuple[int, ...]
    status: int
    name: str
    description: str = ""
    remedy: str = ""

    @property
    def text(self) -> str:
        """The driver's description of the status."""
        return f" ({self.description})" if self.description else ""

    @property
    def hint(self) -> str | None:
        """Advice for refused launches."""
        return self.remedy or None


@dataclass(eq=False)
class KernelFault(KernelRunError):
    """A kernel that failed while it ran. The process's context on that device is lost.

    suspects: the launches among which the one that failed is, as text, latest first; exactly one
    where launches are waited for.
    """

    code = "TW411"
    template = "{what} in {where}"
    hint_template = "{remedy}"

    what: str
    suspects: tuple[str, ...]
    status: int

    @property
    def where(self) -> str:
        """The failed launch, or the candidates."""
        if not self.suspects:
            return "a kernel that was not launched by tilewright"
        if len(self.suspects) == 1:
            return f"the launch {self.suspects[0]}"
        return "one of the latest launches: " + "; ".join(self.suspects)

    @property
    def remedy(self) -> str:
        """Advice after a fault."""
        lost = "the CUDA context of this process is lost: restart the process"
        if len(self.suspects) == 1:
            return lost
        return f"{lost}, with TILEWRIGHT_LAUNCH_BLOCKING=1 to learn which launch it was"


_FAULTS = {
    700: "an access to an illegal address",
    702: "a time-out",
    709: "a destroyed context",
    710: "a failed device assertion",
    714: "a hardware stack error",
    715: "an illegal instruction",
    716: "an access to a misaligned address",
    717: "an access to the wrong address space",
    718: "an invalid program counter",
    719: "a fault",
    721: "tensor memory that was not freed",
}
"""Faults by CUresult. After one of these every call in the context fails with it."""

_BAD_BINARY = (200, 209, 218, 500)
"""CUresult: no image of a kernel, none for this device, bad PTX, without the kernel's symbol."""

_FORKED = (
    "a process that forks after its first use of CUDA cannot use it in the child: start processes "
    "with the 'spawn' method"
)

_LOST = (
    "a kernel that ran before this call went wrong, and the CUDA context of this process is lost: "
    "restart it, with TILEWRIGHT_LAUNCH_BLOCKING=1 to learn which kernel it was"
)

# advice by CUresult of a call other than a launch
NOT_INITIALIZED = 3
"""CUDA_ERROR_NOT_INITIALIZED: in a child that was forked from a process that uses CUDA."""

_CALL_HINTS = {
    2: "free device memory, or lower the sizes",
    NOT_INITIALIZED: _FORKED,
    100: "check that nvidia-smi lists a GPU, and CUDA_VISIBLE_DEVICES",
    209: "the kernel was compiled for another architecture: clear the cache, or check the target",
    218: "please report it with the kernel's source: the driver's compiler refused its PTX",
    222: "update NVIDIA's driver: it does not know this version of PTX",
    900: "load the kernel before the capture begins: run it once",
}

# advice by CUresult of a launch
_LAUNCH_HINTS = {
    1: "a grid may be 2147483647 x 65535 x 65535 programs",
    NOT_INITIALIZED: _FORKED,
    201: "make the device current that the stream belongs to",
    400: "the stream was destroyed, or belongs to another device",
    701: "use fewer warps (num_warps), or limit registers (maxnreg)",
    720: "a cooperative grid must fit on the device at once: use fewer programs",
    912: "clusters (num_ctas) must fit on the device",
}


def is_fault(status: int) -> bool:
    """Whether a CUresult reports that an earlier kernel failed and the context is lost."""
    return status in _FAULTS


def faulted(status: int, suspects: Sequence[str]) -> KernelFault:
    """The error for a context that was lost to one of the launches `suspects`."""
    return KernelFault(_FAULTS.get(status, "a fault"), tuple(suspects), status)


def refused(
    kernel: str, grid: tuple[int, ...], status: int, name: str, description: str
) -> LaunchRefused:
    """The error for a launch that the driver did not accept."""
    remedy = _LAUNCH_HINTS.get(status, "")
    return LaunchRefused(kernel, grid, status, name, description, remedy)
