"""Mistakes with tensor descriptors, in kernels and on the host."""

# pyright: reportArgumentType=false, reportCallIssue=false

# ruff: noqa: E501 -- the mistakes are meant

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.errors.python_mistakes import Mistakes
from tilewright import jit
from tilewright.language import TensorDescriptor
from tilewright.support import errors

mistake = Mistakes()


@mistake(x="*f32")
def rank_0(x):
    """make_tensor_descriptor: 'block_shape' must be 1 to 5 extents, found 0 [TW112]
    tl.make_tensor_descriptor(x, [], [], [])
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.make_tensor_descriptor(x, [], [], [])


@mistake(x="*f32")
def rank_6(x):
    """make_tensor_descriptor: 'block_shape' must be 1 to 5 extents, found 6 [TW112]
    tl.make_tensor_descriptor(x, [1] * 6, [1] * 6, [1, 1, 1, 1, 1, 8])
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.make_tensor_descriptor(x, [1] * 6, [1] * 6, [1, 1, 1, 1, 1, 8])


@mistake(x="*f32")
def strides_of_another_rank(x):
    """make_tensor_descriptor: 'strides' must be of length 2, as block_shape, found 1 [TW112]
    tl.make_tensor_descriptor(x, [8, 8], [1], [8, 8])
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.make_tensor_descriptor(x, [8, 8], [1], [8, 8])


@mistake(x="*f32")
def last_stride(x):
    """make_tensor_descriptor: 'strides' must be 1 in the last dimension, along which elements are adjacent, found 2 [TW112]
    tl.make_tensor_descriptor(x, [8, 8], [16, 2], [8, 8])
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.make_tensor_descriptor(x, [8, 8], [16, 2], [8, 8])


@mistake(x="*f32")
def narrow_rows(x):
    """make_tensor_descriptor: 'block_shape' must be at least 16 bytes in its last dimension, found 2 of fp32, which are 8 [TW112]
    tl.make_tensor_descriptor(x, [8, 8], [8, 1], [8, 2])
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.make_tensor_descriptor(x, [8, 8], [8, 1], [8, 2])


@mistake(x="*f32")
def unknown_padding(x):
    """make_tensor_descriptor: 'padding_option' must be one of "zero", "nan", found 'one' [TW112]
    tl.make_tensor_descriptor(x, [8], [1], [8], "one")
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.make_tensor_descriptor(x, [8], [1], [8], "one")


@mistake(x="*f32")
def no_pointer(x):
    """make_tensor_descriptor: 'base' must be a scalar pointer, found fp32 [TW112]
    tl.make_tensor_descriptor(tl.load(x), [8], [1], [8])
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.make_tensor_descriptor(tl.load(x), [8], [1], [8])


@mistake(x="*f32")
def offsets_of_another_rank(x):
    """load: 'offsets' must be of length 2, as the descriptor's blocks [8, 8], found 1 [TW112]
    d.load([0])
    ^^^^^^^^^^^
    """
    d = tl.make_tensor_descriptor(x, [8, 8], [8, 1], [8, 8])
    d.load([0])


@mistake(x="*f32")
def offsets_of_64_bits(x):
    """store: 'offsets' must be int32, to which offsets of blocks are limited: write .to(tl.int32), found int64 [TW112]
    d.store([tl.program_id(0).to(tl.int64)], tl.zeros((8,), tl.float32))
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    d = tl.make_tensor_descriptor(x, [8], [1], [8])
    d.store([tl.program_id(0).to(tl.int64)], tl.zeros((8,), tl.float32))


@mistake(x="*f32")
def offsets_that_are_fractions(x):
    """load: 'offsets' must be of integer scalars, found 0.5 [TW112]
    d.load([0.5])
    ^^^^^^^^^^^^^
    """
    d = tl.make_tensor_descriptor(x, [8], [1], [8])
    d.load([0.5])


@mistake(x="*f32")
def extents_of_64_bits(x):
    """make_tensor_descriptor: 'shape' must be int32 in each dimension, found 2147483648 [TW112]
    tl.make_tensor_descriptor(x, [2**31], [1], [8])
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.make_tensor_descriptor(x, [2**31], [1], [8])


@mistake(x="*f32")
def offsets_that_are_tiles(x):
    """load: 'offsets' must be of integer scalars, found <[8], int32> [TW112]
    d.load([tl.arange(0, 8)])
    ^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    d = tl.make_tensor_descriptor(x, [8], [1], [8])
    d.load([tl.arange(0, 8)])


@mistake(x="*f32")
def block_of_another_shape(x):
    """store: 'value' must be of the shape of a block, [8, 8], found [4, 8] [TW112]
    d.store([0, 0], tl.zeros((4, 8), tl.float32))
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    d = tl.make_tensor_descriptor(x, [8, 8], [8, 1], [8, 8])
    d.store([0, 0], tl.zeros((4, 8), tl.float32))


@mistake(x="*f32")
def bits_of_floats(x):
    """cannot atomic_and on fp32: it works on int32, uint32, int64, uint64 [TW113]
    d.atomic_and([0], tl.zeros((8,), tl.float32))
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    d = tl.make_tensor_descriptor(x, [8], [1], [8])
    d.atomic_and([0], tl.zeros((8,), tl.float32))


@mistake(x="*f32")
def rows_of_blocks(x):
    """cannot gather rows by this descriptor: its blocks must be single rows, [1, columns], found [8, 8] [TW113]
    d.gather(tl.arange(0, 8), 0)
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    d = tl.make_tensor_descriptor(x, [8, 8], [8, 1], [8, 8])
    d.gather(tl.arange(0, 8), 0)


@mistake(x="*f32")
def few_rows(x):
    """gather: 'x_offsets' must be at least 8 rows, found 4 [TW112]
    d.gather(tl.arange(0, 4), 0)
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    d = tl.make_tensor_descriptor(x, [8, 8], [8, 1], [1, 8])
    d.gather(tl.arange(0, 4), 0)


