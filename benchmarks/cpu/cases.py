"""The comparisons of `against_torch.py`, each with the limit of the machine for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from benchmarks.harness import Work
from benchmarks.kernels import memory_kernels as mk
from benchmarks.kernels import user_matmuls
from tilewright import kernels, next_power_of_2
from tilewright.kernels.elementwise import add_kernel
from tilewright.runtime import cdiv

Fn = Callable[[], object]

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
POWERS = (8, 10, 12, 14, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26)
TILES = (256, 1024, 4096, 65536)
ROWS = ((4096, 256), (4096, 781), (4096, 1024), (4096, 4096), (2048, 12672), (64, 1024))
MATMUL_SIZES = (64, 128, 256, 512, 1000, 1024, 2048, 4096)
USER_TILES = ((32, 32, 32), (64, 64, 32), (128, 128, 64), (128, 256, 64), (256, 128, 32))
TOLERANCE = {"fp32": 1e-5, "bf16": 1e-2, "fp16": 2e-3}


@dataclass(frozen=True)
class Comparison:
    """Contestants of one task, `torch` among them.

    work: bytes as GB, or operations as GFLOP; flow: the copy of `machine_limits` that moves data
    like it, or the type of its multiply-adds; bytes: of all its arrays; outputs: (result, expected)
    """

    name: str
    group: str
    contestants: Mapping[str, Fn]
    work: Work
    limit: str
    bytes: int
    outputs: Callable[[], tuple[torch.Tensor, torch.Tensor]]
    tolerance: float = 1e-5
    operations: float = 0.0
    parameters: Mapping[str, object] = field(default_factory=dict)

    def check(self) -> None:
        """Raise AssertionError if the first contestant's result is wrong."""
        next(iter(self.contestants.values()))()
        got, expected = self.outputs()
        scale = float(expected.abs().max()) or 1.0
        error = float((got.double() - expected.double()).abs().max()) / scale
        assert error <= self.tolerance, f"{self.name}: off by {error:.2g} of the largest number"


def _poisoned(like: torch.Tensor, *shape: int) -> torch.Tensor:
    return torch.full(shape or tuple(like.shape), float("nan"), dtype=like.dtype)


# --- memory-bound ---------------------------------------------------------------------------------


def elementwise_cases(quick: bool) -> Iterator[Comparison]:
    """Addition at every size and tile; scale and GELU at every size."""
    for name, dtype in DTYPES.items():
        for power in POWERS[:: 3 if quick else 1]:
            n = 1 << power
            x, y = torch.randn(n).to(dtype), torch.randn(n).to(dtype)
            for tile in TILES[1:2] if quick else TILES:
                yield _addition(name, x, y, tile)
            yield _one_operand("scale", name, x, mk.scale_kernel, (2.5,), torch.mul, (2.5,))
            yield _one_operand("gelu", name, x, mk.gelu_kernel, (), torch.ops.aten.gelu, ())


def _addition(name: str, x: torch.Tensor, y: torch.Tensor, tile: int) -> Comparison:
    n, out = x.numel(), _poisoned(x)
    grid, t_out = (cdiv(n, tile),), torch.empty_like(out)
    return Comparison(
        f"add 2^{n.bit_length() - 1} {name}, tile {tile}", "elementwise",
        {"tilewright": lambda: add_kernel[grid](x, y, out, n, BLOCK=tile),
         "torch": lambda: torch.add(x, y, out=t_out)},
        Work(3 * n * x.itemsize * 1e-9, "GB"), "triad", 3 * n * x.itemsize,
        lambda: (out, x.double() + y.double()), TOLERANCE[name], n,
    )  # fmt: skip


def _one_operand(
    what: str, name: str, x: torch.Tensor, kernel: Any, given: Sequence[float],
    function: Callable[..., object], passed: Sequence[float],
) -> Comparison:  # fmt: skip
    n, out, tile = x.numel(), _poisoned(x), 1024
    grid, t_out = (cdiv(n, tile),), torch.empty_like(out)
    exact = {"scale": lambda: x.double() * 2.5,
             "gelu": lambda: torch.nn.functional.gelu(x.double())}[what]  # fmt: skip
    return Comparison(
        f"{what} 2^{n.bit_length() - 1} {name}", "elementwise",
        {"tilewright": lambda: kernel[grid](x, out, *given, n, BLOCK=tile),
         "torch": lambda: function(x, *passed, out=t_out)},
        Work(2 * n * x.itemsize * 1e-9, "GB"), "copy", 2 * n * x.itemsize,
        lambda: (out, exact()), TOLERANCE[name], n * (1 if what == "scale" else 12),
    )  # fmt: skip


