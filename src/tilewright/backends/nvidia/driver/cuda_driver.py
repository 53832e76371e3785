"""The CUDA driver: devices, contexts, modules, pointers. Only this module calls it.

All work is in the primary context of each device, as in PyTorch, CuPy and the CUDA runtime. Nothing
is initialized before the first call of `driver()`.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import weakref
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar, TypeVar, cast

from tilewright.backends.nvidia.assemble.ptxas import (
    LESS_OPTIMIZED,
    Assembled,
    explain_failure,
    has_lines,
    is_long,
    parse_report,
)
from tilewright.backends.nvidia.driver.cuda_errors import (
    NOT_INITIALIZED,
    CudaAfterFork,
    CudaCallFailed,
)
from tilewright.backends.nvidia.driver.driver_api import (
    BACKEND,
    DriverApi,
    Handle,
    Status,
    load_api,
)
from tilewright.support import ForkLock, cached_property, errors, fork_waits, operating_system
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass

T = TypeVar("T")

_VERSION = 12_000  # of the interface of the functions that are called by address
_LEGACY_STREAM = 1  # CU_GET_PROC_ADDRESS_LEGACY_STREAM
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_LOG_BYTES = 1 << 16  # of each log of the driver's compiler

_PORTABLE, _MAPPED = 1, 2  # CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP
_UNTIMED = 2  # CU_EVENT_DISABLE_TIMING: cheaper, and enough to order streams

_SUCCESS = 0
_INVALID_VALUE = 1

# CUdevice_attribute
_WARP_SIZE = 10
_REGISTERS_BLOCK = 12
_CLOCK_RATE = 13
_MULTIPROCESSORS = 16
_MEMORY_CLOCK_RATE = 36
_BUS_WIDTH = 37
_L2_BYTES = 38
_THREADS_SM = 39
_CAPABILITY_MAJOR = 75
_CAPABILITY_MINOR = 76
_SHARED_SM = 81
_REGISTERS_SM = 82
_SHARED_OPTIN = 97

# CUfunction_attribute
_MAX_THREADS = 0
_STATIC_SHARED = 1
_LOCAL_BYTES = 3
_REGISTERS = 4
_MAX_DYNAMIC_SHARED = 8
_NON_PORTABLE_CLUSTER = 14

# CUpointer_attribute
_MEMORY_TYPE = 2
_IS_MANAGED = 8
_DEVICE_ORDINAL = 9
_DEVICE_MEMORY = 2  # CU_MEMORYTYPE_DEVICE

# CUjit_option and CUjitInputType
_JIT_MAX_REGISTERS = 0
_JIT_INFO_LOG = 3
_JIT_INFO_LOG_BYTES = 4
_JIT_ERROR_LOG = 5
_JIT_ERROR_LOG_BYTES = 6
_JIT_OPTIMIZATION_LEVEL = 7
_JIT_LOG_VERBOSE = 12
_JIT_GENERATE_LINE_INFO = 13
_INPUT_PTX = 1


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU.

    capability: 10 * major + minor; clock, memory_clock: kHz; bus_bits: width of the memory bus;
    shared_optin, registers_block: bytes of shared memory and registers that a program may request;
    shared_sm, registers_sm, threads_sm: those of a multiprocessor, and its threads
    """

    ordinal: int
    name: str
    capability: int
    multiprocessors: int
    warp_size: int
    shared_optin: int
    shared_sm: int
    registers_block: int
    registers_sm: int
    threads_sm: int
    l2_bytes: int
    clock: int
    memory_clock: int
    bus_bits: int

    @property
    def bandwidth(self) -> float:
        """Memory bandwidth in bytes per second, from clock and width (double data rate)."""
        return 2.0 * self.memory_clock * 1e3 * self.bus_bits / 8


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """The resources of a loaded kernel, as the driver reports them.

    registers: of a thread; local_bytes: of a thread, spilled registers and arrays on the stack;
    static_shared: bytes declared in the kernel; max_threads: of one program, given its registers
    """

    registers: int
    local_bytes: int
    static_shared: int
    max_threads: int


@dataclass(frozen=True, slots=True)
class Pointer:
    """Memory that CUDA allocated or registered. on_device: false for pinned memory of the host."""

    device: int
    on_device: bool
    managed: bool


class _AfterFork:
    """Replacement of the bindings in a forked child, where CUDA does not work."""

    def __getattr__(self, name: str) -> Any:
        raise CudaAfterFork


