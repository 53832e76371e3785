"""What the hardware reads for one wgmma, by its descriptors alone; and where a layout has it."""

import numpy as np

from tilewright.layout import OFFSET, LinearLayout


def addresses_read(descriptor: int, k_major: bool, extent: int, size: int) -> np.ndarray:
    """The byte address of every element (mn, k) of the operand of one instruction.

    By the tables of the PTX ISA: strides are added first, the swizzle acts on the sum.
    """
    start = (descriptor & 0x3FFF) << 4
    leading, stride = ((descriptor >> at & 0x3FFF) << 4 for at in (16, 32))
    width = {0: 16, 1: 128, 2: 64, 3: 32}[descriptor >> 62]
    swizzled = width != 16 or descriptor >> 62
    mn, k = np.meshgrid(np.arange(extent), np.arange(32 // size), indexing="ij")
    if k_major and swizzled:
        linear = mn % 8 * width + mn // 8 * stride + k * size
    elif k_major:
        linear = mn % 8 * 16 + mn // 8 * stride + k * size // 16 * leading + k * size % 16
    elif swizzled:
        row = mn * size // width * leading + mn * size % width
        linear = row + k % 8 * width + k // 8 * stride
    else:
        linear = mn % 8 * size + mn // 8 * stride + k % 8 * 16 + k // 8 * leading
    linear = linear + start
    mask = {0: 0, 1: 0x70, 2: 0x30, 3: 0x10}[descriptor >> 62]
    return linear ^ (linear >> 3 & mask)


def element_addresses(layout: LinearLayout, k_dim: int, size: int) -> np.ndarray:
    """The byte offset of every element (mn, k), by the layout."""
    offsets = np.arange(layout.in_size(OFFSET))
    coordinates = [np.zeros_like(offsets), np.zeros_like(offsets)]
    for bit, basis in enumerate(layout.bases(OFFSET)):
        for coordinate, value in zip(coordinates, basis, strict=True):
            coordinate ^= (offsets >> bit & 1) * value
    place = np.zeros(layout.shape, dtype=np.int64)
    place[tuple(coordinates)] = offsets * size
    return place if k_dim == 1 else place.T