def row_cases(quick: bool) -> Iterator[Comparison]:
    """Softmax, norms, sums of rows, transposition and rotary embedding."""
    for name, dtype in DTYPES.items():
        for rows, columns in ROWS[1::3] if quick else ROWS:
            x = torch.randn(rows, columns).to(dtype)
            yield from _row_kernels(name, x)
    for name, dtype in DTYPES.items():
        for side in (256, 1024, 4096):
            x = torch.randn(side, side).to(dtype)
            out, t_out = _poisoned(x), torch.empty_like(x)
            yield Comparison(
                f"transpose {side}^2 {name}", "rows",
                {"tilewright": lambda x=x, out=out: kernels.transpose(x, out),
                 "torch": lambda x=x, t_out=t_out: t_out.copy_(x.t())},
                Work(2 * x.nbytes * 1e-9, "GB"), "copy", 2 * x.nbytes,
                lambda x=x, out=out: (out, x.t()), 0.0,
            )  # fmt: skip


def _row_kernels(name: str, x: torch.Tensor) -> Iterator[Comparison]:
    rows, columns = x.shape
    out, t_out, block = _poisoned(x), torch.empty_like(x), next_power_of_2(columns)
    weight, bias = torch.rand(columns).to(x.dtype), torch.rand(columns).to(x.dtype)
    sums, t_sums = _poisoned(x, rows), torch.empty(rows, dtype=x.dtype)
    half = columns // 2
    cos, sin = (torch.rand(rows, half).to(x.dtype) for _ in range(2))
    f = torch.nn.functional

    def rope() -> torch.Tensor:
        a, b = x[:, :half], x[:, half : 2 * half]
        torch.sub(a * cos, b * sin, out=t_out[:, :half])
        return torch.add(b * cos, a * sin, out=t_out[:, half : 2 * half])

    def rope_exact() -> torch.Tensor:
        a, b, c, s = (t.double() for t in (x[:, :half], x[:, half : 2 * half], cos, sin))
        return torch.cat([a * c - b * s, b * c + a * s], 1)

    grid, size = (rows,), x.nbytes
    table: list[tuple[str, Fn, Fn, str, int, Callable[[], tuple[Any, Any]]]] = [
        ("softmax", lambda: kernels.softmax(x, out), lambda: torch.softmax(x, -1, out=t_out),
         "copy", 2 * size, lambda: (out, torch.softmax(x.double(), -1))),
        ("layer norm", lambda: kernels.layer_norm(x, weight, bias, 1e-5, out),
         lambda: f.layer_norm(x, (columns,), weight, bias, 1e-5), "copy", 2 * size,
         lambda: (out, f.layer_norm(x.double(), (columns,), weight.double(), bias.double(), 1e-5))),
        ("rms norm",
         lambda: mk.rms_norm_kernel[grid](x, weight, out, columns, columns, 1e-5, BLOCK=block),
         lambda: f.rms_norm(x, (columns,), weight, 1e-5), "copy", 2 * size,
         lambda: (out, f.rms_norm(x.double(), (columns,), weight.double(), 1e-5))),
        ("row sum", lambda: mk.row_sum_kernel[grid](x, sums, columns, columns, BLOCK=block),
         lambda: torch.sum(x, 1, out=t_sums), "read", size,
         lambda: (sums, x.double().sum(1))),
        ("rope", lambda: mk.rope_kernel[grid](x, cos, sin, out, columns, half,
                                              BLOCK=next_power_of_2(half)),
         rope, "triad", 3 * size, lambda: (out[:, : 2 * half], rope_exact())),
    ]  # fmt: skip
    for what, ours, theirs, flow, moved, outputs in table:
        yield Comparison(
            f"{what} {rows}x{columns} {name}", "rows", {"tilewright": ours, "torch": theirs},
            Work(moved * 1e-9, "GB"), flow, moved, outputs, 4 * TOLERANCE[name], 4.0 * x.numel(),
        )  # fmt: skip


# --- bound by computation -------------------------------------------------------------------------

_MATH: dict[str, Callable[..., torch.Tensor]] = {
    "exp": torch.exp, "log": torch.log, "sin": torch.sin, "tanh": torch.tanh, "erf": torch.erf,
    "rsqrt": torch.rsqrt, "div": torch.div, "pow": torch.pow,
}  # fmt: skip


