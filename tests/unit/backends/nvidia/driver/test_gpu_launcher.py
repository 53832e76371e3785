"""Loading and launching kernels, against a stand-in for the driver."""

import ctypes
import gc
import re
import struct
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.unit.backends.nvidia.fake_cuda import (
    DEVICE_BASE,
    HOST_PINNED,
    ILLEGAL_ADDRESS,
    FakeCuda,
)
from tests.unit.backends.nvidia.fake_launch import DEVICE
from tilewright.backends.device_messages import packed
from tilewright.backends.nvidia.driver import cuda_driver, current_stream, gpu_launcher
from tilewright.backends.nvidia.driver.cuda_driver import Driver
from tilewright.backends.nvidia.driver.cuda_errors import KernelFault, LaunchRefused
from tilewright.backends.nvidia.driver.gpu_launcher import NvidiaLauncher
from tilewright.backends.nvidia.driver.gpu_messages import FailureRecord
from tilewright.support import errors

METADATA = {"name": "softmax", "num_warps": 4, "shared": 0, "num_ctas": 1}
INVALID_CONTEXT, OUT_OF_RESOURCES = 201, 701


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCuda]:
    """The machine code's stand-in knows memory of DEVICE, so that is the current device."""
    cuda = FakeCuda((90,) * (DEVICE + 2))
    monkeypatch.setattr(gpu_launcher, "device_and_stream", lambda: (DEVICE, 0x57))
    yield cuda


def make(cuda: FakeCuda, parameters: list[str], **metadata: object) -> NvidiaLauncher:
    cuda.machine.expect(len(parameters))
    return NvidiaLauncher(b"\x7fELF", {**METADATA, **metadata}, parameters, cuda.driver())


def test_launch_reaches_the_driver(cuda: FakeCuda) -> None:
    kernel = make(cuda, ["ptr<f32>", "ptr<f16, const>", "i32"], num_warps=8, shared=1024)
    kernel.launch((3, 2, 1), (DEVICE_BASE, None, -5))
    got = cuda.machine.launched()
    assert (got.grid, got.block, got.shared_bytes, got.stream) == ((3, 2, 1), (256, 1, 1), 1024, 87)
    assert got.slots[:2] == [DEVICE_BASE, 0]
    assert got.slots[2].to_bytes(8, "little")[:4] == (-5).to_bytes(4, "little", signed=True)
    assert got.function == 0xE001


def test_figures_of_the_loaded_kernel(cuda: FakeCuda) -> None:
    cuda.function.registers, cuda.function.local_bytes = 72, 24
    kernel = make(cuda, [])
    assert (kernel.n_regs, kernel.n_spills) == (72, 6)


