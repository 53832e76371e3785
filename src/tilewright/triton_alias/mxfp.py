"""Microscaling numbers on the host: e2m1, packed two a byte, and e8m0 scales, as torch tensors.

The bits are those of the OCP Microscaling Formats specification 1.0, as `tl.dot_scaled` takes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tilewright.support import errors, import_late

_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""Values of the e2m1 codes 0 to 7; bit 3 is the sign."""

_BIAS, _NAN = 127, 255
"""Exponent bias and NaN code of e8m0."""


class _Codes:
    """Codes as uint8 in `data`, created from floats or, by `random`, of a shape."""

    def __init__(self, data: Any = None, size: Any = None, device: Any = None) -> None:
        self.torch: Any = import_late("torch")
        if data is None and size is None:
            raise errors.MissingArgument(type(self).__name__, ("data", "size"))
        self.size: tuple[int, ...] = tuple(data.shape) if data is not None else _extents(size)
        self.device = data.device if data is not None else device
        self.data: Any = None if data is None else self._codes(data.float())

    def _codes(self, values: Any) -> Any:
        raise NotImplementedError


def _extents(size: Any) -> tuple[int, ...]:
    return tuple(cast("Sequence[int]", size)) if isinstance(size, Sequence) else (size,)


class MXFP4Tensor(_Codes):
    """e2m1 numbers, one a byte in `data`. Floats round to nearest even, beyond 6 to 6."""

    def random(self) -> MXFP4Tensor:
        """Random codes, uniformly distributed."""
        self.data = self.torch.randint(0, 16, self.size, dtype=self.torch.uint8, device=self.device)
        return self

    def to(self, dtype: Any) -> Any:
        """The numbers in a dtype of torch."""
        table = self.torch.tensor(_MAGNITUDES, dtype=self.torch.float32, device=self.data.device)
        size = table[(self.data & 7).long()]
        return self.torch.where(self.data & 8 != 0, -size, size).to(dtype)

    def _codes(self, values: Any) -> Any:
        torch = self.torch
        # Ties round to the even code: 0.25 to 0, 0.75 to 1.
        middles = [(a + b) / 2 for a, b in zip(_MAGNITUDES, _MAGNITUDES[1:], strict=False)]
        size = torch.nan_to_num(values.abs(), nan=_MAGNITUDES[-1])
        codes = torch.zeros_like(values, dtype=torch.uint8)
        for lower, middle in enumerate(middles):
            above = size > middle if lower % 2 == 0 else size >= middle
            codes += above.to(torch.uint8)
        return codes | (torch.signbit(values).to(torch.uint8) << 3)

    def to_packed_tensor(self, dim: int) -> Any:
        """Two numbers a byte along `dim`, the first in the low bits; a 0 fills an odd extent."""
        torch = self.torch
        codes = self.data.movedim(dim, -1)
        if codes.shape[-1] % 2:
            codes = torch.nn.functional.pad(codes, (0, 1))
        return (codes[..., ::2] | (codes[..., 1::2] << 4)).movedim(-1, dim).contiguous()

    def unpack_packed_tensor(
        self, packed_tensor: Any, dim: int, original_shape: tuple[int, ...]
    ) -> Any:
        """The codes that `to_packed_tensor` has packed along `dim`."""
        packed = packed_tensor.movedim(dim, -1)
        pairs = self.torch.stack((packed & 15, packed >> 4), -1).flatten(-2)
        return pairs[..., : original_shape[dim]].movedim(-1, dim).contiguous()


class MXScaleTensor(_Codes):
    """e8m0 scales: powers of two from 2^-127 on, 255 a NaN. Floats round down."""

    def random(self, low: float | None = None, high: float | None = None) -> MXScaleTensor:
        """Random powers of two from `low` to `high`, uniformly distributed."""
        least = 0 if low is None else self._exponent(low)
        most = _NAN - 1 if high is None else self._exponent(high)
        if least > most:
            raise errors.InvalidValue("MXScaleTensor.random", "low", f"at most high, {high}", low)
        shape = self.size
        self.data = self.torch.randint(
            least, most + 1, shape, dtype=self.torch.uint8, device=self.device
        )
        return self

    def _exponent(self, value: float) -> int:
        return int(self._codes(self.torch.tensor([value]))[0])

    def to(self, dtype: Any) -> Any:
        """The scales in a dtype of torch."""
        torch = self.torch
        power = torch.exp2(self.data.double() - _BIAS)
        return torch.where(self.data == _NAN, torch.nan, power).to(dtype)

    def _codes(self, values: Any) -> Any:
        torch = self.torch
        valid = torch.isfinite(values) & (values > 0)
        exponent = torch.frexp(torch.where(valid, values, 1.0)).exponent - 1 + _BIAS
        codes = exponent.clamp(0, _NAN - 1)
        return torch.where(valid, codes, _NAN).to(torch.uint8)


__all__ = ["MXFP4Tensor", "MXScaleTensor"]
