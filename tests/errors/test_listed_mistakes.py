"""Mistakes of every kind that kernels make in calls: one text, compiled and interpreted."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportOperatorIssue=false, reportUnknownVariableType=false, reportGeneralTypeIssues=false
# pyright: reportUnusedExpression=false, reportReturnType=false, reportTypedDictNotRequiredAccess=false

# ruff: noqa: B018, E501, F841 -- the mistakes are meant

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tilewright import jit
from tilewright.support import errors

Kernel = Callable[..., Any]
CASES: list[tuple[Kernel, str]] = []


def says(message: str) -> Callable[[Kernel], Kernel]:
    """Decorator: a kernel, and the first line of its error."""

    def register(kernel: Kernel) -> Kernel:
        CASES.append((kernel, message))
        return kernel

    return register


@jit
def add2(a, b):
    return a + b


@jit
def two(a, b):
    return a, b


@jit
def one_arg(a):
    return a


SYMBOLS = {(tl.float32,): ("__nv_sinf", tl.float32)}


@says("sum: 'axis' must be in [-1, 1), found 3 [TW112]")
def sum_axis(x):
    tl.store(x, tl.sum(tl.arange(0, 16), 3))


@says("max: 'axis' must be in [-1, 1), found -2 [TW112]")
def max_axis(x):
    tl.store(x, tl.max(tl.arange(0, 16), -2))


@says("expand_dims: 'axis' must be in [-2, 2), found 5 [TW112]")
def expand_axis(x):
    tl.store(x + tl.arange(0, 16), tl.expand_dims(tl.arange(0, 16), 5))


@says("cannot transpose <[16], int32>: it has one dimension [TW113]")
def trans_rank(x):
    tl.store(x + tl.arange(0, 16), tl.trans(tl.arange(0, 16)))


@says("dot: 'input' must be a tile of rank 2 or more, found <[16], fp32> [TW112]")
def dot_rank(x):
    tl.dot(tl.zeros((16,), tl.float32), tl.zeros((16, 16), tl.float32))


@says("split: 'a' must be a tile whose last extent is 2, found (16, 3) [TW112]")
def split_rank(x):
    tl.split(tl.zeros((16, 3), tl.float32))


@says("cannot gather tiles of shapes (16,) and (4, 4): their ranks are 1 and 2 [TW110]")
def gather_rank(x):
    tl.gather(tl.zeros((16,), tl.float32), tl.zeros((4, 4), tl.int32), 0)


@says("cannot dot fp32 and fp16 [TW111]")
def dot_mixed(x):
    tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float16))


@says("cannot join tiles of shapes (16,) and (8,) [TW110]")
def join_mixed_shape(x):
    tl.join(tl.zeros((16,), tl.float32), tl.zeros((8,), tl.float32))


@says("cannot divide (//) uint32 and int32 [TW111]")
def div_mixed(x):
    tl.arange(0, 16).to(tl.uint32) // tl.arange(0, 16)


@says("arange: 'end' must be above 'start', which is 4, found 0 [TW112]")
def neg_arange(x):
    tl.arange(4, 0)


@says("extent 0 of a tile of shape (-4,) must be positive, found -4 [TW115]")
def neg_zeros(x):
    tl.zeros((-4,), tl.float32)


@says("extent 1 of a tile of shape (4, -4) must be positive, found -4 [TW115]")
def neg_full(x):
    tl.full((4, -4), 1, tl.int32)


@says("extent 0 of a tile of shape (-4,) must be positive, found -4 [TW115]")
def neg_hist(x):
    tl.histogram(tl.arange(0, 16), -4)


@says("topk: 'k' must be in [1, 16], found -1 [TW112]")
def neg_topk(x):
    tl.topk(tl.arange(0, 16), -1)


@says("extent 0 of a tile of shape (-4, -4) must be positive, found -4 [TW115]")
def neg_reshape(x):
    tl.reshape(tl.arange(0, 16), (-4, -4))


@says("sum() has no parameter 'axs' [TW118]")
def unknown_kw(x):
    tl.sum(tl.arange(0, 16), axs=0)


@says("sum() got multiple values for 'axis' [TW119]")
def dup_kw(x):
    tl.sum(tl.arange(0, 16), 0, axis=0)


@says("add2() got multiple values for 'a' [TW119]")
def dup_kw_fn(x):
    add2(1, a=2)


@says("reduce: the result of combine_fn() takes 1 argument, found 2 [TW116]")
def reduce_wrong_count(x):
    tl.store(x, tl.reduce(tl.arange(0, 16), 0, two))


@says("one_arg() takes 1 argument, found 2 [TW116]")
def reduce_wrong_args(x):
    tl.store(x, tl.reduce(tl.arange(0, 16), 0, one_arg))


@says("add2() takes 2 arguments, found 4 [TW116]")
def reduce_tuple_wrong(x):
    tl.reduce((tl.arange(0, 16), tl.arange(0, 16)), 0, add2)


@says("associative_scan: the result of combine_fn() takes 1 argument, found 2 [TW116]")
def scan_wrong_count(x):
    tl.associative_scan(tl.arange(0, 16), 0, two)


@says("add2() missing required argument 'b' [TW117]")
def map_wrong_count(x):
    tl.map_elementwise(add2, tl.arange(0, 16))


@says("cannot unpack: 2 values for 3 variables [TW113]")
def unpack_wrong(x):
    a, b, c = two(1, 2)


@says(
    "cannot run the assembly 'this is no assembly' here: only GPUs have the instruction this [TW113]"
)
def asm_garbage(x):
    tl.inline_asm_elementwise("this is no assembly", "=r,r", [tl.arange(0, 16)], tl.int32, True, 1)


@says("cannot run the assembly 'mov.b32 $0 $1' here: mov.b32 needs more operands [TW113]")
def asm_without_comma(x):
    tl.inline_asm_elementwise("mov.b32 $0 $1;", "=r,r", [tl.arange(0, 16)], tl.int32, True, 1)


@says(
    "inline_asm_elementwise: 'asm' must be assembly with operands $0 to $1, and $$ for a dollar, found '$;' [TW112]"
)
def asm_dollar(x):
    tl.inline_asm_elementwise("mov.b32 $0, $;", "=r,r", [tl.arange(0, 16)], tl.int32, True, 1)


@says("inline_asm_elementwise: 'asm' must be assembly in ASCII, found 'é' [TW112]")
def asm_accent(x):
    tl.inline_asm_elementwise("mov.b32 é0, $1;", "=r,r", [tl.arange(0, 16)], tl.int32, True, 1)


@says("an integer of 1000001 bits does not fit any integer dtype [TW122]")
def long_integer(x):
    tl.store(x + tl.arange(0, 16), 1 << 1000000)


@says(
    "inline_asm_elementwise: 'constraints' must be of 1 results, as '=r', and 1 arguments, found '=r' [TW112]"
)
def asm_few(x):
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r", [tl.arange(0, 16)], tl.int32, True, 1)


@says(
    "inline_asm_elementwise: 'constraints' must be letters of c, h, r, l, f, d, or numbers of results, found 'q' [TW112]"
)
def asm_letter(x):
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=q,r", [tl.arange(0, 16)], tl.int32, True, 1)


@says(
    "inline_asm_elementwise: 'constraints' must be letters of c, h, r, l, f, d, or numbers of results, found '1' [TW112]"
)
def asm_number(x):
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,1", [tl.arange(0, 16)], tl.int32, True, 1)


@says(
    "inline_asm_elementwise: 'pack' must be a number that divides the last extent, 16, found 3 [TW112]"
)
def asm_pack(x):
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.arange(0, 16)], tl.int32, True, 3)


@says("cannot run the assembly '%a' here: no instruction sets this register [TW113]")
def asm_register(x):
    tl.inline_asm_elementwise("mov.b32 $0, %a;", "=r,r", [tl.arange(0, 16)], tl.int32, True, 1)


@says(
    "inline_asm_elementwise: 'asm' must be assembly with operands $0 to $1, and $$ for a dollar, found '$9' [TW112]"
)
def asm_operand(x):
    tl.inline_asm_elementwise("mov.b32 $0, $9;", "=r,r", [tl.arange(0, 16)], tl.int32, True, 1)


@says(
    'atomic_add: \'sem\' must be one of "relaxed", "acquire", "release", "acq_rel", found \'weird\' [TW112]'
)
def sem_word(x):
    tl.atomic_add(x, 1, sem="weird")


@says('atomic_add: \'scope\' must be one of "cta", "gpu", "sys", found \'all\' [TW112]')
def scope_word(x):
    tl.atomic_add(x, 1, scope="all")


@says("atomic_load: 'sem' must be one of \"acquire\", \"relaxed\", found 'release' [TW112]")
def load_release(x):
    tl.atomic_load(x, sem="release")


@says("atomic_store: 'sem' must be one of \"release\", \"relaxed\", found 'acq_rel' [TW112]")
def store_acquire(x):
    tl.atomic_store(x, 1, sem="acq_rel")


@says("cannot atomic_poll on fp32: it works on int16, uint16, int32, uint32, int64, uint64 [TW113]")
def poll_float(x):
    tl.atomic_poll(x.to(tl.pointer_type(tl.float32)), 1)


@says(
    'dot: \'input_precision\' must be one of "ieee", "tf32", "tf32x3", "bf16x3", "bf16x6", found \'tf64\' [TW112]'
)
def precision_word(x):
    tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32), input_precision="tf64")


@says("dot: 'max_num_imprecise_acc' must be at most the contracted extent, 16, found 64 [TW112]")
def too_imprecise(x):
    tl.dot(
        tl.zeros((16, 16), tl.float8e5), tl.zeros((16, 16), tl.float8e5), max_num_imprecise_acc=64
    )


@says("dot: 'out_dtype' must be fp32 or fp16 for operands of fp16, found bf16 [TW112]")
def out_dtype(x):
    tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float16), out_dtype=tl.bfloat16)


@says("extern_elementwise: 'args' must be of types fp32, found int32 [TW112]")
def symbol(x):
    tl.extern_elementwise("", "", [tl.arange(0, 16)], SYMBOLS, True)


def message_of(kernel: Kernel, interpret: bool) -> str:
    with pytest.raises(errors.CompilationError) as caught:
        launched: Any = jit(kernel, interpret=interpret)
        launched[(1,)](np.zeros(64, np.int32))
    return str(caught.value)


@pytest.mark.parametrize(("kernel", "message"), CASES, ids=[case[0].__name__ for case in CASES])
def test_both_executions_say_it(kernel: Kernel, message: str):
    compiled, interpreted = (message_of(kernel, interpret) for interpret in (False, True))
    assert compiled.splitlines()[0].startswith(message)
    assert __file__ in compiled and "^" in compiled
    # of functions of reductions, the interpreter does not say where they are called from
    assert interpreted.split() in (compiled.split(), compiled.partition("\n  called")[0].split())