def test_one_module_for_each_device(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = make(cuda, [])
    kernel.launch((1, 1, 1), ())
    monkeypatch.setattr(gpu_launcher, "device_and_stream", lambda: (1, 0))
    kernel.launch((1, 1, 1), ())
    kernel.launch((1, 1, 1), ())
    assert [device for device, _ in cuda.images] == [DEVICE, 1]
    assert cuda.machine.launched().function == 0xE002
    assert cuda.machine.calls == 3


def test_a_kernel_that_was_dropped_and_comes_back_is_the_same_function(cuda: FakeCuda) -> None:
    """What was launched may still run, and a graph may hold it: nothing is unloaded."""
    api = cuda.driver()
    first = NvidiaLauncher(b"\x7fELF", METADATA, ["ptr<f32>"], api)
    cuda.machine.expect(1)
    first.launch((1, 1, 1), (DEVICE_BASE,))
    before = cuda.machine.launched()
    loaded, gone = len(cuda.images), weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None
    again = NvidiaLauncher(b"\x7fELF", METADATA, ["ptr<f32>"], api)
    again.launch((1, 1, 1), (DEVICE_BASE,))
    assert cuda.machine.launched() == before
    assert len(cuda.images) == loaded == 1
    assert not any("Unload" in call for call in cuda.calls)


def test_options_of_the_launch(cuda: FakeCuda) -> None:
    kernel = make(cuda, [], num_ctas=2, launch_cooperative_grid=True, launch_pdl=True)
    kernel.launch((2, 1, 1), ())
    assert [a[0] for a in cuda.machine.launched().attributes] == [4, 2, 6]
    assert cuda.function.attributes == {}


def test_clusters_of_more_than_8_programs_are_asked_for(cuda: FakeCuda) -> None:
    make(cuda, [], num_ctas=16)
    assert cuda.function.attributes == {14: 1}


@pytest.mark.parametrize(
    ("static", "dynamic", "expected"),
    [
        (0, 48 * 1024, {}),
        (0, 48 * 1024 + 16, {8: 49168}),
        (1024, 48 * 1024, {8: 49152}),
        (0, 232448, {8: 232448}),
    ],
)
def test_shared_memory_above_48_kb_is_asked_for(
    cuda: FakeCuda, static: int, dynamic: int, expected: dict[int, int]
) -> None:
    cuda.function.static_shared = static
    make(cuda, [], shared=dynamic)
    assert cuda.function.attributes == expected


def test_too_much_shared_memory(cuda: FakeCuda) -> None:
    cuda.function.static_shared = 16
    with pytest.raises(errors.OutOfResources) as caught:
        make(cuda, [], shared=232448)
    error = caught.value
    assert (error.required, error.limit, error.name) == (232464, 232448, "shared memory")


def test_too_many_threads_for_the_registers(cuda: FakeCuda) -> None:
    cuda.function.max_threads = 256
    with pytest.raises(errors.OutOfResources) as caught:
        make(cuda, [], num_warps=16)
    assert (caught.value.required, caught.value.limit, caught.value.name) == (512, 256, "threads")


# --- mistakes -------------------------------------------------------------------------------------


def test_host_pointer(cuda: FakeCuda) -> None:
    kernel = make(cuda, ["ptr<f32>", "ptr<f32>"], names=["out", "x"])
    with pytest.raises(errors.DeviceMismatch) as caught:
        kernel.launch((1, 1, 1), (DEVICE_BASE, 0x7FFF_0000))
    assert f"argument 'x' is on the host, but the kernel runs on cuda:{DEVICE}" in str(caught.value)
    assert cuda.machine.calls == 0


def test_memory_of_another_device(cuda: FakeCuda) -> None:
    kernel = make(cuda, ["ptr<f32>"])
    with pytest.raises(errors.DeviceMismatch, match=f"'#0' is on cuda:1.*cuda:{DEVICE}"):
        kernel.launch((1, 1, 1), (DEVICE_BASE << 1,))
    assert cuda.machine.calls == 0


def test_pinned_memory_of_the_host_is_fine(cuda: FakeCuda) -> None:
    make(cuda, ["ptr<f32>"]).launch((1, 1, 1), (HOST_PINNED,))
    assert cuda.machine.launched().slots == [HOST_PINNED]


def test_array_by_interface(cuda: FakeCuda) -> None:
    array = types.SimpleNamespace(__cuda_array_interface__={"data": (DEVICE_BASE + 64, False)})
    make(cuda, ["ptr<f32>"]).launch((1, 1, 1), (array,))
    assert cuda.machine.launched().slots == [DEVICE_BASE + 64]


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("ptr<f32>", [1.0], r"argument '#0' is a list.*array in the memory of the GPU"),
        ("ptr<f32>", -8, "argument '#0' is a value -8"),
        ("i32", 2**31, r"value 2147483648.*i32 holds -2147483648 to 2147483647"),
        ("u8", -1, r"value -1.*u8 holds 0 to 255"),
        ("i64", 1.5, r"a float.*pass a number for i64"),
        ("f32", "1.5", r"a str.*pass a number for f32"),
        ("bf16", None, r"a NoneType.*pass a number for bf16"),
        ("f64", 10**400, r"an? int.*f64"),
    ],
)
def test_arguments_that_do_not_fit(
    cuda: FakeCuda, parameter: str, value: object, message: str
) -> None:
    kernel = make(cuda, [parameter])
    with pytest.raises(errors.UnsupportedArgument) as caught:
        kernel.launch((1, 1, 1), (value,))
    assert re.search(message, str(caught.value).replace("\n", " "))
    assert cuda.machine.calls == 0


@pytest.mark.parametrize(
    ("parameter", "value", "expected"),
    [
        ("u64", np.uint64(2**64 - 1), 2**64 - 1),
        ("u64", np.int8(5), 5),
        ("i1", np.True_, 1),
        ("i1", 5, 1),
        ("ptr<f32>", np.uint64(DEVICE_BASE), DEVICE_BASE),
    ],
)
def test_numbers_of_other_types(
    cuda: FakeCuda, parameter: str, value: object, expected: int
) -> None:
    make(cuda, [parameter]).launch((1, 1, 1), (value,))
    assert cuda.machine.launched().slots == [expected]


