"""Hides the computation of a narrow vector from its store.

    store <16 x i16> %x          ->     %b = bitcast <16 x i16> %x to <8 x float>
                                        %f = llvm.arithmetic.fence(<8 x float> %b)
                                        %y = bitcast <8 x float> %f to <16 x i16>
                                        store <16 x i16> %y

On CPUs with AVX-512, LLVM 22 merges a truncation with the masked store of its result, and where one
lane of the mask is known to be the only one, it then stores the whole wide number there: four bytes
for an i16, over the lane's neighbour (llvm-project issue 179489, repaired in LLVM 23). It also
makes masked stores out of ordinary ones (`store (select m, x, load p), p`), truncations out of
conversions to small integers, and derives masks as late as in instruction selection. So neither
safe masks nor safe values can be recognised here, and every narrow vector is hidden.

The cost is one addressing form: a truncation to memory is a truncation and a store.
`tests/unit/backends/cpu/lower/test_narrow_stores.py` fails when LLVM no longer needs this.
"""

from __future__ import annotations

from tilewright.llvm import Code, Val

_NARROW = {"i8": 8, "i16": 16, "half": 16, "bfloat": 16, "i32": 32}
"""Bits of the elements that a truncation may give. None gives floats of 32 and 64 bits, and no
number is wider than 64 bits."""

_SMALLEST = 32


def hide_origin(code: Code, value: Val) -> Val:
    """The same vector, behind a fence that hides its computation from LLVM."""
    # A literal (no `%`) has no origin to hide.
    bits = _NARROW.get(value.element)
    if bits is None or value.width == 1 or value.text[0] != "%":
        return value
    # Less than one float: padded with undefined lanes, which are dropped afterwards.
    missing = _SMALLEST // bits - value.width
    if missing > 0:
        lanes = [*range(value.width), *[-1] * missing]
        hidden = hide_origin(code, code.shuffle(value, lanes))
        return code.shuffle(hidden, lanes[: value.width])
    return code.fenced(value, bits * value.width)
