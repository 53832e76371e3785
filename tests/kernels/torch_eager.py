"""Eager as a reference of programs of torch."""

# pyright: reportMissingImports=false

import torch

_FUNCTIONS = (
    "acos asin atan cos cosh erf erfc erfinv exp expm1 lgamma log log10 log1p log2 sin sinh sqrt "
    "tan tanh"
)


def settle_eager() -> None:
    """Calls functions that PyTorch has of oneMKL once in one thread.

    oneMKL 2024 chooses the code of each at its first call. Where two threads make that call at
    once, one of them may compute its half of the tensor with half of the digits: sin is 1.5e-4 off
    (https://github.com/pytorch/pytorch/issues/188792).
    """
    for dtype in (torch.float32, torch.float64):
        one = torch.full((1,), 0.5, dtype=dtype)
        for name in _FUNCTIONS.split():
            getattr(torch, name)(one)
