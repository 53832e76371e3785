"""The cases of `attention.py`: attention, its gradients, decoding, and other chains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from benchmarks.gpu.tuned_cases import Call, Config, Contestant, Sides, label

TOKENS = 16384
WIDTH = 2048
"""Of all heads together."""

Goals = Mapping[str, float]
Shares = Mapping[tuple[str, str], float]


def _tiles(*tiles: tuple[int, int, int, int]) -> tuple[Config, ...]:
    names = "BLOCK_M", "BLOCK_N", "num_warps", "num_stages"
    return tuple(dict(zip(names, tile, strict=True)) for tile in tiles)


FORWARD = {
    64: _tiles((128, 128, 8, 2), (64, 128, 4, 2), (128, 64, 4, 3)),
    96: _tiles((128, 128, 8, 2), (64, 128, 4, 2)),
    128: _tiles((128, 128, 8, 2), (128, 64, 8, 3), (128, 64, 4, 3)),
    256: _tiles((128, 64, 8, 2), (64, 64, 4, 2)),
}
BACKWARD = {
    64: _tiles((64, 128, 4, 2), (64, 64, 4, 2), (64, 128, 8, 2), (32, 128, 4, 3)),
    128: _tiles((64, 128, 8, 2), (64, 64, 8, 2), (32, 128, 8, 2), (32, 128, 4, 3)),
}
"""Of the keys' gradients; the queries' have the extents the other way round."""

CHAINS = _tiles((128, 128, 8, 2), (128, 64, 8, 3), (64, 128, 4, 2), (128, 64, 4, 3))
CHUNKS = _tiles((64, 64, 4, 2), (128, 128, 8, 2), (64, 64, 8, 2), (128, 128, 4, 2))


@dataclass(frozen=True)
class Attention:
    """One pass over TOKENS tokens in sequences of `length`, with heads of WIDTH numbers in all.

    task: among TASKS; goals, shares: as of `matmul_cases.Product`; value: size of a row of values,
    `head` unless given
    """

    task: str
    kind: str
    head: int
    length: int
    causal: bool = False
    goals: Goals = field(default_factory=dict[str, float])
    shares: Shares = field(default_factory=dict[tuple[str, str], float])
    tokens: int = TOKENS
    baseline: str = "cuDNN"
    value: int = 0

    @property
    def name(self) -> str:
        mask = "causal" if self.causal else "full"
        sizes = f"{self.head}/{self.value}" if self.value else f"{self.head}"
        return f"{self.task} {self.kind} D{sizes} {mask} {self.length}"

    @property
    def facts(self) -> str:
        return f"{self.task} {self.kind} {self.head} {self.value} {self.causal}"

    @property
    def heads(self) -> int:
        """With values of WIDTH numbers in all."""
        return WIDTH // (self.value or self.head)

    @property
    def flops(self) -> float:
        of_keys, of_values = (3, 2) if self.task == "backward" else (1, 1)
        share = 0.5 if self.causal else 1.0
        numbers = self.heads * (of_keys * self.head + of_values * (self.value or self.head))
        return 2.0 * self.tokens * self.length * numbers * share

    @property
    def bytes_moved(self) -> float:
        return 8.0 * self.tokens * WIDTH

    def smaller(self, divisor: int) -> Attention:
        """The same of fewer tokens, for a run on a CPU."""
        tokens = max(256, self.tokens // divisor)
        return replace(self, tokens=tokens, length=min(self.length, tokens // 2))

    def contestants(self, sides: Sides) -> Iterator[Contestant]:
        """Everybody who takes part."""
        yield from TASKS[self.task](self, Rows(self, sides.device), sides)


class Rows:
    """Random queries, keys, values and gradients (batch, heads, length, head size)."""

    def __init__(self, case: Attention, device: str) -> None:
        import torch

        torch.manual_seed(case.length + case.head)
        kinds = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}
        self.case, self.torch, self.dtype = case, torch, kinds[case.kind]
        shape, value = (
            (case.tokens // case.length, case.heads, case.length),
            case.value or case.head,
        )
        self.q, self.k, self.v, self.grad = (
            torch.randn(*shape, size, device=device).to(self.dtype)
            for size in (case.head, case.head, value, value)
        )
        self.error = {"fp16": 2e-3, "bf16": 1.5e-2, "fp8": 8e-2}[case.kind]

    def exact(self, gradients: bool = False) -> list[Any]:
        """The result, or the gradients of q, k and v, computed in float64 head by head."""
        of_heads = [
            _exact_head(self.case, gradients, *(x.double() for x in rows))
            for rows in zip(
                *(x.flatten(0, 1) for x in (self.q, self.k, self.v, self.grad)), strict=True
            )
        ]
        outer = self.q.shape[:2]
        return [self.torch.stack(x).unflatten(0, outer) for x in zip(*of_heads, strict=True)]

    def sdpa(self, backend: str, q: Any, k: Any, v: Any) -> Any:
        """torch's, by one of its back ends; by any of them on the CPU."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        # an enumeration of pybind, which has no subscripts
        name = f"{backend.upper()}_ATTENTION" if q.is_cuda else "MATH"
        chosen = getattr(SDPBackend, name)
        with sdpa_kernel(chosen):
            return self.torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=self.case.causal
            )


