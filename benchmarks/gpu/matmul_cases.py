"""Matrix multiplications with their operands, contestants and goals, for `matmul.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from benchmarks.gpu.tuned_cases import Call, Config, Contestant, Sides

PLAIN, TURNED_B, TURNED_A = "", " B [N,K]", " A [K,M]"
LAYOUTS = (PLAIN, TURNED_B, TURNED_A)
"""How the operands lie in memory: A [M,K] and B [K,N], B stored [N,K], A stored [K,M]."""


def _tiles(m: int, n: int, k: int, warps: int, stages: int, group: int = 8) -> Config:
    return {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": group,
            "num_warps": warps, "num_stages": stages}  # fmt: skip


LARGE = (
    _tiles(128, 256, 64, 8, 4), _tiles(128, 256, 64, 8, 3), _tiles(256, 128, 64, 8, 3),
    _tiles(128, 128, 64, 8, 4), _tiles(128, 128, 64, 4, 4), _tiles(64, 256, 64, 4, 4),
)  # fmt: skip
SMALL = (
    _tiles(128, 128, 64, 8, 4), _tiles(128, 128, 64, 4, 4), _tiles(64, 128, 64, 4, 4),
    _tiles(128, 64, 64, 4, 5), _tiles(64, 64, 64, 4, 5), _tiles(64, 64, 128, 4, 4),
    _tiles(64, 64, 256, 4, 3), _tiles(64, 128, 128, 4, 3), _tiles(128, 64, 128, 4, 3),
)  # fmt: skip
FLAT = (
    _tiles(16, 64, 128, 4, 5), _tiles(16, 32, 256, 4, 4), _tiles(16, 64, 256, 4, 4),
    _tiles(64, 64, 128, 4, 5), _tiles(16, 128, 128, 4, 4),
)  # fmt: skip
"""For products of few rows, which read B once: many programs with many bytes under way."""


def scaled(configs: Sequence[Config], item_bytes: int) -> tuple[Config, ...]:
    """The same bytes along K for elements of another size than two bytes."""
    return tuple({**c, "BLOCK_K": c["BLOCK_K"] * 2 // item_bytes} for c in configs)


def launch(kernel: Any, a: Any, b: Any, c: Any, config: Config, *between: Any, **more: Any) -> Call:
    """A call of a kernel of one product; `between` are its pointers before c's."""
    (m, k), n = a.shape, b.shape[1]
    grid = (-(-m // config["BLOCK_M"]) * -(-n // config["BLOCK_N"]),)
    args = (a, b, *between, c, m, n, k, *a.stride(), *b.stride(), *c.stride())
    return lambda: kernel[grid](*args, **config, **more)


@dataclass(frozen=True)
class Product:
    """A product of (m, k) by (k, n). kind: of the operands, among KINDS.

    goals: least speed over torch's, by contestant; shares: least speed of one contestant over
    another's
    """

    m: int
    n: int
    k: int
    kind: str
    layouts: Sequence[str] = LAYOUTS
    configs: Sequence[Config] = LARGE
    goals: Mapping[str, float] = field(default_factory=dict[str, float])
    shares: Mapping[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    baseline: str = "torch"

    @property
    def facts(self) -> str:
        return f"{self.kind} {[e % 16 for e in (self.m, self.n, self.k)]}"

    @property
    def name(self) -> str:
        size = f"{self.m}^3" if self.m == self.n == self.k else f"{self.m}x{self.n}x{self.k}"
        return f"{self.kind} {size}"

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k

    @property
    def bytes_moved(self) -> float:
        return 2.0 * (self.m * self.k + self.k * self.n + self.m * self.n)

    def smaller(self, divisor: int) -> Product:
        """The same with extents that are about as many times smaller, for a run on a CPU."""
        extents = (self.m, self.n, self.k)
        # the same remainders, on which compilations depend
        m, n, k = (max(1, e // divisor // 16) * 16 + e % 16 for e in extents)
        return Product(m, n, k, self.kind, self.layouts, self.configs, self.goals, self.shares)

    def contestants(self, sides: Sides) -> Iterator[Contestant]:
        """Everybody who takes part, over the same operands in all layouts."""
        yield from KINDS[self.kind](Operands(self, sides.device), sides, self)


class Operands:
    """Random normal matrices of a product, each in the layouts asked for."""

    def __init__(self, product: Product, device: str) -> None:
        import torch

        torch.manual_seed(product.m + product.k)
        self.device, self.torch = device, torch
        self.a = torch.randn(product.m, product.k, device=device)
        self.b = torch.randn(product.k, product.n, device=device)

    def of(self, dtype: Any, layout: str = PLAIN, spread: float = 1.0) -> tuple[Any, Any]:
        """Both as `dtype`; spread: what they are multiplied by, and integers clipped after."""
        a, b = (self._cast(x * spread, dtype) for x in (self.a, self.b))
        if layout == TURNED_B:
            b = b.t().contiguous().t()
        return (a.t().contiguous().t() if layout == TURNED_A else a), b

    def _cast(self, x: Any, dtype: Any) -> Any:
        return x.round().clamp(-127, 127).to(dtype) if dtype == self.torch.int8 else x.to(dtype)

    @cached_property
    def empty(self) -> Callable[[Any], Any]:
        """A new output of some dtype."""
        shape = self.a.shape[0], self.b.shape[1]
        return lambda dtype: self.torch.empty(shape, dtype=dtype, device=self.device)


def exact(a: Any, b: Any) -> Any:
    """The product in float64."""
    return a.double() @ b.double()


def _ready_made(
    name: str, a: Any, b: Any, out: Any, reference: Any, error: float, **epilogue: Any
) -> Contestant:
    from tilewright import kernels

    def call() -> None:
        kernels.matmul(a, b, out=out, **epilogue)

    return Contestant(f"ready-made{name}", {"": call}, [out], [reference], error)


def _floats(operands: Operands, sides: Sides, product: Product) -> Iterator[Contestant]:
    """torch.mm, the tutorial's kernel under both compilers and the ready-made one, by layout."""
    torch = operands.torch
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32}[product.kind]
    error = 5e-3 if product.kind == "bf16" else 1e-3
    reference = exact(*operands.of(dtype))

    def mm(a: Any, b: Any, out: Any) -> Call:
        return lambda: torch.mm(a, b, out=out)

    for layout in product.layouts:
        a, b = operands.of(dtype, layout)
        out = operands.empty(dtype)
        yield Contestant(f"torch{layout}", {"": mm(a, b, out)}, [out], [reference], error)
        yield from _tutorial(sides, layout, product.configs, a, b, out.clone(), reference, error)
        yield _ready_made(layout, a, b, out.clone(), reference, error)


def _tutorial(sides: Sides, name: str, configs: Sequence[Config], a: Any, b: Any, out: Any,
              reference: Any, error: float) -> Iterator[Contestant]:  # fmt: skip
    def call(kernel: Any, config: Config) -> Call:
        return launch(kernel, a, b, out, config, INTEGER=not out.is_floating_point())

    yield from sides.twins(
        name, "matmul_kernel", configs, call, out=[out], reference=[reference], error=error
    )


def _fused(operands: Operands, sides: Sides, product: Product) -> Iterator[Contestant]:
    """The plain product of both; then bias and leaky ReLU, in one kernel and by torch."""
    torch = operands.torch
    a, b = operands.of(torch.float16)
    bias = operands.b[0].half() * 30
    out, reference = operands.empty(torch.float16), exact(a, b)
    yield Contestant("torch", {"": lambda: torch.mm(a, b, out=out)}, [out], [reference], 1e-3)
    yield from _tutorial(sides, " plain", product.configs, a, b, out.clone(), reference, 1e-3)
    biased = torch.nn.functional.leaky_relu(reference + bias.double(), 0.01)
    several, fused = out.clone(), out.clone()

    def in_steps() -> None:
        torch.addmm(bias, a, b, out=several)
        torch.nn.functional.leaky_relu_(several, 0.01)

    yield Contestant("torch fused", {"": in_steps}, [several], [biased], 1e-3)
    yield from sides.twins(
        " fused", "fused_matmul_kernel", product.configs,
        lambda kernel, config: launch(kernel, a, b, fused, config, bias),
        out=[fused], reference=[biased], error=1e-3,
    )  # fmt: skip
    yield _ready_made(" fused", a, b, out.clone(), biased, 1e-3, bias=bias, slope=0.01)


def _fp8(operands: Operands, sides: Sides, product: Product) -> Iterator[Contestant]:
    """Beside torch._scaled_mm, which wants B stored [N,K], as the instruction does."""
    torch = operands.torch
    a, b = operands.of(torch.float8_e4m3fn, TURNED_B)
    reference = exact(a, b)
    one = torch.ones((), device=operands.device)
    out = operands.empty(torch.bfloat16)

    def theirs() -> None:
        torch._scaled_mm(
            a, b, one, one, out_dtype=torch.bfloat16, use_fast_accum=True, out=out
        )  # fmt: skip

    configs = scaled(product.configs, 1)
    yield Contestant("torch", {"": theirs}, [out], [reference], 2e-2)
    yield from _tutorial(sides, "", configs, a, b, out.clone(), reference, 2e-2)
    yield _ready_made("", a, b, out.clone(), reference, 2e-2)


def _int8(operands: Operands, sides: Sides, product: Product) -> Iterator[Contestant]:
    """Beside torch's product of fp16 and its _int_mm, and our own of fp16; B stored [N,K]."""
    torch = operands.torch
    a, b = operands.of(torch.int8, TURNED_B, spread=40)
    reference, out = exact(a, b), operands.empty(torch.int32)
    yield from _fp16_beside(operands, sides, product, TURNED_B)
    yield Contestant(
        "torch._int_mm", {"": lambda: torch._int_mm(a, b, out=out)}, [out], [reference], 0.0
    )
    configs = scaled(product.configs, 1)
    yield from _tutorial(sides, "", configs, a, b, out.clone(), reference, 0.0)
    yield _ready_made("", a, b, out.clone(), reference, 0.0)


def _fp16_beside(
    operands: Operands, sides: Sides, product: Product, layout: str
) -> Iterator[Contestant]:
    """Products of fp16 to compare others with: torch's, and the tutorial's kernel."""
    torch = operands.torch
    a, b = operands.of(torch.float16, layout)
    out, reference = operands.empty(torch.float16), exact(a, b)
    yield Contestant("torch", {"": lambda: torch.mm(a, b, out=out)}, [out], [reference], 1e-3)
    yield from _tutorial(sides, " fp16", product.configs, a, b, out.clone(), reference, 1e-3)


def _weights(operands: Operands, sides: Sides, product: Product) -> Iterator[Contestant]:
    """fp16 times int8 weights with a scale for each column, beside products of fp16."""
    torch = operands.torch
    yield from _fp16_beside(operands, sides, product, PLAIN)
    a, b = operands.of(torch.float16)[0], operands.of(torch.int8, spread=40)[1]
    scale = operands.b[0].abs().half() * 0.03
    out, reference = operands.empty(torch.float16), exact(a, b) * scale.double()
    yield from sides.twins(
        "", "weights_matmul_kernel", product.configs,
        lambda kernel, config: launch(kernel, a, b, out, config, scale),
        out=[out], reference=[reference], error=1e-3,
    )  # fmt: skip
    ready = out.clone()

    def quantized() -> None:
        from tilewright import kernels

        kernels.quantized_matmul(a, b, scale, out=ready)

    yield Contestant("ready-made", {"": quantized}, [ready], [reference], 1e-3)


KINDS: Mapping[str, Callable[[Operands, Sides, Product], Iterator[Contestant]]] = {
    "fp16": _floats, "bf16": _floats, "tf32": _floats, "fused": _fused, "fp8": _fp8, "int8": _int8,
    "fp16 x int8": _weights,
}  # fmt: skip


# --- grouped --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grouped:
    """Products of several shapes in one launch, beside a loop of torch.mm."""

    shapes: Sequence[tuple[int, int, int]]
    configs: Sequence[Config]
    goals: Mapping[str, float]
    shares: Mapping[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    baseline: str = "torch"
    facts: str = "grouped"

    @property
    def name(self) -> str:
        return f"grouped {len(self.shapes)} mixed"

    @property
    def flops(self) -> float:
        return sum(2.0 * m * n * k for m, n, k in self.shapes)

    @property
    def bytes_moved(self) -> float:
        return sum(2.0 * (m * k + k * n + m * n) for m, n, k in self.shapes)

    def smaller(self, divisor: int) -> Grouped:
        """The same with smaller extents, for a run on a CPU."""
        shapes = [
            (max(16, m // divisor), max(16, n // divisor), max(16, k // divisor))
            for m, n, k in self.shapes
        ]
        return Grouped(shapes, self.configs, self.goals)

    def contestants(self, sides: Sides) -> Iterator[Contestant]:
        """Everybody who takes part."""
        import torch

        torch.manual_seed(0)

        def random(*shape: int) -> Any:
            return torch.randn(*shape, device=sides.device).half()

        a, b = [random(m, k) for m, _, k in self.shapes], [random(k, n) for _, n, k in self.shapes]
        reference = [exact(x, y) for x, y in zip(a, b, strict=True)]
        outs = [[x.half() for x in reference] for _ in range(3)]

        def loop() -> None:
            for x, y, out in zip(a, b, outs[0], strict=True):
                torch.mm(x, y, out=out)

        pointers = [torch.tensor([x.data_ptr() for x in xs], device=sides.device)
                    for xs in (a, b, outs[1])]  # fmt: skip
        sizes = torch.tensor(self.shapes, dtype=torch.int32, device=sides.device)

        def call(kernel: Any, config: Config) -> Call:
            words = {name: value for name, value in config.items() if name != "GROUP_M"}
            programs = 132 * (8 // config["num_warps"] if config["BLOCK_N"] <= 128 else 1)
            return lambda: kernel[(programs,)](
                *pointers, sizes, len(self.shapes), PROGRAMS=programs, **words
            )

        yield Contestant("torch", {"": loop}, outs[0], reference, 1e-3)
        yield from sides.twins(
            "", "grouped_matmul_kernel", self.configs, call, out=outs[1], reference=reference,
            error=1e-3,
        )  # fmt: skip

        def ready() -> None:
            from tilewright import kernels

            kernels.grouped_matmul(a, b, outs[2])

        yield Contestant("ready-made", {"": ready}, outs[2], reference, 1e-3)


MIXED = [
    (m, *nk)
    for m, nk in zip(
        (128, 256, 384, 512, 640, 768, 1024, 1536, 2048, 96, 200, 3072, 512, 64, 1280, 900),
        ((2048, 1024), (4096, 2048), (1024, 4096), (2048, 2048)) * 4,
        strict=True,
    )  # fmt: skip
]
"""M, N and K of 16 products."""


# --- the list -------------------------------------------------------------------------------------


def _speed(goal: float) -> dict[str, float]:
    return {"tilewright": goal}


_SAME_IN_ALL = {("tilewright" + turned, "tilewright"): 0.97 for turned in (TURNED_B, TURNED_A)}


def cases() -> list[Product | Grouped]:
    """Every case, those of the same compilations together."""
    found: list[Product | Grouped] = []
    for kind in ("fp16", "bf16"):
        for size in ((4096,) * 3, (8192,) * 3, (16384,) * 3, (8192, 1024, 8192), (2048,) * 3,
                     (4096, 4096, 512)):  # fmt: skip
            found.append(Product(*size, kind, goals=_speed(0.97), shares=_SAME_IN_ALL))
        for side in (1024, 512):
            found.append(
                Product(side, side, side, kind, configs=SMALL, goals=_speed(0.9),
                        shares=_SAME_IN_ALL)
            )  # fmt: skip
    odd = {"layouts": (PLAIN, TURNED_B), "goals": _speed(1.0)}
    found += [
        Product(1000, 1000, 1000, "fp16", configs=SMALL, **odd),
        Product(4095, 4097, 4104, "fp16", **odd),
        Product(16, 8192, 8192, "fp16", configs=FLAT, **odd),
    ]
    kept = {("tilewright fused", "tilewright plain"): 1 / 1.03}
    found += [Product(*(n,) * 3, "fused", shares=kept) for n in (4096, 8192)]
    found += [
        Product(*(8192,) * 3, "fp8", goals=_speed(1.0)),
        Product(*(8192,) * 3, "int8", shares={("tilewright", "tilewright fp16"): 1.3}),
        Product(*(8192,) * 3, "fp16 x int8", shares={("tilewright", "tilewright fp16"): 0.9}),
    ]
    for side in (4096, 8192):
        found.append(
            Product(side, side, side, "tf32", layouts=(PLAIN, TURNED_B),
                    configs=scaled(LARGE, 4), goals=_speed(1.0))
        )  # fmt: skip
    grouped = (_tiles(128, 256, 64, 8, 3), _tiles(128, 128, 64, 8, 4), _tiles(128, 128, 64, 4, 3),
               _tiles(64, 128, 64, 4, 4))  # fmt: skip
    return [*found, Grouped(MIXED, grouped, _speed(1.0))]
