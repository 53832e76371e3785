"""Arrays in the memory of a GPU: stand-ins with made-up addresses, their Specs and streams."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.runtime.kernels import add, new_value
from tilewright.backends import DeviceMemory, Streamed, backend_named
from tilewright.runtime import JITFunction, jit
from tilewright.runtime.arguments import device_arrays, dlpack
from tilewright.runtime.arguments.kernel_parameters import kernel_parameters
from tilewright.runtime.arguments.key_rules import HANDLERS, Spec
from tilewright.runtime.launch import bound_call
from tilewright.runtime.tuning.array_restore import ArrayState
from tilewright.support import errors

AT, PINNED = 0xFF00_0000_1000, 0xFE00_0000_0000
"""Where no array of this process is: those have 47 bits."""
CURRENT = (1, 0x57)
"""Device and stream."""


def seen(array: object) -> tuple[Spec, int]:
    key, address = HANDLERS.key_and_value(array)
    assert isinstance(key, Spec)
    return key, address


@pytest.fixture(autouse=True)
def driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Says that addresses from AT on are of the second GPU, and those from PINNED on pinned."""
    memory = DeviceMemory(
        lambda address: "cuda:1" if address >= AT else None,
        lambda address: address >= PINNED,
        lambda: CURRENT,
        lambda device: CURRENT[1],
    )
    monkeypatch.setattr(device_arrays, "gpu", lambda: memory)


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_arrays, "gpu", lambda: None)


# --- __cuda_array_interface__ ---------------------------------------------------------------------


class Interface:
    """As the arrays of Numba."""

    dtype: Any = None

    def __init__(self, typestr: str = "<f4", address: int = AT, **more: Any) -> None:
        read_only = more.pop("read_only", False)
        self._interface = {"data": (address, read_only), "typestr": typestr, "version": 3, **more}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._interface


@pytest.mark.parametrize(
    ("typestr", "name"),
    [
        ("|b1", "*u1"), ("|i1", "*i8"), ("|u1", "*u8"), ("<i2", "*i16"), ("<u4", "*u32"),
        ("<i8", "*i64"), ("<f2", "*fp16"), ("<f4", "*fp32"), ("<f8", "*fp64"),
    ],
)  # fmt: skip
def test_types_of_an_interface(typestr: str, name: str) -> None:
    key, address = seen(Interface(typestr))
    assert (repr(key), key.device, address) == (name + "/16", "cuda:1", AT)
    assert not key.read_only


def test_alignment_and_writability_of_an_interface() -> None:
    assert repr(seen(Interface(address=AT + 4))[0]) == "*fp32"
    assert seen(Interface(read_only=True))[0].read_only
    assert seen(Interface())[0] is seen(Interface("<f4", AT + 64))[0]
    assert seen(Interface(address=0))[1] == 0
    assert seen(Interface(address=None))[0].device == "cuda:1"  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (ml_dtypes.bfloat16, "*bf16/16"),
        (ml_dtypes.float8_e4m3fn, "*fp8e4nv/16"),
        (ml_dtypes.float8_e5m2, "*fp8e5/16"),
    ],
)
def test_a_dtype_for_which_interfaces_have_no_word(dtype: Any, name: str) -> None:
    array = Interface(np.dtype(dtype).str)
    array.dtype = np.dtype(dtype)
    assert repr(seen(array)[0]) == name


@pytest.mark.parametrize("typestr", ["<c8", ">f4", "<V2", "|O", "<M8[s]"])
def test_types_of_an_interface_that_kernels_have_not(typestr: str) -> None:
    with pytest.raises(errors.UnsupportedArgument, match="convert it to"):
        HANDLERS.key_and_value(Interface(typestr))


def test_an_interface_that_is_there_only_on_the_gpu() -> None:
    class Moving:
        def __init__(self, array: np.ndarray, on_gpu: bool) -> None:
            self._array, self._on_gpu = array, on_gpu

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            if not self._on_gpu:
                raise AttributeError("on the host")
            return Interface().__cuda_array_interface__

        def __dlpack__(self, **words: Any) -> Any:
            return self._array.__dlpack__(**words)

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    array = np.zeros(4, "f")
    assert seen(Moving(array, True))[0].device == "cuda:1"
    key, address = seen(Moving(array, False))
    assert (key.device, address) == ("cpu", array.ctypes.data)


