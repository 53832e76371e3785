"""Casts of several elements at once: between f32 and fp8, two by one instruction, where the
architecture has it; from 8-bit integers to f16 and f32, by way of their bits; and bits of one
16-bit float taken as another's."""

from __future__ import annotations

from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, lowering
from tilewright.backends.nvidia.lower.per_register_ops import lower_by_register
from tilewright.ir.types import bf16, element_of, f8e4m3, f8e5m2, f16, f32, i8, u8
from tilewright.llvm import Val, float_text, llvm_type
from tilewright.ops import BitcastOp, CastOp

_NAMES: dict[object, str] = {f8e4m3: "e4m3x2", f8e5m2: "e5m2x2"}


@lowering(CastOp)
def _cast(state: GpuLowering, op: CastOp) -> None:
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    values = state.registers_of(op.operands[0])
    # A tile of one register makes a single, which the instruction takes as a pair, too.
    pairs = [list(values[i : i + 2]) for i in range(0, len(values), 2)]
    fours = [list(values[i : i + 4]) for i in range(0, len(values), 4)]
    if target in _NAMES and source is not target:
        made = [_narrow(state, four, _NAMES[target]) for four in fours]
    elif source in _NAMES and source is not target:
        made = [_widen(state, pair, _NAMES[source]) for pair in pairs]
    elif source in (i8, u8) and target in (f16, f32) and len(values) % 4 == 0:
        made = [_floats_of_bytes(state, four, source is i8, target) for four in fours]
    else:
        lower_by_register(state, op)
        return
    state.set_registers(op.results[0], [value for group in made for value in group])


@lowering(BitcastOp)
def _bitcast(state: GpuLowering, op: BitcastOp) -> None:
    """LLVM 22 aborts when it folds a constant half to a bfloat, so it must not see the two meet."""
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    if {source, target} != {f16, bf16}:
        lower_by_register(state, op)
        return
    results: list[Val] = []
    for value in state.registers_of(op.operands[0]):
        bits = state.code.let_here(f"bitcast {value.typed} to i16", "i16")
        moved = state.pure_asm("mov.b16 $0, $1;", "=h,h", "i16", bits)
        kind = llvm_type(target)
        results.append(state.code.let_here(f"bitcast {moved.typed} to {kind}", kind))
    state.set_registers(op.results[0], results)


def _floats_of_bytes(
    state: GpuLowering, four: list[Val], signed: bool, target: object
) -> list[Val]:
    """Four 8-bit integers as f16 or f32, by full-rate instructions; conversions
    (`I2F`) have a sixteenth of their rate. Those that become bf16 are f32 in between.

    The last bits of a float from 2^n to 2^(n + 1), whose fraction has n bits, count ones: a byte
    below 0x64 is an f16, 1024 more than the byte; below 0x4B0000 it is an f32, 2^23 more. A signed
    one is first moved up by 128, which inverts its highest bit.
    """
    code = state.code
    bytes_ = Val("poison", "<4 x i8>")
    for lane, byte in enumerate(four):
        text = f"insertelement {bytes_.typed}, {byte.typed}, i64 {lane}"
        bytes_ = code.let_here(text, "<4 x i8>")
    if signed:
        word = code.let_here(f"bitcast {bytes_.typed} to i32", "i32")
        word = code.let_here(f"xor i32 {word}, {0x80808080 - (1 << 32)}", "i32")
        bytes_ = code.let_here(f"bitcast {word.typed} to <4 x i8>", "<4 x i8>")
    moved = 128.0 if signed else 0.0
    if target is f32:
        return [_single_of_byte(state, bytes_, lane, moved) for lane in range(4)]
    pairs = [_halves_of_bytes(state, bytes_, low, moved) for low in (0, 2)]
    return [code.extract(pair, lane) for pair in pairs for lane in range(2)]


def _halves_of_bytes(state: GpuLowering, bytes_: Val, low: int, moved: float) -> Val:
    """Two of them as <2 x half>, `moved` less."""
    code = state.code
    upper = Val(f"<{', '.join(['i8 100'] * 4)}>", "<4 x i8>")
    mixed = code.shuffle(bytes_, [low, 4, low + 1, 4], upper)
    pair = code.let_here(f"bitcast {mixed.typed} to <2 x half>", "<2 x half>")
    zero = f"half {float_text(1024.0 + moved, 'half')}"
    return code.let_here(f"fsub {pair.typed}, <{zero}, {zero}>", "<2 x half>")


def _single_of_byte(state: GpuLowering, bytes_: Val, lane: int, moved: float) -> Val:
    """One of them as float, `moved` less."""
    code = state.code
    upper = Val("<i8 0, i8 0, i8 0, i8 75>", "<4 x i8>")
    mixed = code.shuffle(bytes_, [lane, 4, 4, 7], upper)
    one = code.let_here(f"bitcast {mixed.typed} to float", "float")
    return code.let_here(f"fsub {one.typed}, {float_text(2.0**23 + moved, 'float')}", "float")


def _narrow(state: GpuLowering, values: list[Val], target: str) -> list[Val]:
    """Up to four f32 as fp8: bytes of one vector, which is a register where there are four."""
    code = state.code
    # PTX has it with .satfinite only. Its first source becomes the upper byte.
    text = f"cvt.rn.satfinite.{target}.f32 $0, $1, $2;"
    pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
    words = [state.pure_asm(text, "=h,f,f", "i16", pair[-1], pair[0]) for pair in pairs]
    joined = words[0]
    if len(words) == 2:
        # Not by LLVM, which makes three instructions of it.
        joined = state.pure_asm("mov.b32 $0, {$1, $2};", "=r,h,h", "i32", *words)
    bytes_ = f"<{2 * len(words)} x i8>"
    split = code.let_here(f"bitcast {joined.typed} to {bytes_}", bytes_)
    return [code.extract(split, lane) for lane in range(len(values))]


def _widen(state: GpuLowering, pair: list[Val], source: str) -> list[Val]:
    """One or two fp8 as f32, by way of f16, which holds them exactly."""
    code = state.code
    both = code.let_here(f"zext i8 {pair[0]} to i16", "i16")
    if len(pair) == 2:
        high = code.let_here(f"zext i8 {pair[1]} to i16", "i16")
        moved = code.let_here(f"shl i16 {high}, 8", "i16")
        both = code.let_here(f"or i16 {both}, {moved}", "i16")
    word = state.pure_asm(f"cvt.rn.f16x2.{source} $0, $1;", "=r,h", "i32", both)
    halves = code.let_here(f"bitcast i32 {word} to <2 x half>", "<2 x half>")
    floats: list[Val] = []
    for lane in range(len(pair)):
        half = code.let_here(f"extractelement <2 x half> {halves}, i64 {lane}", "half")
        floats.append(code.let_here(f"fpext half {half} to float", "float"))
    return floats
