"""Stands in for `cuda.bindings.driver`: two devices, and what was asked of them."""

from __future__ import annotations

import ctypes
import enum
import itertools
import threading
from collections import defaultdict
from dataclasses import dataclass, field

from tests.unit.backends.nvidia.fake_launch import DEVICE, FakeDriver
from tilewright.backends.nvidia.driver.cuda_driver import Driver

SUCCESS, INVALID_VALUE, NO_DEVICE = 0, 1, 100
ILLEGAL_ADDRESS, INVALID_PTX = 700, 218
DEVICE_BASE = 1 << 44
HOST_PINNED = 1 << 43
MANAGED = 1 << 42


LOG = (
    b"info    : 0 bytes gmem\n"
    b"info    : Function properties for 'kernel':\n"
    b"info    : used 55 registers, used 1 barriers, 24 stack, 16 bytes smem, 572 bytes cmem[0], "
    b"8 bytes lmem"
)
"""As the driver of CUDA 13.0 writes it."""


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_NOT_INITIALIZED = 3
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


@dataclass
class FakeFunction:
    registers: int = 40
    local_bytes: int = 0
    static_shared: int = 0
    max_threads: int = 1024
    attributes: dict[int, int] = field(default_factory=dict[int, int])


class FakeCuda:
    """`devices`: capabilities. Everything succeeds but what `fails` names.

    order: (stream, stream that waits for it, launches before that)
    """

    CUresult = CUresult

    def __init__(self, devices: tuple[int, ...] = (90, 90)) -> None:
        self.devices = devices
        self.fails: dict[str, int] = {}
        self.calls: list[str] = []
        self._threads = threading.local()
        self.function = FakeFunction()
        self.images: list[tuple[int, bytes]] = []
        self.capturing: set[int] = set()
        self.capture_mode = 0
        self.mode_of_loads: list[int] = []
        self.memory: dict[int, bytearray] = {}
        self.pinned: list[ctypes.Array[ctypes.c_char]] = []
        self.untimed: set[int] = set()
        self.recorded: dict[int, int] = {}
        self.order: list[tuple[int, int, int]] = []
        self.device_of_stream: dict[int, int] = defaultdict(int)
        self.links: list[dict[int, object]] = []
        self.log = LOG
        self.error_log = b""
        self.machine = FakeDriver()
        self.addresses = {
            b"cuLaunchKernelEx": self.machine.launch,
            b"cuPointerGetAttribute": self._pointer_attribute_in_c(),
        }
        self._numbers = itertools.count(DEVICE_BASE, 1 << 20)
        self._cubin = ctypes.create_string_buffer(b"\x7fELF machine code")

    @property
    def stack(self) -> list[int]:
        """The contexts of this thread."""
        return self._threads.__dict__.setdefault("stack", [])

    def driver(self) -> Driver:
        return Driver(self)  # pyright: ignore[reportArgumentType]

    def _pointer_attribute_in_c(self) -> int:
        """Address of `cuPointerGetAttribute` as a C function."""

        def query(out: int, attribute: int, address: int) -> int:
            status, value = self.cuPointerGetAttribute(attribute, address)
            ctypes.c_int.from_address(out).value = value
            return int(status)

        kinds = ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64
        self._query = ctypes.CFUNCTYPE(*kinds)(query)
        return ctypes.cast(self._query, ctypes.c_void_p).value or 0

    def _done(self, call: str) -> CUresult:
        self.calls.append(call)
        return CUresult(self.fails.get(call, SUCCESS))

    # enumerations pass through as numbers
    CUdevice_attribute = CUfunction_attribute = CUpointer_attribute = int
    CUjit_option = CUjitInputType = CUstreamCaptureMode = CUdriverProcAddress_flags = int

    def cuInit(self, Flags: int) -> tuple[CUresult]:
        return (self._done("cuInit"),)

    def cuGetErrorName(self, error: CUresult) -> tuple[CUresult, bytes]:
        return CUresult.CUDA_SUCCESS, error.name.encode()

    def cuGetErrorString(self, error: CUresult) -> tuple[CUresult, bytes]:
        return CUresult.CUDA_SUCCESS, b"text of " + str(int(error)).encode()

    def cuGetProcAddress(
        self, symbol: bytes, cudaVersion: int, flags: int
    ) -> tuple[CUresult, int, int]:
        assert cudaVersion == 12000
        return CUresult.CUDA_SUCCESS, self.addresses.get(symbol, 0), 0

    def cuDeviceGetCount(self) -> tuple[CUresult, int]:
        return self._done("cuDeviceGetCount"), len(self.devices)

    def cuDeviceGet(self, ordinal: int) -> tuple[CUresult, int]:
        return self._done("cuDeviceGet"), ordinal

    def cuDeviceGetName(self, length: int, dev: int) -> tuple[CUresult, bytes]:
        return self._done("cuDeviceGetName"), b"Fake GPU\0".ljust(length)

    def cuDeviceGetAttribute(self, attrib: int, dev: int) -> tuple[CUresult, int]:
        major, minor = divmod(self.devices[dev], 10)
        numbers = {75: major, 76: minor, 16: 132, 10: 32, 97: 232448, 36: 2619000, 37: 5120}
        return self._done("cuDeviceGetAttribute"), numbers.get(attrib, 1000 + attrib)

    def cuDevicePrimaryCtxRetain(self, dev: int) -> tuple[CUresult, int]:
        return self._done("cuDevicePrimaryCtxRetain"), 0xC000 + dev

    def cuCtxGetCurrent(self) -> tuple[CUresult, int]:
        return self._done("cuCtxGetCurrent"), self.stack[-1] if self.stack else 0

    def cuCtxSetCurrent(self, ctx: int) -> tuple[CUresult]:
        self.stack[-1:] = [ctx]
        return (self._done("cuCtxSetCurrent"),)

    def cuCtxPushCurrent(self, ctx: int) -> tuple[CUresult]:
        self.stack.append(ctx)
        return (self._done("cuCtxPushCurrent"),)

    def cuCtxPopCurrent(self) -> tuple[CUresult, int]:
        return self._done("cuCtxPopCurrent"), self.stack.pop()

    def cuCtxGetDevice(self) -> tuple[CUresult, int]:
        return self._done("cuCtxGetDevice"), self.stack[-1] - 0xC000

    def cuStreamGetCtx(self, hStream: int) -> tuple[CUresult, int]:
        return self._done("cuStreamGetCtx"), 0xC000 + self.device_of_stream[hStream]

    def cuCtxSynchronize(self) -> tuple[CUresult]:
        return (self._done("cuCtxSynchronize"),)

    def cuModuleLoadData(self, image: bytes) -> tuple[CUresult, int]:
        self.images.append((self.stack[-1] - 0xC000, image))
        self.mode_of_loads.append(self.capture_mode)
        return self._done("cuModuleLoadData"), 0xD000 + len(self.images)

    def cuModuleGetFunction(self, hmod: int, name: bytes) -> tuple[CUresult, int]:
        return self._done("cuModuleGetFunction"), hmod + 0x1000

    def cuFuncGetAttribute(self, attrib: int, hfunc: int) -> tuple[CUresult, int]:
        f = self.function
        numbers = {0: f.max_threads, 1: f.static_shared, 3: f.local_bytes, 4: f.registers}
        return self._done("cuFuncGetAttribute"), numbers[attrib]

    def cuFuncSetAttribute(self, hfunc: int, attrib: int, value: int) -> tuple[CUresult]:
        self.function.attributes[attrib] = value
        return (self._done("cuFuncSetAttribute"),)

    def cuLinkCreate(
        self, numOptions: int, options: list[int], optionValues: list[object]
    ) -> tuple[CUresult, int]:
        assert numOptions == len(options) == len(optionValues)
        self.links.append(dict(zip(options, optionValues, strict=True)))
        return self._done("cuLinkCreate"), 0xE000

    def _write_log(self, option: int, text: bytes) -> None:
        buffer = self.links[-1][option]
        assert isinstance(buffer, bytearray)
        buffer[: len(text)] = text

    def cuLinkAddData(
        self, state: int, kind: int, data: bytes, size: int, name: bytes, *rest: object
    ) -> tuple[CUresult]:
        assert data.endswith(b"\0") and size == len(data)
        self._write_log(5, self.error_log)
        return (self._done("cuLinkAddData"),)

    def cuLinkComplete(self, state: int) -> tuple[CUresult, int, int]:
        self._write_log(3, self.log)
        return self._done("cuLinkComplete"), ctypes.addressof(self._cubin), 17

    def cuLinkDestroy(self, state: int) -> tuple[CUresult]:
        return (self._done("cuLinkDestroy"),)

    def cuPointerGetAttribute(self, attribute: int, ptr: int) -> tuple[CUresult, int]:
        if ptr < MANAGED:
            return CUresult.CUDA_ERROR_INVALID_VALUE, 0
        on_device = 2 if ptr >= DEVICE_BASE else 1
        ordinal = 0 if on_device == 1 else DEVICE if ptr < DEVICE_BASE << 1 else 1
        return self._done("cuPointerGetAttribute"), {
            2: on_device, 9: ordinal, 8: MANAGED <= ptr < HOST_PINNED,
        }[attribute]  # fmt: skip

    def cuMemAlloc(self, bytesize: int) -> tuple[CUresult, int]:
        address = next(self._numbers)
        self.memory[address] = bytearray(bytesize)
        return self._done("cuMemAlloc"), address

    def cuFuncGetModule(self, hfunc: int) -> tuple[CUresult, int]:
        return self._done("cuFuncGetModule"), hfunc

    def cuModuleGetGlobal(self, hmod: int, name: bytes) -> tuple[CUresult, int, int]:
        # two words, each of which can be written
        self.memory |= {hmod << 8: bytearray(8), (hmod << 8) + 8: bytearray(8)}
        return self._done("cuModuleGetGlobal"), hmod << 8, 16

    def cuMemHostAlloc(self, bytesize: int, Flags: int) -> tuple[CUresult, int]:
        self.pinned.append(ctypes.create_string_buffer(bytesize))
        return self._done("cuMemHostAlloc"), ctypes.addressof(self.pinned[-1])

    def cuMemFree(self, dptr: int) -> tuple[CUresult]:
        del self.memory[dptr]
        return (self._done("cuMemFree"),)

    def cuMemsetD8Async(self, dstDevice: int, uc: int, N: int, hStream: int) -> tuple[CUresult]:
        self.memory[dstDevice][:N] = bytes([uc]) * N
        return (self._done("cuMemsetD8Async"),)

    def cuMemcpyHtoD(self, dstDevice: int, srcHost: int, ByteCount: int) -> tuple[CUresult]:
        self.memory[dstDevice][:ByteCount] = ctypes.string_at(srcHost, ByteCount)
        return (self._done("cuMemcpyHtoD"),)

    def cuMemcpyDtoH(self, dstHost: int, srcDevice: int, ByteCount: int) -> tuple[CUresult]:
        ctypes.memmove(dstHost, bytes(self.memory[srcDevice][:ByteCount]), ByteCount)
        return (self._done("cuMemcpyDtoH"),)

    def cuStreamSynchronize(self, hStream: int) -> tuple[CUresult]:
        return (self._done("cuStreamSynchronize"),)

    def cuStreamIsCapturing(self, hStream: int) -> tuple[CUresult, int]:
        return self._done("cuStreamIsCapturing"), int(hStream in self.capturing)

    def cuThreadExchangeStreamCaptureMode(self, mode: int) -> tuple[CUresult, int]:
        before, self.capture_mode = self.capture_mode, mode
        return self._done("cuThreadExchangeStreamCaptureMode"), before

    def cuEventCreate(self, Flags: int) -> tuple[CUresult, int]:
        event = next(self._numbers)
        self.untimed |= {event} if Flags == 2 else set()
        return self._done("cuEventCreate"), event

    def cuEventRecord(self, hEvent: int, hStream: int) -> tuple[CUresult]:
        self.recorded[hEvent] = hStream
        return (self._done("cuEventRecord"),)

    def cuStreamWaitEvent(self, hStream: int, hEvent: int, Flags: int) -> tuple[CUresult]:
        self.order.append((self.recorded[hEvent], hStream, self.machine.calls))
        return (self._done("cuStreamWaitEvent"),)

    def cuEventElapsedTime(self, hStart: int, hEnd: int) -> tuple[CUresult, float]:
        assert not {hStart, hEnd} & self.untimed, "events without time"
        return self._done("cuEventElapsedTime"), (hEnd - hStart) / (1 << 20)

    def cuEventDestroy(self, hEvent: int) -> tuple[CUresult]:
        return (self._done("cuEventDestroy"),)