def test_an_interface_of_an_instance() -> None:
    array = types.SimpleNamespace(__cuda_array_interface__=Interface().__cuda_array_interface__)
    assert seen(array)[1] == AT


def test_an_interface_whose_device_nobody_tells(no_driver: None) -> None:
    assert seen(Interface(stream=5))[0].device == "cuda:0"
    assert type(seen(Interface(stream=5))[1]) is int


@pytest.mark.parametrize("stream", [None, 0x57])
def test_streams_that_need_no_order(stream: int | None) -> None:
    assert type(seen(Interface(stream=stream))[1]) is int


@pytest.mark.parametrize(("stream", "handle"), [(1, 0), (2, 2), (0x99, 0x99)])
def test_another_stream_comes_with_the_address(stream: int, handle: int) -> None:
    address = seen(Interface(stream=stream))[1]
    assert isinstance(address, Streamed)
    assert (address, address.device, address.stream) == (AT, 1, handle)


# --- CuPy -----------------------------------------------------------------------------------------


class CupyArray:
    """As `cupy.ndarray`, on the second GPU; the interface is not asked."""

    dtype = np.dtype("f2")
    device = types.SimpleNamespace(id=1)
    data = types.SimpleNamespace(ptr=AT + 32)


def fake_cupy(stream: int) -> types.SimpleNamespace:
    current = types.SimpleNamespace(ptr=stream)
    cuda = types.SimpleNamespace(get_current_stream=lambda: current)
    return types.SimpleNamespace(ndarray=CupyArray, cuda=cuda)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def put(stream: int, torch: bool) -> None:
        monkeypatch.setitem(sys.modules, "cupy", fake_cupy(stream))  # pyright: ignore[reportArgumentType]
        if torch:
            monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
        else:
            monkeypatch.delitem(sys.modules, "torch", raising=False)

    monkeypatch.setattr(CupyArray, "__module__", "cupy")
    HANDLERS.pop(CupyArray, None)
    return put


def test_arrays_of_cupy(cupy: Callable[..., None]) -> None:
    cupy(0x99, torch=False)
    key, address = seen(CupyArray())
    assert (repr(key), key.device, address) == ("*fp16/16", "cuda:1", AT + 32)
    assert type(address) is int, "the current stream is CuPy's"


def test_arrays_of_cupy_beside_torch(cupy: Callable[..., None]) -> None:
    cupy(0x57, torch=True)
    assert type(seen(CupyArray())[1]) is int
    cupy(0x99, torch=True)
    address = seen(CupyArray())[1]
    assert isinstance(address, Streamed) and address.stream == 0x99


class Writable:
    """As `cupy.ndarray`, for what resets and restores arrays."""

    def __init__(self, values: list[int]) -> None:
        self.values = values

    def copy(self) -> Writable:
        return Writable(list(self.values))

    def __setitem__(self, place: object, value: Any) -> None:
        assert place is ...
        self.values = list(value.values) if isinstance(value, Writable) else [value] * 2


def test_arrays_of_cupy_can_be_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(ndarray=Writable))  # pyright: ignore[reportArgumentType]
    state = ArrayState(["x"], ["y"])
    x, y = Writable([1, 2]), Writable([3, 4])
    saved = state.save({"x": x, "y": y})
    state.reset({"x": x, "y": y})
    y.values = [5, 6]
    state.restore({"y": y}, saved)
    assert (x.values, y.values) == ([0, 0], [3, 4])


# --- data_ptr -------------------------------------------------------------------------------------


class Pointer:
    """What Triton asks of an argument; `more` says where it is."""

    def __init__(self, address: int = AT, **more: Any) -> None:
        self._address = address
        self.__dict__.update(more)

    dtype = "float32"

    def data_ptr(self) -> int:
        return self._address


class Named:
    """A device that is an object, as torch's and CuPy's are."""

    def __init__(self, name: str, **more: Any) -> None:
        self._name = name
        self.__dict__.update(more)

    def __str__(self) -> str:
        return self._name


