"""Calls of the driver, against a stand-in: contexts, loading, compiling, errors."""

import subprocess
import sys
import threading

import pytest

from tests.forking import assert_child_succeeds, needs_fork
from tests.unit.backends.nvidia.fake_cuda import (
    DEVICE_BASE,
    HOST_PINNED,
    ILLEGAL_ADDRESS,
    INVALID_PTX,
    MANAGED,
    NO_DEVICE,
    FakeCuda,
)
from tests.unit.backends.nvidia.fake_launch import DEVICE
from tilewright.backends.nvidia.driver import cuda_driver
from tilewright.backends.nvidia.driver.cuda_driver import Driver, Pointer
from tilewright.backends.nvidia.driver.cuda_errors import (
    NOT_INITIALIZED,
    CudaAfterFork,
    CudaCallFailed,
)
from tilewright.backends.nvidia.driver.event_timer import CudaEventTimer, DeviceMemory
from tilewright.support import errors


@pytest.fixture
def cuda() -> FakeCuda:
    return FakeCuda()


@pytest.fixture
def api(cuda: FakeCuda) -> Driver:
    return cuda.driver()


def test_importing_the_backend_imports_no_bindings() -> None:
    code = (
        "import sys; from tilewright.backends.nvidia.driver import event_timer, gpu_launcher; "
        "print([m for m in sys.modules if m.split('.')[0] in ('cuda', 'torch', 'cupy')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- start ----------------------------------------------------------------------------------------


def test_no_gpu() -> None:
    with pytest.raises(errors.BackendUnavailable, match="there is no GPU"):
        FakeCuda(()).driver()


def test_driver_that_finds_no_device() -> None:
    cuda = FakeCuda()
    cuda.fails["cuInit"] = NO_DEVICE
    with pytest.raises(errors.BackendUnavailable, match="CUDA_ERROR_NO_DEVICE") as caught:
        cuda.driver()
    assert "CUDA_VISIBLE_DEVICES" in str(caught.value)


def test_a_child_of_a_process_that_uses_cuda_knows_that_there_is_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cuda = FakeCuda()
    cuda.fails["cuInit"] = NOT_INITIALIZED
    with pytest.raises(CudaAfterFork, match="spawn"):
        cuda.driver()
    monkeypatch.setattr(cuda_driver, "driver", cuda.driver)
    assert cuda_driver.unavailable_reason.__wrapped__() is None


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(Flags: int) -> None:
        raise RuntimeError("libcuda.so not found")

    cuda = FakeCuda()
    monkeypatch.setattr(cuda, "cuInit", fails)
    with pytest.raises(errors.BackendUnavailable, match=r"libcuda\.so not found"):
        cuda.driver()


def test_device(api: Driver) -> None:
    device = api.device(1)
    assert (device.ordinal, device.name, device.capability) == (1, "Fake GPU", 90)
    assert (device.multiprocessors, device.warp_size, device.shared_optin) == (132, 32, 232448)
    assert device.bandwidth == pytest.approx(3.352e12, rel=1e-3)
    assert api.device(1) is device


# --- errors ---------------------------------------------------------------------------------------


def test_failed_call_says_what_failed_and_why(cuda: FakeCuda, api: Driver) -> None:
    cuda.fails["cuMemAlloc"] = ILLEGAL_ADDRESS
    with pytest.raises(CudaCallFailed) as caught:
        api.allocate(8)
    text = "cuMemAlloc failed: CUDA_ERROR_ILLEGAL_ADDRESS (700): text of 700"
    assert text in str(caught.value)
    assert caught.value.status == ILLEGAL_ADDRESS
    assert "a kernel that ran before this call went wrong" in str(caught.value)


def test_unknown_status(api: Driver) -> None:
    assert api.describe(4321) == ("CUresult 4321", "")


def test_forked_process_is_told_so(api: Driver) -> None:
    assert "spawn" in str(api.failure("cuInit", 3))


@needs_fork
def test_a_child_cannot_use_the_driver_that_its_parent_has_started(
    cuda: FakeCuda, api: Driver
) -> None:
    memory = DeviceMemory(64, 0, api)

    def use() -> None:
        for call in (lambda: api.device(1), api.current_device, lambda: memory.read()):
            with pytest.raises(CudaAfterFork, match="spawn"):
                call()
        assert api.is_lost
        calls = list(cuda.calls)
        memory.free()  # which is the parent's
        assert cuda.calls == calls
        assert cuda.driver().current_device() == 0  # one that is started here

    assert_child_succeeds(use)
    assert api.current_device() == 0
    assert memory.read()


# --- contexts -------------------------------------------------------------------------------------


def test_context_is_pushed_and_popped_even_after_an_error(cuda: FakeCuda, api: Driver) -> None:
    with pytest.raises(ZeroDivisionError), api.context(1):
        assert api.current_device() == 1
        raise ZeroDivisionError
    assert cuda.stack == []
    assert not api.has_context()
    assert api.current_device() == 0


def test_primary_context_is_retained_once(cuda: FakeCuda, api: Driver) -> None:
    for _ in range(3):
        with api.context(0), api.context(1):
            assert api.current_device() == 1
    assert cuda.calls.count("cuDevicePrimaryCtxRetain") == 2


def test_make_current(api: Driver) -> None:
    api.make_current(1)
    assert api.current_device() == 1


# --- code -----------------------------------------------------------------------------------------


def test_compile_ptx(cuda: FakeCuda, api: Driver) -> None:
    made = api.compile_ptx("text", "kernel", 1, maxnreg=64)
    assert made.cubin == b"\x7fELF machine code"
    report = made.report
    assert (report.registers, report.barriers, report.stack, report.shared) == (55, 1, 24, 16)
    assert cuda.links[0][0] == 64
    assert cuda.calls[-1] in ("cuCtxPopCurrent", "cuThreadExchangeStreamCaptureMode")
    assert "cuLinkDestroy" in cuda.calls
    assert cuda.stack == [] and cuda.capture_mode == 0


@pytest.mark.parametrize(("ptx", "wanted"), [("\t.loc\t1 7 2\n\tret;", 1), ("\tret;", None)])
def test_line_tables_are_made_of_ptx_that_names_lines(
    cuda: FakeCuda, api: Driver, ptx: str, wanted: int | None
) -> None:
    api.compile_ptx(ptx, "kernel", 0)
    generate_line_info = 13
    assert cuda.links[0].get(generate_line_info) == wanted


@pytest.mark.parametrize(("statements", "wanted"), [(40_000, 1), (20_000, None)])
def test_long_code_is_optimized_less(
    cuda: FakeCuda, api: Driver, statements: int, wanted: int | None
) -> None:
    api.compile_ptx("\tret;\n" * statements, "kernel", 0)
    optimization_level = 7
    assert cuda.links[0].get(optimization_level) == wanted


def test_refused_ptx_is_explained(cuda: FakeCuda, api: Driver) -> None:
    cuda.fails["cuLinkAddData"] = INVALID_PTX
    cuda.error_log = b"ptxas application ptx input, line 2; error   : Unknown thing"
    with pytest.raises(errors.PTXASError) as caught:
        api.compile_ptx("first\nsecond\n", "kernel", 0)
    assert "kernel: Unknown thing" in str(caught.value)
    assert "->     2 | second" in str(caught.value)
    assert "cuLinkDestroy" in cuda.calls


def test_refusal_without_a_log_names_the_status(cuda: FakeCuda, api: Driver) -> None:
    cuda.fails["cuLinkComplete"] = INVALID_PTX
    with pytest.raises(errors.PTXASError, match="CUDA_ERROR_INVALID_PTX"):
        api.compile_ptx("text", "kernel", 0)


def test_load_ends_text_with_a_zero_and_keeps_cubins(cuda: FakeCuda, api: Driver) -> None:
    assert api.load(b".version 8.7", "kernel", 1) != api.load(b"\x7fELF...", "kernel", 0)
    assert cuda.images == [(1, b".version 8.7\0"), (0, b"\x7fELF...")]


def test_an_image_is_loaded_once_on_each_device_for_each_kernel(
    cuda: FakeCuda, api: Driver
) -> None:
    """Nothing is unloaded, so what is loaded again after its variant was dropped must be there."""
    first = api.load(b"\x7fELF one", "kernel", 0)
    threads = [
        threading.Thread(target=api.load, args=(b"\x7fELF two", "kernel", 0)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert api.load(b"\x7fELF one", "kernel", 0) == first
    api.load(b"\x7fELF one", "kernel", 1)
    api.load(b"\x7fELF one", "other", 0)
    one, two = b"\x7fELF one", b"\x7fELF two"
    assert cuda.images == [(0, one), (0, two), (1, one), (0, one)]


def test_an_image_that_was_refused_is_tried_again(cuda: FakeCuda, api: Driver) -> None:
    cuda.fails["cuModuleLoadData"] = INVALID_PTX
    with pytest.raises(CudaCallFailed):
        api.load(b"\x7fELF", "kernel", 0)
    cuda.fails.clear()
    assert api.load(b"\x7fELF", "kernel", 0)


def test_shared_memory_that_was_asked_for_is_never_taken_back(cuda: FakeCuda, api: Driver) -> None:
    for size, allowed in ((65536, 65536), (49168, 65536), (98304, 98304), (49168, 98304)):
        api.allow_dynamic_shared(0xE001, size)
        assert cuda.function.attributes == {8: allowed}
    assert cuda.calls.count("cuFuncSetAttribute") == 2


def test_modules_load_while_a_graph_is_captured(cuda: FakeCuda, api: Driver) -> None:
    api.load(b"\x7fELF", "kernel", 0)
    assert cuda.mode_of_loads == [2]
    assert cuda.capture_mode == 0


def test_function_the_driver_lacks(api: Driver) -> None:
    with pytest.raises(errors.BackendUnavailable, match="cuNothing"):
        api.address_of("cuNothing")


# --- memory and time ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (0x7FFF_0000, None),
        (MANAGED, Pointer(0, on_device=False, managed=True)),
        (HOST_PINNED, Pointer(0, on_device=False, managed=False)),
        (DEVICE_BASE, Pointer(DEVICE, on_device=True, managed=False)),
        (DEVICE_BASE << 1, Pointer(1, on_device=True, managed=False)),
    ],
)
def test_pointer(api: Driver, address: int, expected: Pointer | None) -> None:
    assert api.pointer(address) == expected


def test_device_memory_round_trip(cuda: FakeCuda, api: Driver) -> None:
    memory = DeviceMemory(8, 0, api)
    memory.fill(0xAB)
    memory.write(b"1234")
    assert memory.read() == b"1234\xab\xab\xab\xab"
    assert memory.data_ptr() == memory.address
    del memory
    assert cuda.memory == {}


def test_timer_measures_between_events(
    cuda: FakeCuda, api: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tilewright.backends.nvidia.driver.event_timer.device_and_stream", lambda: (0, 7)
    )
    timer = CudaEventTimer(api=api)
    start, end = timer.record(), timer.record()
    timer.synchronize()
    assert timer.elapsed_ms(start, end) == 1.0
    timer.flush_cache()
    assert [len(block) for block in cuda.memory.values()] == [4 * api.device(0).l2_bytes]
    timer.close()
    assert cuda.memory == {}
    del start, end
    assert cuda.calls.count("cuEventDestroy") == 2
