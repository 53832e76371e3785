"""Peak rates of a device, under Triton's names: programs prune configurations by them.

All are computed from the properties of `driver.active`, and are 0 if these are, as on CPUs.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable

from tilewright.runtime import driver
from tilewright.support import errors

_SUBCORES = 4
"""Subcores of a multiprocessor."""
_PRODUCTS = {
    **dict.fromkeys(("float32", "int32"), 256),
    **dict.fromkeys(("float16", "bfloat16", "int16"), 512),
    **dict.fromkeys(("int8", "float8e4nv", "float8e4b15", "float8e5"), 1024),
}
"""Operations of the tensor cores of one subcore of Ampere in a cycle; as in `triton.testing`, so
that pruning keeps the same configurations."""
_VECTORS = {"float32": 32, "float16": 64, "bfloat16": 64}
"""Operations of the other units of a subcore in a cycle."""


def nvsmi(attrs: Iterable[str]) -> list[int]:
    """The output of `nvidia-smi --query-gpu` for device 0. Errors: FileNotFoundError if the program
    is missing."""
    query = ["nvidia-smi", "-i", "0", "--query-gpu=" + ",".join(attrs)]
    told = subprocess.run(
        [*query, "--format=csv,noheader,nounits"], check=True, capture_output=True, text=True
    )
    return [int(value) for value in told.stdout.split(",")]


def get_dram_gbps(device: int | None = None) -> float:
    """GB/s of a device's memory."""
    properties = _properties(device)
    # two transfers in a cycle; kHz and bits
    return properties["mem_clock_rate"] * properties["mem_bus_width"] * 2 / 1e6 / 8


def get_max_tensorcore_tflops(dtype: object, clock_rate: float, device: int | None = None) -> float:
    """TFLOP/s of a device's tensor cores at a clock in kHz. Errors: InvalidValue."""
    return _tflops("get_max_tensorcore_tflops", _PRODUCTS, dtype, clock_rate, device)


def get_max_simd_tflops(dtype: object, clock_rate: float, device: int | None = None) -> float:
    """TFLOP/s of a device's other units at a clock in kHz. Errors: InvalidValue."""
    return _tflops("get_max_simd_tflops", _VECTORS, dtype, clock_rate, device)


def _tflops(
    function: str, rates: dict[str, int], dtype: object, clock_rate: float, device: int | None
) -> float:
    # "torch.float16", or a dtype of the language.
    name = str(dtype).rpartition(".")[2]
    name = getattr(dtype, "python_name", name)
    if name not in rates:
        raise errors.InvalidValue(function, "dtype", f"one of {', '.join(rates)}", name)
    subcores = _properties(device)["multiprocessor_count"] * _SUBCORES
    return subcores * clock_rate * rates[name] * 1e-9


def _properties(device: int | None) -> dict[str, int]:
    index = driver.active.get_current_device() if device is None else device
    return driver.active.utils.get_device_properties(index)