@pytest.mark.parametrize(
    ("more", "device"),
    [
        ({"device": "cuda:3"}, "cuda:3"),
        ({"device": "cpu"}, "cpu"),
        ({"device": Named("cuda:2")}, "cuda:2"),
        ({"device": Named("<CUDA Device 4>", id=4)}, "cuda:4"),
        ({"device": 2}, "cuda:2"),
        ({"device": -1}, "cpu"),
        ({"get_device": lambda: 5}, "cuda:5"),
        ({"get_device": lambda: -1}, "cpu"),
        ({"device": "cuda", "get_device": lambda: 6}, "cuda:6"),
        ({"device": "cuda"}, "cuda:1"),
        ({"device": Named("CpuDevice(id=0)", id=0)}, "cuda:1"),
        ({}, "cuda:1"),
    ],
)
def test_where_an_object_with_an_address_is(more: dict[str, Any], device: str) -> None:
    key, address = seen(Pointer(**more))
    assert (repr(key), key.device, address) == ("*fp32/16", device, AT)


def test_the_driver_knows_memory_that_is_not_its_own() -> None:
    assert seen(Pointer(4096))[0].device == "cpu"
    assert seen(Pointer(PINNED + 8))[0].device == "cpu"


def test_without_a_driver_an_address_is_the_hosts(no_driver: None) -> None:
    assert seen(Pointer())[0].device == "cpu"


def test_types_that_name_another_device() -> None:
    with pytest.raises(errors.DeviceMismatch, match="is on xpu:0"):
        new_value()[1](Pointer(device="xpu:0"), 2)


# --- DLPack ---------------------------------------------------------------------------------------


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    _fields_ = (("tensor", DLTensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


_new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))


class Exporter:
    """Speaks DLPack as libraries of before (flags None) and after version 1 do."""

    def __init__(self, kind: int, flags: int | None, dtype: tuple[int, int, int] = (2, 32, 1)):
        self.asked: list[dict[str, Any]] = []
        self._device = (kind, 3)
        tensor = DLTensor(AT, (ctypes.c_int32 * 2)(kind, 3), 1, *dtype, None, None, 16)
        self._old = flags is None
        if flags is None:
            self._struct, self._name = Managed(tensor), b"dltensor"
        else:
            version = (ctypes.c_uint32 * 2)(1, 1)
            self._struct = Versioned(version, None, None, flags, tensor)
            self._name = b"dltensor_versioned"

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, **words: Any) -> object:
        if self._old and "max_version" in words:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.asked.append(words)
        return _new_capsule(ctypes.addressof(self._struct), self._name, None)


def test_the_structures_of_the_tests_are_those_of_the_reader() -> None:
    assert ctypes.sizeof(DLTensor) == struct.calcsize("<QiiiBBH8x8xQ")
    assert Versioned.tensor.offset == 32 and Versioned.flags.offset == 24
    array = np.zeros(4, "i2")
    exported = dlpack.export(array)
    assert (exported.address, exported.dtype) == (array.ctypes.data, "int16")
    assert not exported.read_only


@pytest.mark.parametrize("flags", [None, 0])
@pytest.mark.parametrize("kind", [2, 13])
def test_dlpack_of_a_gpu(kind: int, flags: int | None) -> None:
    array = Exporter(kind, flags)
    key, address = seen(array)
    assert (repr(key), key.device, address) == ("*fp32/16", "cuda:3", AT + 16)
    assert array.asked[0]["stream"] == CURRENT[1]
    assert type(address) is int


def test_dlpack_of_a_gpu_without_a_driver(no_driver: None) -> None:
    array = Exporter(2, 0)
    assert seen(array)[0].device == "cuda:3"
    assert array.asked == [{"stream": 1, "max_version": (1, 0)}], "the default stream"


def test_dlpack_of_pinned_memory_is_of_the_host() -> None:
    array = Exporter(3, 0)
    key, address = seen(array)
    assert (key.device, address) == ("cpu", AT + 16)
    assert array.asked == [{"max_version": (1, 0)}]


def test_flags_of_dlpack() -> None:
    assert seen(Exporter(2, 1))[0].read_only
    assert not seen(Exporter(2, 0))[0].read_only
    address: Any = seen(Exporter(2, 2))[1]
    assert type(address.owner).__name__ == "PyCapsule", "a copy lives as long as its capsule"


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ((0, 8, 1), "*i8"), ((1, 16, 1), "*u16"), ((2, 64, 1), "*fp64"), ((4, 16, 1), "*bf16"),
        ((6, 8, 1), "*u1"), ((10, 8, 1), "*fp8e4nv"), ((12, 8, 1), "*fp8e5"),
    ],
)  # fmt: skip
def test_types_of_dlpack(dtype: tuple[int, int, int], name: str) -> None:
    assert repr(seen(Exporter(2, 0, dtype))[0]) == name + "/16"