class Driver:
    """Calls of the driver that raise; thread-safe. `api` is `cuda.bindings.driver`.

    Raises BackendUnavailable if there is no driver or no GPU, and CudaAfterFork in a child that was
    forked after the driver had been started.
    """

    _live: ClassVar[weakref.WeakSet[Driver]] = weakref.WeakSet()

    def __init__(self, api: DriverApi) -> None:
        self.api = api
        self._lock = ForkLock()
        self._contexts: dict[int, Handle] = {}
        self._devices: dict[int, Device] = {}
        self._functions: dict[tuple[int, str, bytes], int] = {}
        self._dynamic_shared: dict[int, int] = {}
        self._start()
        self._live.add(self)

    @classmethod
    def after_fork_in_child(cls) -> None:
        """Make every later call raise CudaAfterFork."""
        # CUDA's own errors in such a child do not name the fork as the cause
        for started in list(cls._live):
            started.api = cast("DriverApi", _AfterFork())

    @property
    def is_lost(self) -> bool:
        """Whether this process was forked from the one that started the driver."""
        return isinstance(self.api, _AfterFork)

    def _start(self) -> None:
        try:
            self.done("cuInit", self.api.cuInit(0))
            count = self.value("cuDeviceGetCount", self.api.cuDeviceGetCount())
        except CudaCallFailed as error:
            if error.status == NOT_INITIALIZED:  # by cuInit itself: the parent had called it
                raise CudaAfterFork from None
            raise errors.BackendUnavailable(BACKEND, error.message, error.hint or "") from None
        except synchronous(
            RuntimeError
        ) as error:  # of the bindings: no libcuda, or one without a function
            raise errors.BackendUnavailable(
                BACKEND, f"NVIDIA's driver is not installed ({error})", "install NVIDIA's driver"
            ) from None
        if count == 0:
            raise errors.BackendUnavailable(
                BACKEND, "there is no GPU", "check CUDA_VISIBLE_DEVICES"
            )

    # --- results ----------------------------------------------------------------------------------

    def done(self, call: str, result: tuple[Status]) -> None:
        """Raise CudaCallFailed if the status of a call without results is an error."""
        if int(result[0]) != _SUCCESS:
            raise self.failure(call, int(result[0]))

    def value(self, call: str, result: tuple[Status, T]) -> T:
        """The result of a call; CudaCallFailed if its status is an error."""
        if int(result[0]) != _SUCCESS:
            raise self.failure(call, int(result[0]))
        return result[1]

    def failure(self, call: str, status: int) -> CudaCallFailed:
        """The error of a `call` that returned `status`."""
        return CudaCallFailed(call, status, *self.describe(status))

    def describe(self, status: int) -> tuple[str, str]:
        """Name and description of a CUresult; the number and nothing for one that is unknown."""
        try:
            result = self.api.CUresult(status)
        except synchronous(ValueError):
            return f"CUresult {status}", ""
        name = self.api.cuGetErrorName(result)[1] or b"CUresult"
        return name.decode(), (self.api.cuGetErrorString(result)[1] or b"").decode()

    @cached_property
    def version(self) -> int:
        """CUDA version of the driver: 13000 for 13.0."""
        return self.value("cuDriverGetVersion", self.api.cuDriverGetVersion())

    # --- devices ----------------------------------------------------------------------------------

    def device(self, ordinal: int) -> Device:
        """The properties of a device; 0 is the first that CUDA_VISIBLE_DEVICES lets through."""
        device = self._devices.get(ordinal)
        if device is None:
            # without a lock: two threads would read equal properties
            device = self._devices[ordinal] = self._read_device(ordinal)
        return device

    def _handle(self, ordinal: int) -> Handle:
        return self.value("cuDeviceGet", self.api.cuDeviceGet(ordinal))

    def _read_device(self, ordinal: int) -> Device:
        handle = self._handle(ordinal)

        def number(attribute: int) -> int:
            key = self.api.CUdevice_attribute(attribute)
            return self.value("cuDeviceGetAttribute", self.api.cuDeviceGetAttribute(key, handle))

        name = self.value("cuDeviceGetName", self.api.cuDeviceGetName(256, handle))
        return Device(
            ordinal=ordinal,
            name=name.partition(b"\0")[0].decode(),
            capability=10 * number(_CAPABILITY_MAJOR) + number(_CAPABILITY_MINOR),
            multiprocessors=number(_MULTIPROCESSORS),
            warp_size=number(_WARP_SIZE),
            shared_optin=number(_SHARED_OPTIN),
            shared_sm=number(_SHARED_SM),
            registers_block=number(_REGISTERS_BLOCK),
            registers_sm=number(_REGISTERS_SM),
            threads_sm=number(_THREADS_SM),
            l2_bytes=number(_L2_BYTES),
            clock=number(_CLOCK_RATE),
            memory_clock=number(_MEMORY_CLOCK_RATE),
            bus_bits=number(_BUS_WIDTH),
        )

    # --- contexts ---------------------------------------------------------------------------------

    def primary_context(self, ordinal: int) -> Handle:
        """The context of a device; retained for the life of the process."""
        # the primary one, so that PyTorch's and CuPy's memory and streams are valid in it
        with self._lock:
            context = self._contexts.get(ordinal)
            if context is None:
                result = self.api.cuDevicePrimaryCtxRetain(self._handle(ordinal))
                context = self._contexts[ordinal] = self.value("cuDevicePrimaryCtxRetain", result)
            return context

    def context(self, ordinal: int) -> AbstractContextManager[None]:
        """A block in which a device is this thread's current one."""
        return self._entered(self.primary_context(ordinal))

    def context_of(self, stream: int) -> AbstractContextManager[None]:
        """A block in which the device of a stream is this thread's current one."""
        return self._entered(self.value("cuStreamGetCtx", self.api.cuStreamGetCtx(stream)))

    @contextmanager
    def _entered(self, context: Handle) -> Generator[None]:
        # pushed and not set, so that the program's own context is restored
        self.done("cuCtxPushCurrent", self.api.cuCtxPushCurrent(context))
        try:
            yield
        finally:
            self.value("cuCtxPopCurrent", self.api.cuCtxPopCurrent())

    def has_context(self) -> bool:
        """Whether this thread has a current device."""
        return int(self.value("cuCtxGetCurrent", self.api.cuCtxGetCurrent())) != 0

    def make_current(self, ordinal: int) -> None:
        """Make a device this thread's current one."""
        context = self.primary_context(ordinal)
        self.done("cuCtxSetCurrent", self.api.cuCtxSetCurrent(context))

    def current_device(self) -> int:
        """This thread's device; 0 if it has none yet, as in the CUDA runtime."""
        if not self.has_context():
            return 0
        return int(self.value("cuCtxGetDevice", self.api.cuCtxGetDevice()))

    def synchronize(self, ordinal: int) -> None:
        """Wait until a device has finished; CudaCallFailed if a kernel on it failed."""
        with self.context(ordinal):
            self.done("cuCtxSynchronize", self.api.cuCtxSynchronize())

    # --- streams ----------------------------------------------------------------------------------

    def synchronize_stream(self, stream: int) -> None:
        """Wait until a stream has finished; CudaCallFailed if a kernel in it failed."""
        self.done("cuStreamSynchronize", self.api.cuStreamSynchronize(stream))

    def is_capturing(self, stream: int) -> bool:
        """Whether launches in a stream are captured into a CUDA graph."""
        return int(self.value("cuStreamIsCapturing", self.api.cuStreamIsCapturing(stream))) != 0

    @contextmanager
    def relaxed_capture(self) -> Generator[None]:
        """A block in which this thread may load modules and allocate while a graph is captured."""
        # in the other modes such calls fail during a capture, and invalidate its graph
        exchange = self.api.cuThreadExchangeStreamCaptureMode
        before = self.value("cuThreadExchangeStreamCaptureMode", exchange(self._relaxed_mode()))
        try:
            yield
        finally:
            self.value("cuThreadExchangeStreamCaptureMode", exchange(before))

    def _relaxed_mode(self) -> object:
        return self.api.CUstreamCaptureMode(_RELAXED)

    # --- code -------------------------------------------------------------------------------------

    def address_of(self, function: str) -> int:
        """Address of a function of the driver's C interface."""
        # stream 0 is then the default stream that all libraries share, not one of the thread
        flags = self.api.CUdriverProcAddress_flags(_LEGACY_STREAM)
        result = self.api.cuGetProcAddress(function.encode(), _VERSION, flags)
        if int(result[0]) != _SUCCESS or int(result[1]) == 0:
            raise errors.BackendUnavailable(
                BACKEND, f"NVIDIA's driver has no {function}", "update NVIDIA's driver to CUDA 12"
            )
        return int(result[1])

    def compile_ptx(
        self, ptx: str, kernel: str, ordinal: int, *, maxnreg: int | None = None
    ) -> Assembled:
        """Compile PTX for a device by the compiler in the driver.

        Equivalent to `ptxas -c`, for linking with other code, which may use far more registers.
        Arguments and errors as in `ptxas.assemble`.
        """
        info, error = bytearray(_LOG_BYTES), bytearray(_LOG_BYTES)
        options: dict[int, object] = {
            _JIT_INFO_LOG: info,
            _JIT_INFO_LOG_BYTES: _LOG_BYTES,
            _JIT_ERROR_LOG: error,
            _JIT_ERROR_LOG_BYTES: _LOG_BYTES,
            _JIT_LOG_VERBOSE: 1,
        }
        if is_long(ptx):
            options[_JIT_OPTIMIZATION_LEVEL] = LESS_OPTIMIZED
        if has_lines(ptx):
            options[_JIT_GENERATE_LINE_INFO] = 1
        if maxnreg is not None:
            options[_JIT_MAX_REGISTERS] = maxnreg
        with self.context(ordinal), self.relaxed_capture():
            try:
                cubin = self._link(ptx, kernel, options)
            except CudaCallFailed as failure:
                raise explain_failure(_text(error) or str(failure), kernel, ptx) from None
        log = _text(info)
        return Assembled(cubin, parse_report(log, kernel), log)

    def _link(self, ptx: str, kernel: str, options: dict[int, object]) -> bytes:
        api = self.api
        keys = [api.CUjit_option(key) for key in options]
        created = api.cuLinkCreate(len(keys), keys, list(options.values()))
        state = self.value("cuLinkCreate", created)
        try:
            # the driver reads PTX up to a null byte
            text = ptx.encode() + b"\0"
            kind = api.CUjitInputType(_INPUT_PTX)
            name = kernel.encode()
            added = api.cuLinkAddData(state, kind, text, len(text), name, 0, [], [])
            self.done("cuLinkAddData", added)
            status, address, size = api.cuLinkComplete(state)
            self.done("cuLinkComplete", (status,))
            # a copy: the cubin belongs to the linker's state, which is destroyed below
            return ctypes.string_at(int(address), size)
        finally:
            self.done("cuLinkDestroy", api.cuLinkDestroy(state))

    def load(self, image: bytes, kernel: str, ordinal: int) -> int:
        """Load a cubin, or PTX, into a device's context, once; the CUfunction of `kernel`.

        Never unloaded: a captured graph may still launch it.
        """
        if not image.startswith(_ELF):
            # the driver gets no size: an ELF file has its own, PTX ends with a null byte
            image += b"\0"
        # by content, since the variants of a kernel have one name
        key = (ordinal, kernel, hashlib.sha256(image).digest())
        with self._lock:
            function = self._functions.get(key)
            if function is None:
                function = self._functions[key] = self._load(image, kernel, ordinal)
            return function

    def _load(self, image: bytes, kernel: str, ordinal: int) -> int:
        with self.context(ordinal), self.relaxed_capture():
            module = self.value("cuModuleLoadData", self.api.cuModuleLoadData(image))
            result = self.api.cuModuleGetFunction(module, kernel.encode())
            return int(self.value("cuModuleGetFunction", result))

    def variable(self, function: int, name: str) -> int:
        """Address of a variable in the module of a loaded kernel."""
        module = self.value("cuFuncGetModule", self.api.cuFuncGetModule(function))
        status, address, _ = self.api.cuModuleGetGlobal(module, name.encode())
        return int(self.value("cuModuleGetGlobal", (status, address)))

    def function_facts(self, function: int) -> FunctionFacts:
        """Registers, memory and threads of a loaded kernel."""

        def number(attribute: int) -> int:
            key = self.api.CUfunction_attribute(attribute)
            return self.value("cuFuncGetAttribute", self.api.cuFuncGetAttribute(key, function))

        return FunctionFacts(
            number(_REGISTERS), number(_LOCAL_BYTES), number(_STATIC_SHARED), number(_MAX_THREADS)
        )

    def allow_dynamic_shared(self, function: int, size: int) -> None:
        """Allow launches of a kernel to use `size` bytes, or as many as before; required above
        48 KB."""
        with self._lock:
            if self._dynamic_shared.get(function, 0) < size:
                self._set_function(function, _MAX_DYNAMIC_SHARED, size)
                self._dynamic_shared[function] = size

    def allow_large_clusters(self, function: int) -> None:
        """Allow launches of a kernel with clusters of more than 8 programs."""
        self._set_function(function, _NON_PORTABLE_CLUSTER, 1)

    def _set_function(self, function: int, attribute: int, value: int) -> None:
        key = self.api.CUfunction_attribute(attribute)
        self.done("cuFuncSetAttribute", self.api.cuFuncSetAttribute(function, key, value))

    # --- memory -----------------------------------------------------------------------------------

    def pointer(self, address: int) -> Pointer | None:
        """Device and kind of the memory at an address; None for memory unknown to CUDA."""
        kind = self._pointer_fact(_MEMORY_TYPE, address)
        if kind is None:
            return None
        ordinal = ctypes.c_int()
        status = self._pointer_attribute(ctypes.byref(ordinal), _DEVICE_ORDINAL, address)
        if status != _SUCCESS:
            raise self.failure("cuPointerGetAttribute", status)
        managed = bool(self._pointer_fact(_IS_MANAGED, address))
        return Pointer(ordinal.value, kind == _DEVICE_MEMORY, managed)

    @cached_property
    def _pointer_attribute(self) -> Callable[[object, int, int], int]:
        """The C function: that of cuda-bindings 13.0 returned device 0 for memory on device 1."""
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64)
        return prototype(self.address_of("cuPointerGetAttribute"))

    def _pointer_fact(self, attribute: int, address: int) -> int | None:
        key = self.api.CUpointer_attribute(attribute)
        status, value = self.api.cuPointerGetAttribute(key, address)
        # the result for memory that the driver has neither allocated nor registered
        if int(status) == _INVALID_VALUE:
            return None
        self.done("cuPointerGetAttribute", (status,))
        return int(value)

    def allocate(self, size: int) -> int:
        """Address of `size` new bytes of the current device."""
        return int(self.value("cuMemAlloc", self.api.cuMemAlloc(size)))

    def allocate_pinned(self, size: int) -> int:
        """Address of `size` new bytes of the host, mapped for devices at that address."""
        result = self.api.cuMemHostAlloc(size, _PORTABLE | _MAPPED)
        return int(self.value("cuMemHostAlloc", result))

    def free(self, address: int) -> None:
        """Free memory of `allocate`; waits for the device."""
        self.done("cuMemFree", self.api.cuMemFree(address))

    def fill(self, address: int, byte: int, size: int, stream: int) -> None:
        """Set bytes in stream order."""
        self.done("cuMemsetD8Async", self.api.cuMemsetD8Async(address, byte, size, stream))

    def write(self, address: int, data: bytes) -> None:
        """Copy from the host."""
        buffer = ctypes.create_string_buffer(data, len(data))
        copied = self.api.cuMemcpyHtoD(address, ctypes.addressof(buffer), len(data))
        self.done("cuMemcpyHtoD", copied)

    def read(self, address: int, size: int) -> bytes:
        """Copy to the host."""
        buffer = ctypes.create_string_buffer(size)
        copied = self.api.cuMemcpyDtoH(ctypes.addressof(buffer), address, size)
        self.done("cuMemcpyDtoH", copied)
        return buffer.raw

    # --- events -----------------------------------------------------------------------------------

    def create_event(self, timed: bool = True) -> int:
        """A CUevent of the current device. timed: whether it records the time."""
        flags = 0 if timed else _UNTIMED
        return int(self.value("cuEventCreate", self.api.cuEventCreate(flags)))

    def record_event(self, event: int, stream: int) -> None:
        """Record an event after the work issued to a stream."""
        self.done("cuEventRecord", self.api.cuEventRecord(event, stream))

    def wait_event(self, stream: int, event: int) -> None:
        """Make later work in a stream wait for an event."""
        self.done("cuStreamWaitEvent", self.api.cuStreamWaitEvent(stream, event, 0))

    def elapsed_ms(self, start: int, end: int) -> float:
        """Milliseconds between two completed events."""
        return self.value("cuEventElapsedTime", self.api.cuEventElapsedTime(start, end))

    def destroy_event(self, event: int) -> None:
        """Free an event."""
        self.done("cuEventDestroy", self.api.cuEventDestroy(event))


_ELF = b"\x7fELF"


def _text(log: bytearray) -> str:
    return log.partition(b"\0")[0].decode(errors="replace").strip()


@functools.cache
def driver() -> Driver:
    """The driver of this process; BackendUnavailable where there is none, or no GPU."""
    # A child would inherit a partially initialized driver. And functools.cache lets two threads
    # compute concurrently: the second one finds the driver of the first.
    with fork_waits():
        return _started_driver()


@functools.cache
def _started_driver() -> Driver:
    return Driver(load_api())


operating_system.at_fork(after_in_child=Driver.after_fork_in_child)


@functools.cache
def unavailable_reason() -> str | None:
    """Why kernels cannot run here; None if they can.

    In a child that was forked after its parent had used CUDA, the GPU counts as available for
    compilation, as in torch.compile's workers; its use raises CudaAfterFork.
    """
    try:
        driver()
    except errors.BackendUnavailable as error:
        return error.reason
    except CudaAfterFork:
        return None
    return None