@pytest.mark.parametrize(
    ("grid", "message"),
    [((-1, 1, 1), "negative"), ((2**31, 1, 1), "too large"), ((1.5, 1, 1), "not an integer")],
)
def test_bad_grid(cuda: FakeCuda, grid: tuple[int, int, int], message: str) -> None:
    with pytest.raises(errors.BadGrid, match=message):
        make(cuda, []).launch(grid, ())


# --- what the driver answers ----------------------------------------------------------------------


def test_first_launch_of_a_thread_gets_the_context(cuda: FakeCuda) -> None:
    kernel = make(cuda, [])
    cuda.machine.answer_once(INVALID_CONTEXT)
    kernel.launch((1, 1, 1), ())
    assert cuda.machine.calls == 2
    assert cuda.stack == [0xC000 + DEVICE]


def test_invalid_context_that_stays_is_an_error(cuda: FakeCuda) -> None:
    kernel = make(cuda, [])
    cuda.machine.answer(INVALID_CONTEXT)
    with pytest.raises(LaunchRefused, match="CUDA_ERROR_INVALID_CONTEXT"):
        kernel.launch((1, 1, 1), ())
    assert cuda.machine.calls == 2


def test_refused_launch(cuda: FakeCuda) -> None:
    kernel = make(cuda, [])
    cuda.machine.answer(OUT_OF_RESOURCES)
    with pytest.raises(LaunchRefused) as caught:
        kernel.launch((4, 5, 6), ())
    text = str(caught.value)
    assert "refused to launch softmax with grid (4, 5, 6): CUresult 701" in text
    assert "num_warps" in text


def test_fault_is_reported_with_the_launches_before(cuda: FakeCuda) -> None:
    shared = cuda.driver()
    first, second = (
        NvidiaLauncher(b"\x7fELF", {**METADATA, "name": name}, [], shared)
        for name in ("first", "second")
    )
    first.launch((7, 1, 1), ())
    second.launch((8, 1, 1), ())
    cuda.machine.answer(ILLEGAL_ADDRESS)
    with pytest.raises(KernelFault) as caught:
        first.launch((9, 1, 1), ())
    assert caught.value.suspects == ("second[(8, 1, 1)]", "first[(7, 1, 1)]")
    with pytest.raises(KernelFault) as caught:
        second.launch((9, 1, 1), ())
    assert caught.value.suspects == ("second[(8, 1, 1)]", "first[(7, 1, 1)]")
    text = str(caught.value)
    assert "an access to an illegal address in one of the latest launches" in text
    assert "context of this process is lost" in text
    assert "TILEWRIGHT_LAUNCH_BLOCKING=1" in text


class WatchedNames(list[str]):
    """Names of parameters, which weak references can be made to."""


