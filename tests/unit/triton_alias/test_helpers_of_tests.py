"""`triton._internal_testing`: arrays, dtypes, targets and fresh knobs for tests of Triton code."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tilewright.triton_alias import knobs

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def helpers() -> Any:
    pytest.importorskip("torch")
    from tilewright.triton_alias import test_helpers

    return test_helpers


@pytest.mark.parametrize(
    "name", ["int8", "uint32", "int64", "float16", "float64", "bfloat16", "bool"]
)
def test_random_numbers_pass_through_a_tensor_unchanged(helpers: Any, name: str) -> None:
    numbers = helpers.numpy_random((8, 16), name)
    tensor = helpers.to_triton(numbers, "cpu", dst_type=name)
    back = helpers.to_numpy(tensor)
    assert back.dtype == numbers.dtype and np.array_equal(back, numbers)
    assert np.array_equal(helpers.numpy_random((8, 16), name), numbers)
    assert len(np.unique(numbers)) > 1


@pytest.mark.parametrize("name", ["int8", "uint16", "int32"])
def test_random_integers_are_within_limits_and_not_zero(helpers: Any, name: str) -> None:
    numbers = helpers.numpy_random(1000, name, low=-2, high=3)
    assert set(numbers.tolist()) == ({1, 2} if name == "uint16" else {-2, -1, 1, 2})


def test_bits_of_fp8_are_seen_as_fp8(helpers: Any) -> None:
    bits = helpers.numpy_random(16, "float8e5")
    wrapped = helpers.to_triton(bits, "cpu", dst_type="float8e5")
    assert wrapped.dtype == tl.float8e5
    assert helpers.unwrap_tensor(wrapped).tolist() == bits.tolist()


def test_names_of_dtypes(helpers: Any) -> None:
    torch = pytest.importorskip("torch")
    assert helpers.str_to_triton_dtype("bfloat16") == tl.bfloat16
    assert helpers.str_to_triton_dtype("uint8") == tl.uint8
    assert helpers.torch_dtype_name(torch.float16) == "float16"
    assert helpers.torch_dtype_name(tl.float16) == "fp16"
    with pytest.raises(TypeError, match="no dtype of the language or of torch: str"):
        helpers.torch_dtype_name("float16")


@pytest.mark.parametrize(
    ("arch", "version", "expected"),
    [
        (90, "12.3", {"hopper", "hopper_or_newer", "ampere_or_newer"}),
        (80, "13.0", {"ampere_or_newer"}),
        (103, "13.0", {"blackwell", "hopper_or_newer", "ampere_or_newer"}),
        (120, "13.0", {"sm12x", "hopper_or_newer", "ampere_or_newer"}),
    ],
)
def test_generations_of_gpus(
    helpers: Any, monkeypatch: pytest.MonkeyPatch, arch: int, version: str, expected: set[str]
) -> None:
    from tilewright.backends import GPUTarget

    tool = knobs.NvidiaTool("ptxas", version)
    monkeypatch.setattr(helpers, "get_current_target", lambda: GPUTarget("cuda", arch, 32))
    monkeypatch.setattr(type(knobs.nvidia), "ptxas", property(lambda group: tool))
    names = ("hopper", "hopper_or_newer", "ampere_or_newer", "blackwell", "sm12x")
    assert {name for name in names if getattr(helpers, f"is_{name}")()} == expected
    assert helpers.supports_tma() == helpers.supports_ws() == ("hopper_or_newer" in expected)
    assert helpers.is_cuda() and not helpers.is_hip() and not helpers.is_hip_cdna3()


def test_a_cpu_is_no_gpu(helpers: Any) -> None:
    if helpers.get_current_target().backend == "cpu":
        assert not (helpers.is_cuda() or helpers.is_hip() or helpers.is_xpu())
        assert not helpers.supports_tma() and helpers.requires_tma.args == (True,)


def test_fresh_knobs_are_as_before_afterwards(
    helpers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_DEBUG", "1")
    before = {
        name: group for name, group in vars(knobs).items() if isinstance(group, knobs.base_knobs)
    }
    fresh, reset = helpers._fresh_knobs_impl()
    try:
        assert fresh() is knobs
        assert "TRITON_DEBUG" not in os.environ
        knobs.runtime.debug = False
        knobs.runtime.jit_cache_hook = print
        knobs.language.default_fp_fusion = False
        knobs.propagate_env = False
    finally:
        reset()
    assert (os.environ["TRITON_DEBUG"], "TRITON_DEFAULT_FP_FUSION" in os.environ) == ("1", False)
    assert knobs.runtime.debug and knobs.language.default_fp_fusion and knobs.propagate_env
    assert knobs.runtime.jit_cache_hook is None
    assert all(getattr(knobs, name) is group for name, group in before.items())
