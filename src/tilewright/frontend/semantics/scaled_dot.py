"""Dots of operands in microscaling formats (OCP Microscaling Formats 1.0).

The operands become bf16, which holds their numbers and the powers of two of the scales exactly, so
that an ordinary dot follows. fp16 has more digits than bf16: if one operand is fp16, both become
fp32 and the dot uses tf32, which has as many digits as fp16 and the range of bf16.
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright import language as tl
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.formula_tracing import evaluate
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.ir.types import shape_of
from tilewright.language import dtype, tensor, unwrap
from tilewright.support import errors

FORMATS: dict[str, dtype] = {
    "e2m1": tl.uint8, "e4m3": tl.float8e4nv, "e5m2": tl.float8e5, "bf16": tl.bfloat16,
    "fp16": tl.float16,
}  # fmt: skip
"""Format -> dtype of the elements of an operand."""

_BF16_MANTISSA = 7


class ScaledOperand(NamedTuple):
    """One side: its tile with K last for the left one, first for the right; and its scales.

    k_pack: whether the two e2m1 numbers of a byte are adjacent along K
    """

    name: str
    tile: tensor
    scale: tensor | None
    format: str
    k_pack: bool
    is_left: bool

    def numbers(self, target: dtype) -> tensor:
        """The tile in `target`, scaled."""
        plain = self._unpacked() if self.format == "e2m1" else self.tile
        wide = plain.to(target)
        if self.scale is None:
            return wide
        scales = _powers(self.scale).to(target)
        # One scale for each group along K: (rows, groups) to (rows, groups, size) to (rows, K).
        *batch, rows, depth = _rows_first(wide, self.is_left)
        groups = shape_of(scales.handle.type)[-1]
        spread = scales.expand_dims(-1).broadcast_to((*batch, rows, groups, depth // groups))
        spread = spread.reshape((*batch, rows, depth))
        return wide * (spread if self.is_left else tl.trans(spread))

    def _unpacked(self) -> tensor:
        """Both numbers of each byte, along K or along the other dimension."""
        low, high = _e2m1(self.tile & 15), _e2m1(self.tile >> 4)
        *batch, rows, columns = shape_of(self.tile.handle.type)
        if self.is_left == self.k_pack:
            return tl.interleave(low, high)
        # Interleaved along the dimension before the last: (rows, columns, 2) to (rows, 2, columns).
        pairs = tl.join(low, high)
        last = len(batch) + 2
        moved = tl.permute(pairs, (*range(last - 1), last, last - 1))
        return moved.reshape((*batch, 2 * rows, columns))


def _rows_first(tile: tensor, is_left: bool) -> tuple[int, ...]:
    """The shape of an operand as (..., rows, K)."""
    *batch, first, second = shape_of(tile.handle.type)
    return (*batch, first, second) if is_left else (*batch, second, first)


def _e2m1(code: tensor) -> tensor:
    """Four bits as bf16: exponents 1 to 3 are 0 to 2, of exponent 0 there are 0 and 1/2."""
    size, sign = (code & 7).to(tl.int16), (code & 8).to(tl.int16) << 12
    # The fraction bit below the exponent, whose bias is 1, and 127 in bf16.
    normal = (size << (_BF16_MANTISSA - 1)) + (126 << _BF16_MANTISSA)
    bits = tl.where(size == 0, 0, tl.where(size == 1, 126 << _BF16_MANTISSA, normal)) | sign
    return tl.cast(bits.to(tl.int16), tl.bfloat16, bitcast=True)


def _powers(scale: tensor) -> tensor:
    """e8m0 scales as bf16: the exponent field itself, but for 2^-127 and the NaN; fp8 as it is."""
    if scale.dtype.is_floating():
        return scale.to(tl.bfloat16)
    code = scale.to(tl.int16)
    bits = tl.where(code == 0, 64, tl.where(code == 255, 0x7FC0, code << _BF16_MANTISSA))
    return tl.cast(bits.to(tl.int16), tl.bfloat16, bitcast=True)


def _operand(
    ctx: Context, name: str, value: object, scale: object, format_: object, k_pack: object
) -> ScaledOperand:
    """One side, checked. Errors: InvalidValue."""
    tile = constant_arguments.tile(ctx, "dot_scaled", name, value)
    kind = constant_arguments.choice(
        ctx, "dot_scaled", f"{name}_format", format_, tuple(FORMATS), "bf16"
    )
    element = FORMATS[kind]
    if kind in ("e4m3", "e5m2") and tile.dtype == tl.uint8:
        tile = evaluate(ctx, lambda: tl.cast(tile, element, bitcast=True))
    if tile.dtype != element or len(tile.shape) < 2:
        expected = f"a tile of rank 2 or more of {element} for {kind}"
        ctx.fail(errors.InvalidValue, "dot_scaled", name, expected, tile.type)
    packs_k = constant_arguments.flag(ctx, "dot_scaled", f"{name}_k_pack", k_pack)
    if kind != "e2m1" and not packs_k:
        expected = "True for formats that are not packed"
        ctx.fail(errors.InvalidValue, "dot_scaled", f"{name}_k_pack", expected, packs_k)
    operand = ScaledOperand(name, tile, _scale(ctx, name, scale), kind, packs_k, name == "lhs")
    _check_groups(ctx, operand)
    return operand


def _scale(ctx: Context, name: str, scale: object) -> tensor | None:
    if unwrap(scale) is None:
        return None
    tile = constant_arguments.tile(ctx, "dot_scaled", f"{name}_scale", scale)
    if tile.dtype not in (tl.uint8, tl.float8e4nv):
        expected = "a tile of uint8 or fp8e4nv"
        ctx.fail(errors.InvalidValue, "dot_scaled", f"{name}_scale", expected, tile.type)
    return tile


def _check_groups(ctx: Context, operand: ScaledOperand) -> None:
    """A scale for each 32 numbers along K, or each 16 of fp8e4nv."""
    if operand.scale is None:
        return
    *batch, rows, depth = _rows_first(operand.tile, operand.is_left)
    if operand.format == "e2m1":
        rows, depth = (rows, 2 * depth) if operand.k_pack else (2 * rows, depth)
    size = 16 if operand.scale.dtype.is_floating() else 32
    found = shape_of(operand.scale.handle.type)
    shape = (*batch, rows, depth // size)
    if found != shape:
        name, expected = f"{operand.name}_scale", f"of shape {shape}"
        ctx.fail(errors.InvalidValue, "dot_scaled", name, expected, operand.scale.type)


@implements(tl.dot_scaled)
def dot_scaled(
    ctx: Context,
    lhs: object,
    lhs_scale: object,
    lhs_format: object,
    rhs: object,
    rhs_scale: object,
    rhs_format: object,
    acc: object = None,
    fast_math: object = False,
    lhs_k_pack: object = True,
    rhs_k_pack: object = True,
    out_dtype: object = tl.float32,
) -> tensor:
    left = _operand(ctx, "lhs", lhs, lhs_scale, lhs_format, lhs_k_pack)
    right = _operand(ctx, "rhs", rhs, rhs_scale, rhs_format, rhs_k_pack)
    if unwrap(out_dtype) != tl.float32:
        ctx.fail(errors.InvalidValue, "dot_scaled", "out_dtype", "tl.float32", unwrap(out_dtype))
    has_half = "fp16" in (left.format, right.format)
    target, precision = (tl.float32, "tf32") if has_half else (tl.bfloat16, None)

    def dot() -> tensor:
        a, b = left.numbers(target), right.numbers(target)
        return tl.dot(a, b, unwrap(acc), input_precision=precision)

    return evaluate(ctx, dot)
