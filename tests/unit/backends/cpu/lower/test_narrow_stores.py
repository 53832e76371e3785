"""Stores of narrowed values write their own bytes and no others, whatever LLVM learns of masks.

LLVM 22 for AVX-512 writes the wide number where a truncation is stored under a mask of one known
lane. The first test says whether it still does; the others that no store of ours meets it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import product

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.backends.cpu.lower.lane_values import Address, LaneMath, Lanes
from tilewright.backends.cpu.lower.narrow_stores import hide_origin
from tilewright.backends.cpu.lower.vector_access import Access, store
from tilewright.ir.types import DType, dtype_named
from tilewright.llvm import (
    Code,
    ModuleText,
    TargetSpec,
    Val,
    convert_element,
    emit_assembly,
    llvm_type,
    vector_of,
)

TRIPLE = "x86_64-unknown-linux-gnu"
ATTRIBUTES = 'nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512"'
CPUS = ("x86-64", "haswell", "knl", "skylake-avx512", "sapphirerapids", "znver4", "znver5")

NARROWINGS = (
    ("i32", "i8"), ("i32", "i16"), ("i64", "i8"), ("i64", "i16"), ("i64", "i32"), ("i16", "i8"),
    ("f32", "i8"), ("f32", "u16"), ("f32", "f16"), ("f64", "i32"), ("f64", "f32"),
)  # fmt: skip
FORMS = ("literal", "comparison", "select")


# -- the sweep: assembly for many CPUs -------------------------------------------------------------


def emit_store(name: str, source: DType, target: DType, width: int, lane: int, form: str) -> str:
    """void NAME(x, y): y[lane] = x[lane], with `width` lanes of which LLVM knows the mask."""
    module = ModuleText()
    code = Code(module)
    wide = vector_of(llvm_type(source), width)
    loaded = code.let(f"load {wide}, ptr %x, align 1", wide)
    value = convert_element(code, loaded, source, target)
    if form == "literal":
        bits = ", ".join(f"i1 {'true' if i == lane else 'false'}" for i in range(width))
        mask = Val(f"<{bits}>", vector_of("i1", width))
    else:
        steps = code.step_vector("i32", width, 1)
        mask = code.compare("icmp eq", steps, Val(f"splat (i32 {lane})", steps.type))
    if form == "select":
        kind = vector_of(llvm_type(target), width)
        old = code.let(f"load {kind}, ptr %y, align 1", kind)
        value, mask = code.select(mask, value, old), None
    address = Address(Val("%y", "ptr"), Lanes(Val("0", "i32"), 1))
    masks = None if mask is None else Lanes(mask, None)
    store(LaneMath(code, width), Access(address, target, masks), Lanes(value, None))
    body = "\n".join(code.sections[0])
    declarations = "\n".join(module.declarations.values())
    return (
        f"define void @{name}(ptr %x, ptr %y) {ATTRIBUTES} {{\n{body}\nret void\n}}\n{declarations}"
    )


SIZES = {"b": 1, "w": 2, "l": 4, "q": 8, "d": 4}
OTHERS = {"extractps": 4, "movss": 4, "movsd": 8, "movsh": 2, "movlps": 8, "movlpd": 8, "movhps": 8,
          "movhpd": 8, "extractf128": 16, "extracti128": 16, "extractf64x4": 32,
          "extracti64x4": 32}  # fmt: skip
REGISTERS = {"x": 16, "y": 32, "z": 64}


def written(instruction: str) -> tuple[int, int] | None:
    """First and last byte behind %rsi that an instruction writes; None if it writes nothing there,
    or only lanes of a vector that its own mask names."""
    at = re.search(r"(-?\d*)\(%rsi\)(\s*\{%k\d\})?$", instruction)
    name = instruction.split()[0]
    if at is None or at[2] or name.startswith(("cmp", "test", "vpmaskmov", "vmaskmov")):
        return None
    start = int(at[1] or 0)
    register = re.search(r"%([xyz])mm\d+, ?-?\d*\(%rsi\)$", instruction)
    if name.removeprefix("v") in OTHERS:
        size = OTHERS[name.removeprefix("v")]
    elif re.fullmatch(r"v?pextr[bwdq]|v?mov[bwldq]", name):
        size = SIZES[name[-1]]
    else:
        assert register is not None, f"what does this store? {instruction}"
        narrower = re.fullmatch(r"vpmov([wdq])([bwd])", name)
        size = REGISTERS[register[1]]
        size = size * SIZES[narrower[2]] // SIZES[narrower[1]] if narrower else size
    return start, start + size - 1


def functions_of(assembly: str) -> Iterator[tuple[str, list[str]]]:
    for part in re.split(r"^(?=\w+:)", assembly, flags=re.MULTILINE)[1:]:
        name, _, body = part.partition(":")
        lines = (re.sub(r"\s+", " ", line.split("#")[0].strip()) for line in body.splitlines())
        yield name, [line for line in lines if line and line[0] not in ".{"]


def overruns(cpu: str, types: tuple[tuple[str, str], ...]) -> list[str]:
    """Instructions that write beyond the stored lane (with a select: beyond the vector)."""
    texts: list[str] = []
    limits: dict[str, tuple[int, int]] = {}
    for (source, target), width, form in product(types, (2, 4, 8, 16, 32, 64), FORMS):
        for lane in {0, 1, width // 2 + 1, width - 1} & {*range(width)}:
            name = f"{source}_{target}_{width}_{lane}_{form}"
            to, size = dtype_named(target), dtype_named(target).bytes
            texts.append(emit_store(name, dtype_named(source), to, width, lane, form))
            first, count = (0, width) if form == "select" else (lane, 1)
            limits[name] = (first * size, (first + count) * size - 1)
    lines = dict.fromkeys("\n".join(texts).splitlines())  # declarations, once
    declared = [line for line in lines if line.startswith("declare")]
    defined = "\n".join(re.sub(r"^declare.*$", "", t, flags=re.MULTILINE) for t in texts)
    assembly = emit_assembly("\n".join([*declared, defined]), TargetSpec(TRIPLE, cpu))
    bad: list[str] = []
    for name, instructions in functions_of(assembly):
        if name in limits:
            low, high = limits[name]
            spans = [(i, written(i)) for i in instructions]
            bad += [f"{name}: {i}" for i, s in spans if s and (s[0] < low or s[1] > high)]
    return bad


@pytest.mark.parametrize("cpu", CPUS)
def test_no_cpu_stores_more_than_the_lane(cpu: str):
    assert overruns(cpu, NARROWINGS) == []


def test_the_sweep_sees_the_defect(monkeypatch: pytest.MonkeyPatch):
    """And tells when LLVM has it no more: then narrow_stores.py can go."""
    monkeypatch.setattr(
        "tilewright.backends.cpu.lower.vector_access.hide_origin", lambda code, value: value
    )
    bad = overruns("skylake-avx512", (("i32", "i16"),))
    assert any("movl %eax, (%rsi)" in line for line in bad), "LLVM is repaired: remove hide_origin"
    assert not overruns("haswell", (("i32", "i16"),))


def test_vectors_that_come_from_no_truncation_are_stored_as_they_are():
    code = Code(ModuleText())
    for text, kind in (("%x", "<8 x float>"), ("%x", "<8 x i64>"), ("%x", "i8"),
                       ("zeroinitializer", "<8 x i8>")):  # fmt: skip
        value = Val(text, kind)
        assert hide_origin(code, value) is value
    assert code.sections == [[]]


# -- running ---------------------------------------------------------------------------------------

GUARDED = """
import ctypes, mmap, sys
import ml_dtypes, numpy as np
import tilewright, tilewright.language as tl

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)

