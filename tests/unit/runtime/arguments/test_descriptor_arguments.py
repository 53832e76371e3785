"""Tensor descriptors as arguments: what decides the variant, and what is passed."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tilewright import ASTSource, Config, MockTensor, autotune, compile, jit
from tilewright.language import TensorDescriptor
from tilewright.runtime import argument_key
from tilewright.support import errors


@jit
def add_one(d, M: tl.constexpr = 4):  # pyright: ignore[reportArgumentType]
    d.store([0, 0], d.load([0, 0]) + 1)


def array(rows: int, columns: int, dtype: Any = np.float32) -> Any:
    return np.zeros((rows, columns), dtype)


def key_of(x: Any, block: Any = (4, 4), padding: str = "zero") -> str:
    return repr(argument_key(TensorDescriptor.from_tensor(x, block, padding))[0])


def test_blocks_dtype_and_padding_choose_the_variant():
    assert key_of(array(8, 8)) == "tensordesc<fp32[4, 4]>/4"
    assert key_of(array(8, 8), (2, 8)) == "tensordesc<fp32[2, 8]>/4"
    assert key_of(array(8, 8, np.int32)) == "tensordesc<i32[4, 4]>/4"
    assert key_of(array(8, 8), padding="nan") == "tensordesc<fp32[4, 4],nan>/4"


def test_so_does_whether_rows_are_multiples_of_16_bytes():
    wide = array(8, 16)
    keys = [argument_key(TensorDescriptor.from_tensor(wide[:, :n], [4, 4]))[0] for n in (4, 8, 7)]
    assert keys[0] == keys[1] != keys[2]
    assert key_of(wide[:, :7]) == "tensordesc<fp32[4, 4]>"


def test_other_extents_strides_and_addresses_do_not():
    wide = array(64, 64)
    parts = [wide, wide[3:], wide[:7, 8:20], array(1, 4)]
    keys = {argument_key(TensorDescriptor.from_tensor(part, [4, 4]))[0] for part in parts}
    assert len(keys) == 1


def test_address_extents_and_strides_are_passed():
    x = np.zeros((3, 5, 8), np.float32)
    _, passed = argument_key(TensorDescriptor.from_tensor(x, [1, 4, 4]))
    assert passed == [x.ctypes.data, 3, 5, 8, 40, 8]


def test_launches_compile_once_for_each_shape_of_blocks():
    kernel = jit(add_one.fn)
    d = TensorDescriptor.from_tensor(array(8, 8), [4, 4])
    for _ in range(3):
        kernel[(1,)](d)
    kernel[(1,)](TensorDescriptor.from_tensor(array(9, 12), [4, 4]))
    assert len(kernel.variant_cache.by_key) == 1
    assert (d.base[:4, :4] == 3).all() and not d.base[4:].any()
    d.block_shape = [2, 8]
    kernel[(1,)](d)
    assert len(kernel.variant_cache.by_key) == 2
    assert (d.base[1] == [4] * 4 + [1] * 4).all()


def test_mock_arrays_can_be_described():
    d = TensorDescriptor(MockTensor(tl.float16), (64, 64), (64, 1), [8, 8])
    compiled = add_one.warmup(d, grid=(1,))
    assert "mem.descriptor_load" in compiled.asm["source"]
    assert "{aligned = 16, descriptor = 2}" in compiled.asm["source"]


def test_compiled_kernels_take_descriptors():
    d = TensorDescriptor.from_tensor(array(4, 4), [4, 4])
    add_one.warmup(d, grid=(1,))[(1,)](d, 4)
    assert (d.base == 1).all()


@pytest.mark.parametrize("padding", ["", ",nan"])
def test_types_of_descriptors_as_text(padding: str):
    signature = {"d": f"tensordesc<fp32[4, 4]{padding}>", "M": "constexpr"}
    kernel = compile(ASTSource(add_one, signature, {"M": 4}))
    d = TensorDescriptor.from_tensor(array(8, 16)[:3, :6], [4, 4])
    kernel[(1,)](d)
    assert (d.base[:, :4] == 1).all() and not d.base[:, 4:].any()
    assert ("nan" in kernel.asm["source"]) is bool(padding)


@pytest.mark.parametrize("text", ["fp16[4, 8", "fp17[4, 8]", "fp16[]", "fp16[4, 8],one"])
def test_texts_that_are_no_types(text: str):
    with pytest.raises(errors.InvalidOption, match="type of 'd'' must be as 'tensordesc<fp16"):
        ASTSource(add_one, {"d": f"tensordesc<{text}>", "M": "constexpr"}, {"M": 4})


def test_blocks_in_texts_are_checked_too():
    with pytest.raises(errors.InvalidValue, match="at least 16 bytes in its last dimension"):
        compile(ASTSource(add_one, {"d": "tensordesc<fp16[4, 4]>", "M": "constexpr"}, {"M": 4}))


@pytest.mark.torch
def test_arrays_of_torch():
    torch = pytest.importorskip("torch")
    d = TensorDescriptor.from_tensor(torch.zeros(6, 8, dtype=torch.bfloat16), [4, 8])
    add_one[(1,)](d)
    assert (d.base[:4] == 1).all() and not d.base[4:].any()


def set_blocks(arguments: dict[str, Any]) -> None:
    arguments["d"].block_shape = [arguments["M"], 4]


def test_autotuning_chooses_the_shape_of_blocks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_AUTOTUNING", "0")
    configs = [Config({"M": m}, pre_hook=set_blocks) for m in (2, 4)]
    seen: list[int] = []

    def bench(fn: Any, *, quantiles: Any) -> list[float]:
        fn()
        seen.append(d.block_shape[0])
        return [float(4 - d.block_shape[0])] * 3

    d = TensorDescriptor.from_tensor(array(4, 4), [1, 1])
    tuned = autotune(configs, key=[], do_bench=bench, restore_value=["d"])(jit(add_one.fn))
    tuned[(1,)](d)
    assert seen == [2, 4]
    assert (d.base == 1).all() and tuned.best_config is configs[1]