@pytest.mark.parametrize("dtype", [(5, 64, 1), (2, 32, 4), (0, 4, 1), (99, 8, 1)])
def test_types_of_dlpack_that_kernels_have_not(dtype: tuple[int, int, int]) -> None:
    with pytest.raises(errors.UnsupportedArgument, match="DLPack array of type code"):
        HANDLERS.key_and_value(Exporter(2, 0, dtype))


@pytest.mark.parametrize(("kind", "name"), [(8, "metal:3"), (10, "hip:3"), (99, "device 99:3")])
def test_dlpack_of_devices_without_a_backend(kind: int, name: str) -> None:
    with pytest.raises(errors.DeviceMismatch, match=name):
        HANDLERS.key_and_value(Exporter(kind, 0))


# --- arrays that never change ---------------------------------------------------------------------


def like_jax() -> Any:
    """An array as those of JAX: DLPack of before 1.0, which cannot say that it is read-only."""

    class ArrayImpl:
        def __init__(self, values: np.ndarray) -> None:
            self.values = values

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.values.__dlpack_device__()

        def __dlpack__(self, stream: object = None) -> object:
            return self.values.__dlpack__()

    ArrayImpl.__module__ = "jaxlib._jax"
    return ArrayImpl(np.arange(4, dtype="f"))


def of_jax() -> Any:
    return pytest.importorskip("jax.numpy").arange(4, dtype="f")


@jit
def twice(x, out):
    i = tl.arange(0, 4)
    tl.store(out + i, tl.load(x + i) * 2)


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("made", [like_jax, of_jax])
def test_an_immutable_array_can_only_be_read(made: Callable[[], Any], interpret: bool) -> None:
    kernel = JITFunction(twice.fn, interpret=interpret)
    array, out = made(), np.zeros(4, "f")
    for _ in range(4):  # by machine code in the end
        kernel[1](array, out)
        assert out.tolist() == [0, 2, 4, 6]
        with pytest.raises(errors.ReadOnlyArray, match="'out' is a read-only array"):
            kernel[1](out, array)
    assert np.asarray(getattr(array, "values", array)).tolist() == [0, 1, 2, 3]


def test_an_array_that_its_library_does_not_hand_over() -> None:
    class Traced:
        def __dlpack__(self) -> object: ...

        def __dlpack_device__(self) -> object:
            raise BufferError("it has no memory yet\nand never will")

    with pytest.raises(errors.UnsupportedArgument) as caught:
        new_value()[1](Traced(), 1)
    assert str(caught.value) == (
        "argument 'out' is a Traced, which a kernel cannot take [TW201]\n"
        "  hint: its library does not export it: it has no memory yet"
    )


def test_a_tensor_without_memory() -> None:
    class Sparse:
        is_cpu, dtype, device, layout = True, "torch.float32", "cpu", "torch.sparse_coo"

        def data_ptr(self) -> int:
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    with pytest.raises(errors.UnsupportedArgument, match="tensor with layout torch.sparse_coo"):
        new_value()[1](Sparse(), 1)


@pytest.mark.torch
@pytest.mark.parametrize("interpret", [False, True])
def test_tensors_of_torch_without_memory(interpret: bool) -> None:
    torch = pytest.importorskip("torch")
    kernel = JITFunction(new_value().fn, interpret=interpret)
    kinds = ["to_sparse", "to_mkldnn"]
    for tensor in [getattr(torch.eye(4), kind)() for kind in kinds]:
        for _ in range(3):
            with pytest.raises(errors.UnsupportedArgument, match="tensor with layout"):
                kernel[1](tensor, 1)