def _exact_head(case: Attention, gradients: bool, q: Any, k: Any, v: Any, grad: Any) -> list[Any]:
    scale = case.head**-0.5
    scores = q @ k.T
    scores *= scale
    if case.causal:
        import torch

        hidden = torch.ones(scores.shape, dtype=torch.bool, device=q.device).triu_(1)
        scores.masked_fill_(hidden, -float("inf"))
    weights = scores.softmax(-1)
    if not gradients:
        return [(weights @ v).float()]
    change = grad @ v.T
    change -= (grad * (weights @ v)).sum(-1, keepdim=True)
    change *= weights
    return [x.float() for x in (change @ k * scale, change.T @ q * scale, weights.T @ grad)]


BACKENDS = {"cuDNN": "cudnn", "flash": "flash"}


def _forward(case: Attention, rows: Rows, sides: Sides) -> Iterator[Contestant]:
    q, k, v, reference = rows.q, rows.k, rows.v, rows.exact()
    for name, backend in BACKENDS.items():
        call = _returning(rows.sdpa, backend, q, k, v)
        yield Contestant(name, {"": call}, [], reference, rows.error)
    yield _ready_made("ready-made", rows, reference)
    yield _ready_made("by descriptors", rows, reference)
    if case.value:
        return
    out = rows.torch.empty_like(q)

    def textbook(kernel: Any, config: Config) -> Call:
        grid = -(-case.length // config["BLOCK_M"]), q.shape[0] * q.shape[1]
        rest = *q.stride()[1:3], case.length, case.head**-0.5
        return lambda: kernel[grid](
            q, k, v, out, *rest, HEAD=case.head, CAUSAL=case.causal, **config
        )

    yield from sides.twins("", "attention_kernel", FORWARD[case.head], textbook,
                           out=[out], reference=reference, error=rows.error)  # fmt: skip


def _returning(function: Callable[..., Any], *args: Any) -> Call:
    return lambda: [function(*args)]


def _ready_made(name: str, rows: Rows, reference: Sequence[Any]) -> Contestant:
    from tilewright import kernels

    kernel = kernels.attention_by_descriptors if name == "by descriptors" else kernels.attention
    call = _returning(kernel, rows.q, rows.k, rows.v, rows.case.causal)
    return Contestant(name, {"": call}, [], reference, rows.error)


def _fp8(case: Attention, rows: Rows, sides: Sides) -> Iterator[Contestant]:
    """Beside ourselves with elements of fp16, the baseline."""
    wide = Rows(replace(case, kind="fp16"), sides.device)
    yield _ready_made("fp16", wide, wide.exact())
    yield _ready_made("ready-made", rows, rows.exact())


def _backward(case: Attention, rows: Rows, sides: Sides) -> Iterator[Contestant]:
    torch, reference, error = rows.torch, rows.exact(gradients=True), 5 * rows.error
    leaves = [x.detach().clone().requires_grad_() for x in (rows.q, rows.k, rows.v)]
    for name, backend in BACKENDS.items():
        # computed by the first call: a back end that has no kernel for these heads says so there
        forward = cache(partial(rows.sdpa, backend, *leaves))

        def call(forward: Call = forward) -> Any:
            return torch.autograd.grad(forward(), leaves, rows.grad, retain_graph=True)

        yield Contestant(name, {"": call}, [], reference, error)
    from tilewright import kernels

    q, k, v, grad = rows.q, rows.k, rows.v, rows.grad
    lse = torch.empty(q.shape[:3], device=q.device)
    out = kernels.attention(q, k, v, case.causal, lse=lse)
    args = grad, q, k, v, out, lse, case.causal
    yield Contestant(
        "ready-made", {"": lambda: kernels.attention_backward(*args)}, [], reference, error
    )
    if case.head not in BACKWARD:
        return
    results, products = [torch.empty_like(q) for _ in range(3)], torch.empty_like(lse)

    def textbook(kernels: Mapping[str, Any], config: Config) -> Call:
        return _textbook_backward(kernels, config, case, (q, k, v, grad, out, lse, products),
                                  results)  # fmt: skip

    for side, of_side in sides.kernels.items():
        candidates = {label(c): textbook(of_side, c) for c in BACKWARD[case.head]}
        yield Contestant(side, candidates, results, reference, error)


def _textbook_backward(
    kernels: Mapping[str, Any], config: Config, case: Attention, arrays: Sequence[Any],
    results: Sequence[Any],
) -> Call:  # fmt: skip
    q, k, v, grad, out, lse, products = arrays
    dq, dk, dv = results
    heads = q.shape[0] * q.shape[1]
    words = {**config, "HEAD": case.head, "CAUSAL": case.causal}
    turned = {**words, "BLOCK_M": config["BLOCK_N"], "BLOCK_N": config["BLOCK_M"]}
    blocks = -(-case.length // config["BLOCK_N"])
    rest = *q.stride()[1:3], case.length, case.head**-0.5

    def call() -> None:
        kernels["row_products_kernel"][(heads * case.length // 64,)](
            out, grad, products, BLOCK=64, HEAD=case.head
        )
        shared = q, k, v, grad, lse, products
        kernels["keys_gradient_kernel"][(blocks, heads)](*shared, dk, dv, *rest, **words)
        kernels["queries_gradient_kernel"][(blocks, heads)](*shared, dq, *rest, **turned)

    return call


TASKS: Mapping[str, Callable[[Attention, Rows, Sides], Iterator[Contestant]]] = {
    "forward": _forward, "backward": _backward, "fp8 forward": _fp8,
}  # fmt: skip


# --- decoding -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Decode:
    """One query for each sequence, over keys in rows or in pages, beside a copy of the bytes."""

    batch: int = 32
    heads: int = 32
    of_keys: int = 8
    length: int = 16384
    head: int = 128
    page: int = 64
    baseline: str = "copy"
    facts: str = "decode"
    shares: Shares = field(default_factory=dict[tuple[str, str], float])

    @property
    def name(self) -> str:
        return f"decode {self.batch}x{self.of_keys}({self.heads})x{self.length} D{self.head}"

    @property
    def goals(self) -> Goals:
        return {"rows": 0.9, "pages": 0.9}

    @property
    def flops(self) -> float:
        return 4.0 * self.batch * self.heads * self.length * self.head

    @property
    def bytes_moved(self) -> float:
        return 4.0 * self.batch * self.of_keys * self.length * self.head

    def smaller(self, divisor: int) -> Decode:
        """The same of shorter sequences."""
        return replace(self, batch=2, length=max(256, self.length // divisor))

    def contestants(self, sides: Sides) -> Iterator[Contestant]:
        """torch's copy; our kernels, whose keys lie in rows, and in shuffled pages."""
        import torch

        from tilewright.kernels.attention_decode import attention_decode

        torch.manual_seed(0)
        q = torch.randn(self.batch, self.heads, self.head, device=sides.device).half()
        shape = self.batch, self.of_keys, self.length, self.head
        k, v = (torch.randn(shape, device=sides.device, dtype=torch.float16) for _ in "kv")
        lengths = torch.full((self.batch,), self.length, device=q.device, dtype=torch.int32)
        order = torch.randperm(self.batch * self.length // self.page, device=q.device)
        pages = order.to(torch.int32).reshape(self.batch, -1)
        paged = [self._paged(x, order) for x in (k, v)]
        reference = [_exact_decoded(q, k, v)]
        # half the bytes are read, half are written
        source = torch.ones(int(self.bytes_moved) // 8, device=q.device)
        target = torch.empty_like(source)
        yield Contestant("copy", {"": lambda: target.copy_(source)}, [target], [source], 0.0)
        calls = {"rows": _returning(attention_decode, q, k, v, lengths),
                 "pages": _returning(attention_decode, q, *paged, lengths, pages)}  # fmt: skip
        for name, call in calls.items():
            yield Contestant(name, {"": call}, [], reference, 2e-3)

    def _paged(self, x: Any, order: Any) -> Any:
        """(pages, rows of a page, heads, size): page i of all sequences lies at order[i]."""
        found = x.transpose(1, 2).reshape(-1, self.page, self.of_keys, self.head)
        placed = found.new_empty(found.shape)
        placed[order] = found
        return placed


def _exact_decoded(q: Any, k: Any, v: Any) -> Any:
    shared = q.shape[1] // k.shape[1]
    results = []
    for of_q, of_k, of_v in zip(q, k, v, strict=True):
        grouped = of_q.reshape(k.shape[1], shared, -1).double()
        scores = grouped @ of_k.double().transpose(1, 2) * q.shape[-1] ** -0.5
        results.append((scores.softmax(-1) @ of_v.double()).reshape(of_q.shape))
    import torch

    return torch.stack(results)


# --- other chains ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chain:
    """A kernel of `user_chains.py`: scheduled, in one stage ("one stage"), and by Triton; the
    baseline is torch in float16, operation by operation."""

    task: str
    rows: int = 8192
    n: int = 8192
    width: int = 128
    baseline: str = "torch"
    goals: Goals = field(default_factory=dict[str, float])

    @property
    def name(self) -> str:
        return f"chain {self.task} {self.rows}x{self.n}x{self.width}"

    @property
    def facts(self) -> str:
        return f"chain {self.task}"

    @property
    def shares(self) -> Shares:
        return {("tilewright", "tilewright one stage"): 1.0, ("tilewright", "triton"): 1.0}

    @property
    def flops(self) -> float:
        products = 1 if self.task == "log sum" else 2
        return 2.0 * products * self.rows * self.n * self.width

    @property
    def bytes_moved(self) -> float:
        return 4.0 * (self.rows + self.n) * self.width

    def smaller(self, divisor: int) -> Chain:
        """The same of fewer rows."""
        return replace(self, rows=max(128, self.rows // divisor), n=max(128, self.n // divisor))

    def contestants(self, sides: Sides) -> Iterator[Contestant]:
        """Everybody who takes part."""
        operands, results, in_torch, configs = CHAIN_TASKS[self.task](self, sides.device)
        out = results[0].new_empty(results[0].shape, dtype=in_torch().dtype)
        yield Contestant("torch", {"": lambda: [in_torch()]}, [], results, 2e-2)

        def call(kernel: Any, config: Config) -> Call:
            grid = (self.rows // config["BLOCK_M"],)
            if self.task == "linear attention":
                grid = (self.rows * self.n // self.width // self.length,)
                config = {k: x for k, x in config.items() if k != "BLOCK_N"}
            return lambda: kernel[grid](*operands, out, *self.numbers, WIDTH=self.width, **config)

        name = f"{self.task.replace(' ', '_')}_kernel"
        for note, chosen in (("", configs), (" one stage", _in_one_stage(configs))):
            yield from sides.twins(note, name, chosen, call, out=[out], reference=results,
                                   error=2e-2)  # fmt: skip

    @property
    def length(self) -> int:
        """Of the sequences of linear attention."""
        return min(2048, self.rows)

    @property
    def numbers(self) -> tuple[float, ...]:
        """The kernel's arguments behind its arrays."""
        return (self.length, DECAY) if self.task == "linear attention" else (self.n,)


DECAY = 0.5


def _in_one_stage(configs: Sequence[Config]) -> list[Config]:
    return [{**config, "num_stages": 1} for config in configs]


def _random(device: str, *shape: int, spread: float = 1.0) -> Any:
    import torch

    return (torch.randn(*shape, device=device) * spread).half()


def _layers(case: Chain, device: str) -> tuple[Any, ...]:
    import torch

    x, w, v = (
        _random(device, rows, case.width, spread=0.3) for rows in (case.rows, case.n, case.n)
    )
    silu = torch.nn.functional.silu
    exact = silu(x.double() @ w.double().T) @ v.double()
    return (x, w, v), [exact], lambda: silu(x @ w.T) @ v, CHAINS


def _regression(case: Chain, device: str) -> tuple[Any, ...]:
    x, w, v = (
        _random(device, rows, case.width, spread=0.1) for rows in (case.rows, case.n, case.n)
    )

    def computed(x: Any, w: Any, v: Any) -> Any:
        weights = (2 * (x @ w.T) - (x * x).sum(1, True) - (w * w).sum(1)).exp()
        return weights @ v / weights.sum(1, True)

    exact = computed(x.double(), w.double(), v.double())
    return (x, w, v), [exact], lambda: computed(x, w, v / 16) * 16, CHAINS


def _log_sum(case: Chain, device: str) -> tuple[Any, ...]:
    import torch

    x = _random(device, case.rows, case.width, spread=0.3)
    w = torch.randint(-127, 128, (case.n, case.width), device=device).to(torch.int8)
    scale = torch.rand(case.n, device=device) * 0.01
    exact = ((x.double() @ w.double().T) * scale.double()).logsumexp(1)
    return (
        (x, w, scale), [exact],
        lambda: ((x @ w.half().T).float() * scale).logsumexp(1), CHAINS,
    )  # fmt: skip


def _linear_attention(case: Chain, device: str) -> tuple[Any, ...]:
    """The state decays by chunk, so that all configurations must have the same: of 64 rows."""
    import torch

    length, chunk = case.length, 64
    count = case.rows * case.n // case.width // length
    q, k, v = (_random(device, count * length, case.width, spread=0.2) for _ in "qkv")

    def computed(*rows: Any) -> Any:
        q, k, v = (x.view(count, length // chunk, chunk, case.width) for x in rows)
        state, found = q.new_zeros(count, case.width, case.width), []
        for i in range(length // chunk):
            scores = (q[:, i] @ k[:, i].transpose(1, 2)).tril()
            found.append(scores @ v[:, i] + q[:, i] @ state)
            state = state * DECAY + k[:, i].transpose(1, 2) @ v[:, i]
        return torch.stack(found, 1).reshape(rows[0].shape)

    exact = computed(q.double(), k.double(), v.double())
    return (q, k, v), [exact], lambda: computed(q, k, v), [c for c in CHUNKS if c["BLOCK_M"] == 64]


CHAIN_TASKS: Mapping[str, Callable[[Chain, str], tuple[Any, ...]]] = {
    "layers": _layers, "regression": _regression, "log sum": _log_sum,
    "linear attention": _linear_attention,
}  # fmt: skip
"""By task: operands, the result in float64, torch's computation, configurations."""


# --- the list -------------------------------------------------------------------------------------

LENGTHS = (4096, 1024, 16384)


def cases() -> list[Attention | Decode | Chain]:
    """Every case, the most telling first: `--seconds` cuts the last ones."""
    fp16, bf16 = _of_type("fp16"), _of_type("bf16")
    fp8 = [_narrow(128, n, goals={"ready-made": 1.25}) for n in LENGTHS]
    fp8 += [_narrow(128, 4096, causal=True), _narrow(64, 4096), _narrow(256, 4096)]
    return [*fp16, *fp8[:1], Decode(), *_of_sizes(), *fp8[1:], *bf16,
            *(Chain(task) for task in CHAIN_TASKS)]  # fmt: skip


def _of_type(kind: str) -> list[Attention]:
    found: list[Attention] = []
    wanted = {(128, False): 1.05, (128, True): 1.1, (64, False): 0.98, (64, True): 1.0}
    for (head, causal), goal in wanted.items():
        over = {("ready-made", "triton"): 1.6} if head == 128 else {}
        shares = {("tilewright", "ready-made"): 0.9} | over
        found += [
            Attention("forward", kind, head, length, causal, {"ready-made": goal}, shares)
            for length in LENGTHS
        ]
    for causal in (False, True):
        found.append(Attention("forward", kind, 256, 4096, causal, {"ready-made": 0.95}))
    for head in (128, 64):
        for causal in (False, True):
            found.append(
                Attention("backward", kind, head, 4096, causal, {"ready-made": 0.9},
                          {("ready-made", "triton"): 1.3})
            )  # fmt: skip
    return found


def _of_sizes() -> list[Attention]:
    """Heads of 96, and those of latent attention: without goals of their own."""
    return [
        Attention(task, "fp16", head, 4096, causal, value=value)
        for head, value in ((192, 128), (96, 0))
        for task in ("forward", "backward")
        for causal in (False, True)
    ]


def _narrow(head: int, length: int, causal: bool = False, goals: Goals | None = None) -> Attention:
    return Attention("fp8 forward", "fp8", head, length, causal, goals or {}, baseline="fp16")
