"""Probes of the support matrix: for each op, statements that compute `r` from tiles of one dtype.

`a` and `b` are tiles of 16 elements, `x` and `y` the pointers to them, `i` the indices, `T` the
dtype. `r` is converted to fp32 and stored, at `place` where its shape is another one.
"""

from __future__ import annotations

from dataclasses import dataclass

DTYPES = {
    "int1": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float8e4nv": "fp8e4nv", "float8e5": "fp8e5",
    "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64",
}  # fmt: skip
"""Names of the language, and those of signatures."""

ROW = "tl.arange(0, 16)"
SQUARE = "tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :]"
MATRIX = "tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]"
PAIRS = "tl.arange(0, 16)[:, None] * 2 + tl.arange(0, 2)[None, :]"


@dataclass(frozen=True)
class Probe:
    """One row. name: the op, as the page shows it; body: statements; place: of the elements of `r`
    in the result"""

    name: str
    body: str
    place: str = ROW


def _elementwise() -> list[Probe]:
    unary = (
        "abs ceil floor sin cos tanh erf exp exp2 log log2 sqrt sqrt_rn rsqrt sigmoid softmax "
        "cumsum cumprod sort bitonic_merge flip zeros_like ravel"
    )
    binary = "add sub mul fdiv div_rn maximum minimum umulhi logical_and logical_or"
    operators = {
        "/": "a / b", "//": "a // b", "%": "a % b", "&": "a & b", "<<": "a << b", "<": "a < b",
        "-x": "-a", "~x": "~a",
    }  # fmt: skip
    return [
        *(Probe(f"tl.{name}", f"r = tl.{name}(a)") for name in unary.split()),
        *(Probe(f"tl.{name}", f"r = tl.{name}(a, b)") for name in binary.split()),
        *(Probe(f"`{sign}`", f"r = {text}") for sign, text in operators.items()),
        Probe("tl.fma", "r = tl.fma(a, b, a)"),
        Probe("tl.clamp", "r = tl.clamp(a, a, b)"),
        Probe("tl.where", "r = tl.where(i < 8, a, b)"),
        Probe("tl.cast", "r = tl.cast(i, T)"),
        Probe("tl.full", "r = tl.full((16,), 1, T)"),
        Probe("tl.zeros", "r = tl.zeros((16,), T)"),
        Probe("tl.map_elementwise", "r = tl.map_elementwise(first, a, b)"),
        Probe("tl.gather", "r = tl.gather(a, 15 - i, 0)"),
    ]


def _shapes() -> list[Probe]:
    square = "s = tl.reshape(a, (4, 4))\n"
    return [
        Probe("tl.reshape", f"{square}r = s", SQUARE),
        Probe("tl.view", "r = tl.view(a, (4, 4))", SQUARE),
        Probe("tl.trans", f"{square}r = tl.trans(s)", SQUARE),
        Probe("tl.permute", f"{square}r = tl.permute(s, (1, 0))", SQUARE),
        Probe("tl.broadcast", "r, s = tl.broadcast(a[:, None], tl.zeros((1, 2), T))", PAIRS),
        Probe("tl.broadcast_to", "r = tl.broadcast_to(a[:, None], (16, 2))", PAIRS),
        Probe("tl.expand_dims", "r = tl.expand_dims(a, 1)", "i[:, None]"),
        Probe("tl.unsqueeze", "r = tl.unsqueeze(a, 1)", "i[:, None]"),
        Probe("tl.squeeze", "r = tl.squeeze(a[:, None], 1)"),
        Probe("tl.cat", "r = tl.cat(a, b)", "tl.arange(0, 32)"),
        Probe("tl.join", "r = tl.join(a, b)", PAIRS),
        Probe("tl.split", "r, s = tl.split(tl.join(a, b))"),
        Probe("tl.interleave", "r = tl.interleave(a, b)", "tl.arange(0, 32)"),
        Probe("tl.item", "r = tl.item(tl.load(x + tl.arange(0, 1)))", "0"),
    ]


def _reductions() -> list[Probe]:
    whole = "sum max min argmax argmin xor_sum reduce_or"
    return [
        *(Probe(f"tl.{name}", f"r = tl.{name}(a, 0)", "0") for name in whole.split()),
        Probe("tl.reduce", "r = tl.reduce(a, 0, first)", "0"),
        Probe("tl.associative_scan", "r = tl.associative_scan(a, 0, first)"),
        Probe("tl.topk", "r = tl.topk(a, 4)", "tl.arange(0, 4)"),
        Probe("tl.histogram", "r = tl.histogram(a, 16)"),
    ]


def _memory() -> list[Probe]:
    block = "p = tl.make_block_ptr({}, (16,), (1,), (0,), (16,), (0,))\n"
    array = "d = tl.make_tensor_descriptor({}, (16,), (1,), (16,))\n"
    changes = "add max min and or xor xchg"
    after = "tl.debug_barrier()\nr = tl.load(x + i)"
    return [
        Probe("tl.load", "r = tl.load(x + i, mask=i < 8, other=0)"),
        Probe("tl.store", f"tl.store(x + i, b, mask=i < 8)\n{after}"),
        Probe("tl.make_block_ptr", block.format("x") + "r = tl.load(p)"),
        Probe("tl.advance", block.format("x") + "r = tl.load(tl.advance(p, (0,)))"),
        Probe("tl.make_tensor_descriptor", array.format("x") + "r = d.load((0,))"),
        Probe(
            "tl.load_tensor_descriptor",
            array.format("x") + "r = tl.load_tensor_descriptor(d, (0,))",
        ),
        Probe(
            "tl.store_tensor_descriptor",
            array.format("x") + "tl.store_tensor_descriptor(d, (0,), b)\nr = b",
        ),
        *(Probe(f"tl.atomic_{n}", f"r = tl.atomic_{n}(x + i, b)") for n in changes.split()),
        Probe("tl.atomic_cas", "r = tl.atomic_cas(x + i, a, b)"),
        Probe("tl.atomic_load", "r = tl.atomic_load(x + i)"),
        Probe("tl.atomic_store", f"tl.atomic_store(x + i, b)\n{after}"),
        Probe("tl.atomic_poll", "r = tl.atomic_poll(x + i, a)"),
    ]


def _matmul() -> list[Probe]:
    square = "m = tl.load(x + " + MATRIX + ")\n"
    return [Probe("tl.dot", square + "r = tl.dot(m, m)", MATRIX)]


PROBES = [*_elementwise(), *_shapes(), *_reductions(), *_memory(), *_matmul()]


def program(probe: Probe, dtype: str) -> str:
    """The text of a kernel `probe(x, y, out)`."""
    body = "\n".join(f"    {line}" for line in probe.body.splitlines())
    return f"""import tilewright.language as tl
from tilewright import jit

T = tl.constexpr(tl.{dtype})


@jit
def first(a, b):
    return a


@jit
def probe(x, y, out):
    i = {ROW}
    a = tl.load(x + i)
    b = tl.load(y + i)
{body}
    tl.store(out + {probe.place}, r.to(tl.float32))
"""