@pytest.mark.torch
@pytest.mark.parametrize("interpret", [False, True])
def test_tensors_of_torch_that_negate_what_is_stored(interpret: bool) -> None:
    torch = pytest.importorskip("torch")
    kernel = JITFunction(new_value().fn, interpret=interpret)
    stored = torch.zeros(4)
    imaginary = torch.ones(4, dtype=torch.complex64).conj().imag
    for _ in range(3):
        kernel[1](stored, 1)
        for tensor in (torch._neg_view(stored), imaginary):
            with pytest.raises(errors.UnsupportedArgument, match=r"neg bit(.|\n)*resolve_neg\(\)"):
                kernel[1](tensor, 1)
    kernel[1](imaginary.resolve_neg(), 1)
    conjugated = torch.ones(4, dtype=torch.complex64).conj()
    with pytest.raises(errors.UnsupportedArgument):
        kernel[1](conjugated, 1)


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.ndarray, int, Interface, type])
def test_types_are_no_arrays(kind: type, interpret: bool) -> None:
    kernel = JITFunction(new_value().fn, interpret=interpret)
    for args in ((kind, 1), (np.zeros(1), kind)):
        with pytest.raises(
            errors.UnsupportedArgument, match="annotate the parameter with tl.const"
        ):
            kernel[1](*args)


@pytest.mark.parametrize("interpret", [False, True])
def test_numbers_of_numpy_that_python_has_not(interpret: bool) -> None:
    if type(np.longdouble(1).item()) is float:
        pytest.skip("here it is a double")
    kernel, out = JITFunction(new_value().fn, interpret=interpret), np.zeros(1)
    for number in (np.longdouble(3), np.clongdouble(3)):
        with pytest.raises(errors.UnsupportedArgument, match="longdouble, which a kernel cannot"):
            kernel[1](out, number)
    with pytest.raises(errors.UnsupportedArgument, match="array, which a kernel cannot take"):
        kernel[1](np.zeros(1, np.longdouble), 1)


# --- launches -------------------------------------------------------------------------------------


def call(*args: object) -> bound_call.BoundCall:
    return bound_call.Binder("add", kernel_parameters(add.fn), {}).bind((*args, 16, 16), {})


def test_arrays_of_a_launch_are_on_one_gpu() -> None:
    there = Pointer(device="cuda:1")
    assert call(there, there, Interface()).device == "cuda:1"
    with pytest.raises(errors.DeviceMismatch, match="'y' is on cuda:2, but .* runs on cuda:1"):
        _ = call(there, Pointer(device="cuda:2"), there).device


def test_host_memory_where_the_gpu_is_not_available(no_driver: None) -> None:
    if backend_named("cuda").available():
        pytest.skip("it is")
    there = Pointer(device="cuda:1")
    with pytest.raises(errors.DeviceMismatch, match="'y' is on the CPU"):
        _ = call(there, np.zeros(4), there).device


class FakeBackend(types.SimpleNamespace):
    def __init__(self) -> None:
        super().__init__(memory=device_arrays.gpu(), available=lambda: True)


def test_host_memory_among_arrays_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bound_call, "backend_of", lambda device: FakeBackend())
    there, pinned = Interface(), Pointer(PINNED, device="cpu")
    assert call(there, pinned, there).device == "cuda:1"
    assert call(pinned, pinned, there).device == "cuda:1"
    assert call(pinned, pinned, pinned).device == "cpu"
    for args in [(there, np.zeros(4), there), (there, Pointer(4096, device="cpu"), there)]:
        with pytest.raises(errors.DeviceMismatch, match="'y' is on the CPU.*runs on cuda:1"):
            _ = call(*args).device
    with pytest.raises(errors.DeviceMismatch, match="'x' is on the CPU.*runs on cuda:1"):
        _ = call(np.zeros(4), there, there).device


def test_numpy_is_not_needed() -> None:
    code = """
import sys
from tilewright.runtime.arguments.key_rules import HANDLERS
import tilewright.runtime
class Interface:
    __cuda_array_interface__ = {"data": (4096, False), "typestr": "<f4", "version": 2}
class Host:
    __array_interface__ = {"data": (4096, False), "typestr": "<f4", "version": 3}
class Pointer:
    dtype = "torch.bfloat16"
    device = "cuda:0"
    def data_ptr(self): return 4100
for kind in (Interface, Host, Pointer):
    print(*HANDLERS.key_and_value(kind()))
print("numpy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == "*fp32/16 4096 *fp32/16 4096 *bf16 4100 False".split()