@mistake(x="*f32")
def unknown_method(x):
    """a tensor descriptor has no attribute 'lod' [TW108]
    d.lod([0])
    ^^^^^
    hint: did you mean 'load'?
    """
    d = tl.make_tensor_descriptor(x, [8], [1], [8])
    d.lod([0])


@mistake(x="*f32")
def pointer_for_a_descriptor(x):
    """load: 'desc' must be a tensor descriptor, found pointer<fp32> [TW112]
    tl.load_tensor_descriptor(x, [0])
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.load_tensor_descriptor(x, [0])


@mistake(x="*f32")
def descriptor_for_a_pointer(x):
    """cannot load through a tensor descriptor: it is no pointer [TW113]
    tl.load(d)
    ^^^^^^^^^^
    hint: call its methods: d.load(offsets), d.store(offsets, value), d.atomic_add(offsets, value)
    """
    d = tl.make_tensor_descriptor(x, [8], [1], [8])
    tl.load(d)


@mistake(x="*i32")
def integers_have_no_nan(x):
    """make_tensor_descriptor: 'padding_option' must be zero for int32, found "nan" [TW112]
    tl.make_tensor_descriptor(x, [8], [1], [8], "nan")
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.make_tensor_descriptor(x, [8], [1], [8], "nan")


@pytest.mark.parametrize("kernel", list(mistake), ids=str)
def test_mistakes_in_kernels(kernel: Any):
    dtype = np.float32 if kernel.args["x"] == "*f32" else np.int32
    assert kernel.shown() == kernel.expected
    assert kernel.interpreted(x=np.zeros(64, dtype)) == kernel.expected


def test_the_last_stride_must_be_known():
    @jit
    def made(x, stride):
        tl.make_tensor_descriptor(x, [8], [stride * 1], [8])

    with pytest.raises(
        errors.NotConstexpr, match="the last of 'strides', which is 1, must be known"
    ):
        made[(1,)](np.zeros(8, "f"), 7)


X = np.zeros((16, 16), np.float32)


@jit
def touch(d):
    d.store([0, 0], d.load([0, 0]))


interpreted = jit(interpret=True)(touch.fn)


def describe(**fields: Any) -> TensorDescriptor:
    given: dict[str, Any] = {
        "base": X,
        "shape": (16, 16),
        "strides": (16, 1),
        "block_shape": [8, 8],
    }
    return TensorDescriptor(**{**given, **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"shape": (), "strides": (), "block_shape": ()}, "'shape' must be 1 to 5 extents, found 0"),
        ({"shape": (16,)}, "'strides' must be 1 numbers, one for each dimension, found 2"),
        ({"block_shape": [8]}, "'block_shape' must be 2 numbers, one for each dimension, found 1"),
        ({"shape": (16, -1)}, "'shape' must be 0 to 2147483647 in each dimension, found (16, -1)"),
        ({"strides": (1, 16)}, "'strides' must be 1 in the last dimension, along which"),
        ({"strides": (15, 1)}, "'strides' must be multiples of 4 elements (16 bytes) from 0 to"),
        ({"strides": (-16, 1)}, "'strides' must be multiples of 4 elements (16 bytes) from 0 to"),
        ({"block_shape": [8, 0]}, "'block_shape' must be positive extents, found (8, 0)"),
        ({"block_shape": [2048, 2048]}, "'block_shape' must be at most 1048576 elements"),
        ({"padding": "one"}, "'padding' must be one of zero, nan, found one"),
        ({"base": X.view(np.int32), "padding": "nan"}, "'padding' must be zero for integers"),
        ({"base": X[:, 1:]}, "'base' must be an array whose address is a multiple of 16 bytes"),
    ],
)  # fmt: skip
def test_descriptors_that_cannot_be(fields: dict[str, Any], message: str):
    with pytest.raises(errors.InvalidDescriptor) as caught:
        describe(**fields)
    assert message in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("kernel", [touch, interpreted], ids=["compiled", "interpreted"])
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("block_shape", [8, 1], "'block_shape' must be at least 16 bytes in the last dimension"),
        ("block_shape", [8, -4], "'block_shape' must be positive extents"),
        ("strides", (14, 1), "'strides' must be multiples of 4 elements"),
        ("base", X[:, 1:], "'base' must be an array whose address is a multiple of 16 bytes"),
    ],
)
def test_launches_look_at_fields_that_were_assigned(
    kernel: Any, name: str, value: Any, message: str
):
    descriptor = describe()
    setattr(descriptor, name, value)
    with pytest.raises(errors.InvalidDescriptor) as caught:
        kernel[(1,)](descriptor)
    assert message in str(caught.value)


class Unknown:
    shape = (16,)


def test_what_is_no_array_cannot_be_described():
    with pytest.raises(errors.InvalidDescriptor, match="'base' must be an array that exposes"):
        TensorDescriptor.from_tensor(Unknown(), [16])
    with pytest.raises(errors.UnsupportedArgument, match="tensor descriptor of a int"):
        touch[(1,)](describe(base=16))


def test_read_only_arrays_are_not_stored_to():
    read_only = X.copy()
    read_only.flags.writeable = False
    with pytest.raises(errors.ReadOnlyArray, match="'d' is a read-only array"):
        touch[(1,)](describe(base=read_only))