def math_cases(quick: bool) -> Iterator[Comparison]:
    """Functions of 2^16 numbers, which stay in the L2 cache."""
    n = 1 << 16
    x, y = torch.rand(n) * 4 + 0.1, torch.rand(n) * 3 + 0.1
    for what, function in _MATH.items():
        out, t_out = _poisoned(x), torch.empty_like(x)
        operands = (x, y) if what in ("div", "pow") else (x,)
        yield Comparison(
            f"{what} 2^16 fp32", "math",
            {"tilewright": lambda out=out, what=what: mk.math_kernel[(n // 1024,)](
                x, y, out, n, FUNCTION=what, BLOCK=1024),
             "torch": lambda f=function, o=operands, t=t_out: f(*o, out=t)},
            Work((1 + len(operands)) * x.nbytes * 1e-9, "GB"),
            "copy" if len(operands) == 1 else "triad", (1 + len(operands)) * x.nbytes,
            lambda out=out, f=function, o=operands: (out, f(*(t.double() for t in o))), 1e-6, n,
        )  # fmt: skip


def matmul_cases(quick: bool) -> Iterator[Comparison]:
    """Products of square matrices, by the library's kernel and by the tutorial's with wraps."""
    sizes = MATMUL_SIZES[1:6:2] if quick else MATMUL_SIZES
    for name, dtype in {**DTYPES, "fp64": torch.float64}.items():
        for size in sizes:
            for major in ("row", "column"):
                a, b = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
                yield _product(name, size, a, b if major == "row" else b.t(), major, quick)
    for size in sizes:
        a = torch.randint(-100, 100, (size, size), dtype=torch.int8)
        yield _product("int8", size, a, a.clone(), "row", quick)


_PEAKS = {"bf16": ("bf16 tiles", "bf16 dot", "fp32"), "int8": ("int8 tiles", "int8 dot", "fp32"),
          "fp16": ("fp16", "fp32"), "fp32": ("fp32",), "fp64": ("fp64",)}  # fmt: skip


def _product(
    name: str, size: int, a: torch.Tensor, b: torch.Tensor, major: str, quick: bool
) -> Comparison:
    summed = torch.int32 if name == "int8" else a.dtype
    out = torch.full((size, size), -1 if name == "int8" else float("nan"), dtype=summed)
    t_out = torch.empty(size, size, dtype=summed)

    def tutorial(m: int, n: int, k: int) -> Fn:
        grid = (cdiv(size, m) * cdiv(size, n),)
        # one by one: to unpack them took a tenth of a launch of 64^3
        (am, ak), (bk, bn), (cm, cn) = a.stride(), b.stride(), out.stride()
        return lambda: user_matmuls.matmul_kernel[grid](
            a, b, out, size, size, size, am, ak, bk, bn, cm, cn,
            BLOCK_M=m, BLOCK_N=n, BLOCK_K=k, GROUP_M=8, INTEGER=name == "int8",
        )  # fmt: skip

    multiply = vars(torch)["_int_mm"] if name == "int8" else torch.mm
    tiles = USER_TILES[1:3] if quick else USER_TILES
    if name == "fp64":  # which the tutorial does not sum
        tiles = ()
    return Comparison(
        f"matmul {size}^3 {name}, b {major}-major", "matmul",
        {"tilewright": lambda: kernels.matmul(a, b, out=out),
         **{f"tutorial {m}x{n}x{k}": tutorial(m, n, k) for m, n, k in tiles},
         "torch": lambda: multiply(a, b, out=t_out)},
        Work(2 * size**3 * 1e-9, "GFLOP"), name, a.nbytes + b.nbytes + out.nbytes,
        lambda: (out, a.double() @ b.double()), TOLERANCE.get(name, 1e-6), 2.0 * size**3,
    )  # fmt: skip


def attention_cases(quick: bool) -> Iterator[Comparison]:
    """Attention forward, 8 heads of 64 numbers, beside torch's."""
    attend = torch.nn.functional.scaled_dot_product_attention
    for length in (1024,) if quick else (1024, 2048, 4096):
        q, k, v = torch.randn(3, 1, 8, length, 64).unbind()
        out, operations = _poisoned(q), 4.0 * q.numel() * length
        for causal in (False, True):
            share = 0.5 if causal else 1.0
            yield Comparison(
                f"attention {length} D64 fp32 {'causal' if causal else 'full'}", "attention",
                {"tilewright": partial(kernels.attention, q, k, v, causal, out=out),
                 "torch": partial(attend, q, k, v, is_causal=causal)},
                Work(share * operations * 1e-9, "GFLOP"), "fp32", 4 * q.nbytes,
                lambda c=causal, q=q, k=k, v=v, out=out: (
                    out, attend(q.double(), k.double(), v.double(), is_causal=c)),
                1e-5, share * operations,
            )  # fmt: skip


def peak_names(comparison: Comparison) -> tuple[str, ...]:
    """The limits of a product, the best first; none for what memory bounds."""
    return _PEAKS.get(comparison.limit, ())


GROUPS = {
    "elementwise": elementwise_cases,
    "rows": row_cases,
    "math": math_cases,
    "matmul": matmul_cases,
    "attention": attention_cases,
}
