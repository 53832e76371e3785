"""Tensors for launches of users' kernels, the same in every process, and digests of results."""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from benchmarks.gpu.user_launches import Of, Out

DTYPES = {
    "fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64,
    "fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2, "i8": torch.int8,
    "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
}  # fmt: skip
CHUNK = 1 << 24

Size = tuple[int, ...]
FILLS: dict[str, Callable[[Size, torch.dtype], Any]] = {
    "normal": lambda size, _: torch.randn(size),
    "small": lambda size, _: torch.randn(size) * 0.1,
    "ones": lambda size, _: torch.ones(size),
    "decay": lambda size, _: torch.rand(size) * -0.02,
    "falling": lambda size, _: torch.arange(size[0]) * -0.01,
    "bits": lambda size, dtype: torch.randint(
        torch.iinfo(dtype).min, torch.iinfo(dtype).max, size, dtype=dtype
    ),
    "numbers": lambda size, _: torch.arange(size[0]),
    "segments": lambda size, _: torch.arange(size[0]) // 512,
    "lengths": lambda size, _: 1000 + torch.arange(size[0]),
}


def tensors_of(arguments: Sequence[Any], types: str) -> list[Any]:
    """The arguments of a launch, with tensors on the GPU."""
    torch.manual_seed(0)
    kinds = [text.partition("/")[0] for text in types.split()]
    return [
        _tensor(value if isinstance(value, Of) else Of(value), DTYPES[kind[1:]])
        if kind.startswith("*")
        else value
        for value, kind in zip(arguments, kinds, strict=True)
    ]


def _tensor(spec: Of, dtype: torch.dtype) -> torch.Tensor:
    with torch.device("cuda"):
        if isinstance(spec, Out):
            return torch.zeros(spec.shape, dtype=dtype)
        if isinstance(spec.fill, int):
            if spec.fill < 0:
                return (torch.arange(spec.shape[0]) * -spec.fill).to(dtype)
            return torch.randint(0, spec.fill, spec.shape, dtype=dtype)
        fill = spec.fill
        if fill == "normal" and not dtype.is_floating_point:
            return torch.randint(0, 100, spec.shape, dtype=dtype)
        return FILLS[fill](spec.shape, dtype).to(dtype)


def digest(tensor: torch.Tensor) -> list[float]:
    """The 2-norm, and a random projection whose size is that of a difference of two tensors."""
    generator = torch.Generator("cuda").manual_seed(1)
    flat, squares, projection = tensor.reshape(-1), 0.0, 0.0
    for part in flat.split(CHUNK):
        values = part.float().nan_to_num(0.0, 1e4, -1e4).clamp(-1e4, 1e4).double()
        signs = torch.randint(0, 2, values.shape, device="cuda", generator=generator) * 2 - 1
        squares += float((values * values).sum())
        projection += float((values * signs).sum())
    return [squares**0.5, projection]
