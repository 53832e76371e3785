"""Arguments of a compiled kernel that is launched directly, as they are passed."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from tilewright.backends import DeviceMemory, Streamed
from tilewright.compiler.passed_values import passed_value
from tilewright.support import errors

MEMORY = DeviceMemory(lambda _: "cuda:2", lambda _: True, lambda: (2, 0x57), lambda _: 0x57)


def on_gpu(**more: Any) -> types.SimpleNamespace:
    return types.SimpleNamespace(__cuda_array_interface__={"data": (4096, 0), **more})


def test_numbers_and_arrays() -> None:
    array = np.zeros(4)
    assert passed_value(3) == 3 and passed_value(2.5) == 2.5
    assert passed_value(array) == array.ctypes.data
    assert passed_value(types.SimpleNamespace(data_ptr=lambda: 64)) == 64
    with pytest.raises(errors.UnsupportedArgument):
        passed_value([1.0])


def test_arrays_of_a_gpu() -> None:
    for array in (on_gpu(), on_gpu(stream=None)):
        address = passed_value(array, MEMORY)
        assert address == 4096 and type(address) is int
    assert type(passed_value(on_gpu(stream=5))) is int
    assert passed_value(on_gpu(data=(None, True))) == 0


@pytest.mark.parametrize(("stream", "handle"), [(1, 0), (2, 2), (0x99, 0x99)])
def test_arrays_that_name_a_stream(stream: int, handle: int) -> None:
    address = passed_value(on_gpu(stream=stream), MEMORY)
    assert isinstance(address, Streamed)
    assert (address, address.device, address.stream) == (4096, 2, handle)
