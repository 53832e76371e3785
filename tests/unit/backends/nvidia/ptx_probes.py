"""For each fact of an architecture, PTX that assembles exactly where the fact holds."""

import re

HEADER = ".version {version}\n.target {cpu}\n.address_size 64\n"

DECLARATIONS = """
  .reg .pred p<4>; .reg .b16 h<8>; .reg .b32 r<40>; .reg .b64 d<12>; .reg .f32 f<20>;
  .reg .f64 g<20>; .reg .b128 q<2>;
  .shared .align 128 .b8 s[1024];
"""


def module(body: str, cpu: str, version: str = "8.7", directives: str = "") -> str:
    """A kernel with `body`; registers: p predicate, h 16, r 32, d 64 bits, f f32, g f64."""
    entry = f".visible .entry probe(.param .u64 a) {directives} {{\n{DECLARATIONS}"
    return HEADER.format(version=version, cpu=cpu) + entry + body + "\n  ret;\n}\n"


def registers(prefix: str, count: int, first: int = 0) -> str:
    """{r0,r1,...}; a single one without braces is what some instructions want: see `mma`."""
    return "{" + ",".join(f"{prefix}{first + i}" for i in range(count)) + "}"


FEATURES = {
    "cp_async": "cp.async.cg.shared.global [s], [d0], 16;",
    "stmatrix": "stmatrix.sync.aligned.m8n8.x4.shared.b16 [s], {r0,r1,r2,r3};",
    "wgmma": "wgmma.fence.sync.aligned;",
    "setmaxnreg": "setmaxnreg.dec.sync.aligned.u32 40;",
    "tma": (
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[s], [d0, {r0,r1}], [s+512];"
    ),
    "clusters": "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    "elect_sync": "elect.sync r0|p0, -1;",
    "dependent_launch": "griddepcontrol.wait;",
    "proxy_fence": "fence.proxy.async;",
    "redux_integer": "redux.sync.add.s32 r0, r1, -1;",
    "redux_float": "redux.sync.min.f32 f0, f1, -1;",
    "v8_access": "ld.global.v8.b32 {r0,r1,r2,r3,r4,r5,r6,r7}, [d0];",
    "fp8_conversion": "cvt.rn.satfinite.e4m3x2.f32 h0, f0, f1;",
    "bf16_fma": "fma.rn.bf16x2 r0, r1, r2, r3;",
    "bf16_arithmetic": "add.rn.bf16x2 r0, r1, r2; mul.rn.bf16x2 r0, r1, r2;",
    "bf16_conversion_packed": "cvt.rn.bf16x2.f32 r0, f0, f1;",
    "bf16_atomic_add": "atom.global.add.noftz.bf16x2 r0, [d0], r1;",
    "vector_atomic_add": "red.global.add.v4.f32 [d0], {f0,f1,f2,f3}; "
    "red.global.add.noftz.v4.bf16x2 [d0], {r0,r1,r2,r3};",
}
"""Field of Arch -> PTX."""

_OPERAND = {
    # type in PTX, register prefix, bits of an element, bits of a register
    "f16": ("f16", "r", 16, 32),
    "bf16": ("bf16", "r", 16, 32),
    "tf32": ("tf32", "r", 32, 32),
    "f64": ("f64", "g", 64, 64),
    "i8": ("s8", "r", 8, 32),
    "u8": ("u8", "r", 8, 32),
    "f8e4m3": ("e4m3", "r", 8, 32),
    "f8e5m2": ("e5m2", "r", 8, 32),
}


def mma(operand: str, accumulator: str, shape: tuple[int, int, int]) -> str:
    """One mma.sync; raises ZeroDivisionError never: every shape fills whole registers."""
    m, n, k = shape
    type_, prefix, bits, register = _OPERAND[operand]
    acc_type, acc_prefix, acc_bits, acc_register = {
        "f32": ("f32", "f", 32, 32),
        "f16": ("f16", "r", 16, 32),
        "f64": ("f64", "g", 64, 64),
        "i32": ("s32", "r", 32, 32),
    }[accumulator]
    count_a = m * k * bits // register // 32
    count_b = n * k * bits // register // 32
    count_c = m * n * acc_bits // acc_register // 32
    c = registers(acc_prefix, count_c)
    a = registers(prefix, count_a, count_c)
    b = registers(prefix, count_b, count_c + count_a)
    name = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{acc_type}.{type_}.{type_}.{acc_type}"
    return f"{name} {c}, {a}, {b}, {c};"


def instruction(body: str) -> str:
    """The first instruction's name, for messages."""
    found = re.match(r"\s*([\w.:]+)", body)
    assert found
    return found[1]