def before_a_wall(count, dtype):
    "An array that ends where memory that nobody may touch begins."
    memory = mmap.mmap(-1, 2 * PAGE)
    start = np.frombuffer(memory, np.uint8).ctypes.data
    if libc.mprotect(ctypes.c_void_p(start + PAGE), ctypes.c_size_t(PAGE), 0):
        sys.exit(77)
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer(memory, np.uint8)[PAGE - size:PAGE].view(dtype)

@tilewright.jit
def one_lane(y, x, K: tl.constexpr, B: tl.constexpr):
    c = tl.arange(0, B)
    tl.store(y + c, tl.load(x + c).to(y.dtype.element_ty), c == K)

@tilewright.jit
def first(y, x, n, B: tl.constexpr):
    c = tl.arange(0, B)
    tl.store(y + c, tl.load(x + c).to(y.dtype.element_ty), c < n)

@tilewright.jit
def peeled(y, x, n: tl.constexpr, B: tl.constexpr):
    c = tl.arange(0, B)
    for i in tl.static_range(0, n, B):
        tl.store(y + i + c, tl.load(x + i + c, i + c < n).to(y.dtype.element_ty), i + c < n)

for source, target in (("int32", "int8"), ("int32", "int16"), ("int64", "int32"), ("int16", "int8"),
                       ("int64", "uint16"), ("float32", "float16"), ("float32", ml_dtypes.bfloat16),
                       ("float32", ml_dtypes.float8_e4m3fn), ("float32", "int8")):
    for B in (4, 16, 32):
        x = (np.arange(2 * B) + 1).astype(source)
        for K in (0, 1, B - 1):
            y = before_a_wall(K + 1, target)
            one_lane[(1,)](y, x, K=K, B=B)
            assert y.tolist() == [0] * K + [x[K].astype(target)], (source, target, B, K, y)
        y = before_a_wall(1, target)
        first[(1,)](y, x, 1, B=B)
        assert y[0] == x[0].astype(target)
        y = before_a_wall(B + 1, target)
        peeled[(1,)](y, x, n=B + 1, B=B)
        assert (y == x[:B + 1].astype(target)).all(), (source, target, B, y)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="pages without access by mprotect")
def test_stores_end_where_memory_ends(tmp_path):
    """Each store ends right before a page that no instruction may touch."""
    script = tmp_path / "guarded.py"
    script.write_text(GUARDED)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("no page could be protected")
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"


@tilewright.jit
def blended(y, x, K: tl.constexpr, B: tl.constexpr):
    c = tl.arange(0, B)
    tl.store(y + c, tl.where(c == K, tl.load(x + c).to(y.dtype.element_ty), tl.load(y + c)))


@pytest.mark.parametrize("target", ["int8", "int16", ml_dtypes.bfloat16])
@pytest.mark.parametrize("lane", [0, 3, 15])
def test_a_choice_between_new_and_old_keeps_the_neighbours(target, lane):
    source = np.float32 if target is ml_dtypes.bfloat16 else np.int32
    x = (np.arange(16) + 20).astype(source)
    y = np.full(24, 5).astype(target)
    blended[(1,)](y, x, K=lane, B=16)
    expected = np.full(24, 5).astype(target)
    expected[lane] = x[lane].astype(target)
    assert y.tolist() == expected.tolist()