def test_a_dropped_kernel_is_freed_but_keeps_its_name_in_reports(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its launch may still be the one that went wrong, while other kernels take its memory."""
    shared = cuda.driver()
    monkeypatch.setattr(gpu_launcher, "driver", lambda: shared)
    names = WatchedNames()
    metadata = {**METADATA, "name": "dropped", "names": names}
    dropped = NvidiaLauncher(b"\x7fELF", metadata, [], shared)
    dropped.launch((7, 1, 1), ())
    kept = weakref.ref(names)
    del dropped, names, metadata
    gc.collect()
    assert kept() is None
    later = [
        NvidiaLauncher(b"\x7fELF", {**METADATA, "name": f"later_{number}"}, [], shared)
        for number in range(40)
    ]
    cuda.fails["cuCtxSynchronize"] = ILLEGAL_ADDRESS
    with pytest.raises(KernelFault) as caught:
        gpu_launcher.synchronize()
    assert caught.value.suspects == ("dropped[(7, 1, 1)]",)
    del later


def test_synchronize_names_the_only_launch(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = cuda.driver()
    monkeypatch.setattr(gpu_launcher, "driver", lambda: shared)
    kernel = NvidiaLauncher(b"\x7fELF", dict(METADATA), [], shared)
    kernel.launch((7, 1, 1), ())
    gpu_launcher.synchronize()
    kernel.launch((8, 1, 1), ())
    cuda.fails["cuCtxSynchronize"] = ILLEGAL_ADDRESS
    with pytest.raises(KernelFault, match=r"in the launch softmax\[\(8, 1, 1\)\]"):
        gpu_launcher.synchronize()


def test_blocking_launch_blames_itself(cuda: FakeCuda) -> None:
    cuda.machine.expect(0)
    kernel = NvidiaLauncher(b"\x7fELF", dict(METADATA), [], cuda.driver(), blocking=True)
    kernel.launch((1, 1, 1), ())
    cuda.fails["cuStreamSynchronize"] = ILLEGAL_ADDRESS
    with pytest.raises(KernelFault, match=r"in the launch softmax\[\(2, 1, 1\)\]"):
        kernel.launch((2, 1, 1), ())


def test_blocking_launch_does_not_wait_in_a_captured_stream(cuda: FakeCuda) -> None:
    kernel = make(cuda, [], debug=True)
    cuda.capturing.add(0x57)
    kernel.launch((1, 1, 1), ())
    assert "cuStreamSynchronize" not in cuda.calls
    assert cuda.machine.calls == 1


# --- assertions -----------------------------------------------------------------------------------

TRAPPED = ILLEGAL_ADDRESS  # as any status after which the context is lost


def asserting(cuda: FakeCuda, shared: Driver) -> tuple[NvidiaLauncher, FailureRecord]:
    """A kernel with one assertion, and the record that it was given."""
    cuda.machine.expect(0)
    found = {**METADATA, "asserts": [packed("x is positive", None)], "debug": True}
    kernel = NvidiaLauncher(b"\x7fELF", found, [], shared)
    (place,) = (at for at in cuda.memory if at + 8 not in cuda.memory and at % 16 == 8)
    record = FailureRecord.__new__(FailureRecord)
    record.address = int.from_bytes(cuda.memory[place], "little")
    record._bytes = (ctypes.c_char * 64).from_address(record.address)
    return kernel, record


def fail(record: FailureRecord) -> None:
    """What program (2, 0, 0) writes whose element 5 is wrong."""
    ctypes.memmove(record.address, struct.pack("<8i", 1, 0, 2, 0, 0, 5, -1, -1), 32)


MESSAGE = r"device assertion failed in program \(2, 0, 0\): x is positive, at \(5\)"


def test_torch_compile_waits_for_no_assertion(cuda: FakeCuda) -> None:
    kernel, record = asserting(cuda, cuda.driver())
    assert not record.stops
    assert kernel.launch_on_stream(1, 1, 1, 0x57)
    assert record.stops
    assert not {"cuStreamSynchronize", "cuMemcpyDtoH"} & set(cuda.calls)


@pytest.mark.parametrize("where", ["launch", "synchronize"])
def test_a_trap_is_told_as_the_assertion_that_failed(
    cuda: FakeCuda, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = cuda.driver()
    monkeypatch.setattr(gpu_launcher, "driver", lambda: shared)
    kernel, record = asserting(cuda, shared)
    kernel.launch_on_stream(1, 1, 1, 0x57)
    fail(record)
    cuda.fails["cuCtxSynchronize"] = TRAPPED
    cuda.machine.answer(TRAPPED)
    for _ in range(2):  # every call that meets the lost context
        with pytest.raises(errors.DeviceAssertionFailure, match=MESSAGE):
            if where == "launch":
                kernel.launch_on_stream(1, 1, 1, 0x57)
            else:
                gpu_launcher.synchronize()


def test_a_launch_that_is_waited_for_raises_its_assertion_and_goes_on(cuda: FakeCuda) -> None:
    kernel, record = asserting(cuda, cuda.driver())
    fail(record)
    with pytest.raises(errors.DeviceAssertionFailure, match=MESSAGE):
        kernel.launch((1, 1, 1), ())
    kernel.launch((1, 1, 1), ())
    assert not record.stops and "cuMemcpyDtoH" not in cuda.calls


def test_a_captured_assertion_is_to_trap(cuda: FakeCuda) -> None:
    kernel, record = asserting(cuda, cuda.driver())
    cuda.capturing.add(0x57)
    kernel.launch((1, 1, 1), ())
    assert record.stops and "cuStreamSynchronize" not in cuda.calls


# --- the current device and stream ----------------------------------------------------------------


class FakeTorch(types.SimpleNamespace):
    def __init__(self, initialized: bool) -> None:
        super().__init__(
            cuda=types.SimpleNamespace(is_initialized=lambda: initialized),
            _C=types.SimpleNamespace(
                _cuda_getDevice=lambda: 2, _cuda_getCurrentRawStream=lambda device: 100 + device
            ),
        )


class FakeCupy(types.SimpleNamespace):
    def __init__(self) -> None:
        super().__init__(
            cuda=types.SimpleNamespace(
                runtime=types.SimpleNamespace(getDevice=lambda: 1),
                get_current_stream=lambda: types.SimpleNamespace(ptr=55),
            )
        )


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    cuda = FakeCuda()
    api = cuda.driver()
    monkeypatch.setattr(current_stream, "driver", lambda: api)
    monkeypatch.setattr(current_stream, "_source", current_stream._choose)  # pyright: ignore[reportPrivateUsage]

    def put(**found: object) -> None:
        for name in ("torch", "cupy"):
            if name in found:
                monkeypatch.setitem(sys.modules, name, found[name])
            else:
                monkeypatch.delitem(sys.modules, name, raising=False)

    return put


def test_torch_is_asked_once_it_uses_cuda(modules: Callable[..., None]) -> None:
    modules(torch=FakeTorch(initialized=False), cupy=FakeCupy())
    assert current_stream.device_and_stream() == (1, 55)
    modules(torch=FakeTorch(initialized=True), cupy=FakeCupy())
    assert current_stream.device_and_stream() == (2, 102)


def test_cupy_is_asked_where_there_is_no_torch(modules: Callable[..., None]) -> None:
    modules(cupy=FakeCupy())
    assert current_stream.device_and_stream() == (1, 55)


def test_driver_is_asked_where_there_is_neither(modules: Callable[..., None]) -> None:
    modules()
    assert current_stream.device_and_stream() == (0, 0)


def test_direct_launches_are_offered_where_pytorch_tells_device_and_stream(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda.addresses[b"cuCtxGetCurrent"] = 0xC0
    kernel = make(cuda, ["ptr<f32>"])
    monkeypatch.setattr(gpu_launcher, "torch_queries", lambda: None)
    assert kernel.direct() is None
    monkeypatch.setattr(
        gpu_launcher, "torch_queries", lambda: (lambda: DEVICE, lambda device: 0x58)
    )
    direct = kernel.direct()
    assert direct is not None
    assert direct.device == DEVICE and direct.stream_of(DEVICE) == 0x58
    assert direct.context == int(kernel._driver.primary_context(DEVICE))
    assert direct.context_of == 0xC0
    direct.call(2, 1, 1, 0x58, DEVICE_BASE)
    assert cuda.machine.launched().stream == 0x58
    assert isinstance(kernel.entry(DEVICE).__module__, str)


# --- two threads, two devices ---------------------------------------------------------------------


def in_two_threads(work: Callable[[int], object]) -> list[object]:
    """The results of work(0) and work(1), which start at the same time."""
    start = threading.Barrier(2)

    def run(number: int) -> object:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(run, range(2)))


def test_threads_that_start_the_driver_at_once_get_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A failed assertion, or a fault, is looked for in the state of the driver that is returned."""

    def load_slowly() -> FakeCuda:
        time.sleep(0.05)
        return FakeCuda()

    monkeypatch.setattr(cuda_driver, "load_api", load_slowly)
    caches = cuda_driver.driver, cuda_driver._started_driver
    for cache in caches:
        cache.cache_clear()
    try:
        first, second = in_two_threads(lambda _: cuda_driver.driver())
    finally:
        for cache in caches:
            cache.cache_clear()
    assert first is second


def test_threads_that_load_kernels_at_once_share_the_state_of_a_device(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = gpu_launcher._DeviceState.__init__

    def make_slowly(self: gpu_launcher._DeviceState, ordinal: int, api: Driver) -> None:
        time.sleep(0.05)
        made(self, ordinal, api)

    monkeypatch.setattr(gpu_launcher._DeviceState, "__init__", make_slowly)
    api = cuda.driver()
    first, second = in_two_threads(lambda _: gpu_launcher._device_state(DEVICE, api))
    assert first is second


def test_each_thread_launches_on_its_device(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = threading.local()
    monkeypatch.setattr(gpu_launcher, "device_and_stream", lambda: (current.device, current.device))
    current.device = DEVICE
    kernel = make(cuda, ["ptr<f32>"], names=["x"])
    memory = {DEVICE: DEVICE_BASE, 1: DEVICE_BASE << 1}

    def work(number: int) -> None:
        current.device = (DEVICE, 1)[number]
        for _ in range(100):
            kernel.launch((1, 1, 1), (memory[current.device],))
        other = (1, DEVICE)[number]
        wrong = f"'x' is on cuda:{other}, but the kernel runs on cuda:{current.device}"
        with pytest.raises(errors.DeviceMismatch, match=wrong):
            kernel.launch((1, 1, 1), (memory[other],))

    in_two_threads(work)
    launched = {(one.stream, one.function, *one.slots) for one in cuda.machine.every}
    assert launched == {(DEVICE, 0xE001, memory[DEVICE]), (1, 0xE002, memory[1])}
    assert len(cuda.machine.every) == 200
