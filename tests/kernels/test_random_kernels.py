"""Kernels that nobody wrote give the same bits on every device as in the interpreter."""

import importlib.util
import tempfile
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.kernels.data import Array, anything, assert_same, is_float
from tests.kernels.devices import DEVICES
from tests.kernels.generated import PROGRAMS, SPARE, Source, sources


def kernel_of(text: str) -> Any:
    """The kernel that a text defines; its file stays for as long as the kernel may be lowered."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(text)
    spec = importlib.util.spec_from_file_location(f"generated_{Path(file.name).stem}", file.name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def dtype_of(name: str) -> np.dtype[Any]:
    if name == "int1":
        return np.dtype(bool)
    return np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)


def values(source: Source, seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    found = [anything(rng, source.m * source.n + SPARE, dtype_of(name)) for name in source.inputs]
    return [x.reshape(-1) for x in found]


def results(name: str, kernel: Any, source: Source, inputs: list[Array], n: int) -> list[Array]:
    device = DEVICES[name]()
    outputs = [device.empty(PROGRAMS * source.m * source.n, dtype_of(d)) for d in source.outputs]
    for out in outputs:
        out[...] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        device.run(
            kernel, (PROGRAMS,), *map(device.array, inputs), *outputs, n, M=source.m, N=source.n,
            enable_fp_fusion=False,
        )  # fmt: skip
    return outputs


SLOW_TO_MAKE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.differing_executors)


@pytest.mark.parametrize("name", ["cpu", pytest.param("nvidia", marks=pytest.mark.gpu)])
@given(sources(), st.integers(0, 2**32), st.integers(0, 6))
@settings(max_examples=80, suppress_health_check=SLOW_TO_MAKE, print_blob=False)
def test_devices_agree(name: str, source: Source, seed: int, n: int):
    text = source.text()
    note(text)
    kernel = kernel_of(text)
    try:
        inputs = values(source, seed)
        expected = results("interpreter", kernel, source, inputs, n)
        found = results(name, kernel, source, inputs, n)
    finally:
        Path(kernel.fn.__code__.co_filename).unlink()
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other, same_zeros=not is_float(one.dtype))
