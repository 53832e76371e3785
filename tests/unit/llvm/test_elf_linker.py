"""Object files that are linked without LLVM's linker: what they may hold, damage, pages."""

from __future__ import annotations

import ctypes
import gc
import platform
import random
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.forking import assert_child_succeeds, needs_fork
from tilewright.llvm import (
    LlvmError,
    LoadedObject,
    TargetSpec,
    compile_ir,
    host_target,
    load_object,
    object_loader,
)
from tilewright.llvm.code_pages import ExecutablePages, executable_pages
from tilewright.llvm.elf_linker import laid_out

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="for Linux on x86-64"
)

INT = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
DOUBLE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)


def compiled(text: str, optimise: bool = True) -> bytes:
    return compile_ir(text, host_target(), optimise=optimise)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """LLVM's linker is out of reach."""

    def refuse() -> object:
        raise AssertionError("LLVM was asked to link")

    monkeypatch.setattr(object_loader, "_orc_linker", refuse)
    yield


IDENTITY = "define i64 @f(i64 %x) {\n ret i64 %x\n}\n"
FLOATS = """
define double @f(double %x) {
  %a = fmul double %x, 0x400921FB54442D18
  %v = insertelement <4 x double> poison, double %a, i64 0
  %w = shufflevector <4 x double> %v, <4 x double> poison, <4 x i32> zeroinitializer
  %s = fadd <4 x double> %w, <double 1.0, double 2.0, double 3.0, double 4.0>
  %r = call double @llvm.vector.reduce.fadd.v4f64(double 0.0, <4 x double> %s)
  ret double %r
}
declare double @llvm.vector.reduce.fadd.v4f64(double, <4 x double>)
"""
JUMPS = "define i64 @f(i64 %x) {\n switch i64 %x, label %other [\n" + "".join(
    f" i64 {i}, label %l{i}\n" for i in range(9)
) + "]\n" + "".join(
    f"l{i}:\n call void asm sideeffect \"nop\", \"\"()\n ret i64 {i * i + 7}\n" for i in range(9)
) + "other:\n ret i64 -1\n}\n"  # fmt: skip
CALLS = """
declare double @fmod(double, double)
declare double @cbrt(double)
define internal double @inner(double %x) noinline {
  %r = call double @fmod(double %x, double 5.0)
  ret double %r
}
define double @f(double %x) {
  %a = call double @inner(double %x)
  %b = call double @cbrt(double %a)
  %c = call double @cbrt(double %b)
  %r = fadd double %b, %c
  ret double %r
}
"""
ADDRESSES = """
declare i64 @labs(i64)
@table = internal constant [3 x ptr] [ptr @a, ptr @b, ptr @labs]
define internal i64 @a(i64 %x) { %r = add i64 %x, 1 ret i64 %r }
define internal i64 @b(i64 %x) { %r = mul i64 %x, 2 ret i64 %r }
define i64 @f(i64 %x) {
  %i = urem i64 %x, 3
  %at = getelementptr ptr, ptr @table, i64 %i
  %g = load ptr, ptr %at
  %y = sub i64 0, %x
  %r = call i64 %g(i64 %y)
  ret i64 %r
}
"""
OUTSIDE_DATA = """
@environ = external global ptr
define i64 @f(i64 %x) {
  %p = load ptr, ptr @environ
  %a = ptrtoint ptr %p to i64
  ret i64 %a
}
"""
VARIABLE = """
@count = internal global i64 40
define i64 @f(i64 %x) {
  %old = load i64, ptr @count
  %new = add i64 %old, %x
  store i64 %new, ptr @count
  ret i64 %new
}
"""


def test_constants_and_jump_tables(alone: None) -> None:
    f = load_object(compiled(FLOATS), ["f"])
    assert DOUBLE(f["f"])(2.0) == pytest.approx(8 * 3.141592653589793 + 10)
    f = load_object(compiled(JUMPS), ["f"])
    assert [INT(f["f"])(i) for i in range(-1, 10)] == [-1, *(i * i + 7 for i in range(9)), -1]


@pytest.mark.parametrize("optimise", [False, True])
def test_calls_inside_and_outside(alone: None, optimise: bool) -> None:
    f = load_object(compiled(CALLS, optimise), ["f"])
    assert DOUBLE(f["f"])(13.0) == pytest.approx(3 ** (1 / 3) + 3 ** (1 / 9))


@pytest.mark.parametrize("optimise", [False, True])
def test_addresses_of_functions_and_data(alone: None, optimise: bool) -> None:
    f = load_object(compiled(ADDRESSES, optimise), ["f"])
    assert [INT(f["f"])(i) for i in (3, 4, 5)] == [-2, -8, 5]
    g = load_object(compiled(OUTSIDE_DATA, optimise), ["f"])
    environ = ctypes.c_void_p.in_dll(ctypes.CDLL(None), "environ").value
    assert INT(g["f"])(0) == environ


def test_variables_begin_as_zeros_each_time(alone: None) -> None:
    obj = compiled(VARIABLE.replace("i64 40", "i64 0"))
    for _ in range(2):  # in the same pages, which the first one has given back
        f = load_object(obj, ["f"])
        assert [INT(f["f"])(3), INT(f["f"])(4)] == [3, 7]
        f.close()


def test_variables_stand_apart_from_code(alone: None) -> None:
    text = VARIABLE.replace(
        "internal global i64 40", "internal global [70000 x i64] zeroinitializer"
    )
    image = laid_out(compiled(text), ["f"], lambda name: None)
    assert image is not None
    assert image.code_bytes < 4096
    assert image.size == 4096 + 70000 * 8


def test_objects_with_initialized_variables_are_left_to_llvm() -> None:
    obj = compiled(VARIABLE)
    assert laid_out(obj, ["f"], lambda name: None) is None
    f = load_object(obj, ["f"])
    assert [INT(f["f"])(1), INT(f["f"])(1)] == [41, 42]


THREAD_LOCAL = """
@count = thread_local global i64 40
define i64 @f(i64 %x) {
  %p = call ptr @llvm.threadlocal.address.p0(ptr @count)
  %old = load i64, ptr %p
  %new = add i64 %old, %x
  ret i64 %new
}
declare ptr @llvm.threadlocal.address.p0(ptr)
"""
CONSTRUCTOR = """
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }]
  [{ i32, ptr, ptr } { i32 65535, ptr @prepare, ptr null }]
@count = internal global i64 0
define internal void @prepare() {
  store i64 40, ptr @count
  ret void
}
define i64 @f(i64 %x) {
  %old = load i64, ptr @count
  %new = add i64 %old, %x
  ret i64 %new
}
"""
FAR_ALIGNED = """
@table = internal constant [2 x i64] [i64 3, i64 4], align 8192
define i64 @f(i64 %x) {
  %at = getelementptr i64, ptr @table, i64 %x
  %r = load volatile i64, ptr %at
  ret i64 %r
}
"""


@pytest.mark.parametrize("text", [THREAD_LOCAL, CONSTRUCTOR, FAR_ALIGNED])
def test_what_kernels_do_not_have_is_never_linked_here(text: str) -> None:
    assert laid_out(compiled(text), ["f"], lambda name: 0x7F0000001000) is None


def relocations(obj: bytes) -> list[int]:
    """Where the relocations of the code are in the file."""
    table, count, strings = (
        *struct.unpack_from("<Q", obj, 40),
        *struct.unpack_from("<HH", obj, 60),
    )
    rows = [struct.unpack_from("<IIQQQQIIQQ", obj, table + 64 * i) for i in range(count)]
    names = rows[strings][4]
    (found,) = [
        r for r in rows if obj[names + r[0] :].startswith((b".rela.text\0", b".rela.ltext\0"))
    ]
    return [*range(found[4], found[4] + found[5], 24)]


def test_relocations_that_are_not_known_are_left_to_llvm_and_others_are_right() -> None:
    """Of each kind of relocation that the ABI has: no image, or one where that kind is known."""
    obj = compiled(CALLS, optimise=False)
    known = set[int]()
    for place in relocations(obj):
        for kind in range(64):
            changed = bytearray(obj)
            changed[place + 8 : place + 12] = struct.pack("<I", kind)
            if laid_out(bytes(changed), ["f"], lambda name: 0x7F0000001000) is not None:
                known.add(kind)
    assert known <= {1, 2, 4, 9, 24, 41, 42}
    assert known >= {4}


def test_a_target_out_of_reach_is_no_image() -> None:
    """A stub reaches any function of the process; a changed addend reaches what it says or none."""
    obj = compiled(CALLS, optimise=False)
    image = laid_out(obj, ["f"], lambda name: (1 << 63) + 1)
    assert image is not None and image.at(0x7F0000000000) is not None
    changed = bytearray(obj)
    place = relocations(obj)[0] + 16
    changed[place : place + 8] = struct.pack("<q", 1 << 40)
    image = laid_out(bytes(changed), ["f"], lambda name: 0x7F0000001000)
    assert image is not None and image.at(0x7F0000000000) is None


def test_a_function_without_address_is_none(alone: None) -> None:
    with pytest.raises(AssertionError, match="LLVM was asked"):
        load_object(compiled(CALLS.replace("cbrt", "no_such_function")), ["f"])


@pytest.mark.parametrize("refused", ["reserve", "write", "execute"])
def test_without_rights_for_pages_llvm_links(refused: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As under a security policy that forbids memory to become executable."""
    pages = ExecutablePages()
    inner: Any = pages
    protect, rights = inner._protect, {"write": 3, "execute": 5}.get(refused)
    inner._protect = lambda first, size, right: (
        -1 if right == rights else protect(first, size, right)
    )
    if refused == "reserve":
        inner._map = lambda *args: ctypes.c_void_p(-1).value
    monkeypatch.setattr(object_loader, "executable_pages", lambda: pages)
    f = load_object(compiled(FLOATS), ["f"])
    assert DOUBLE(f["f"])(0.0) == 10
    assert all(not first <= f["f"] < end for first, end in [*pages._free, *pages._released])


@pytest.mark.parametrize("triple", ["aarch64-unknown-linux-gnu", "x86_64-pc-windows-msvc"])
def test_other_formats_are_left_to_llvm(triple: str) -> None:
    target = TargetSpec(triple, "generic" if triple[0] == "a" else "x86-64")
    assert laid_out(compile_ir(IDENTITY, target), ["f"], lambda name: None) is None


def test_what_is_missing_is_named_by_llvm() -> None:
    with pytest.raises(LlvmError, match="no_such_function"):
        load_object(compiled(CALLS.replace("cbrt", "no_such_function")), ["f"])
    with pytest.raises(LlvmError, match="g"):
        load_object(compiled(IDENTITY), ["g"])


def test_damage_is_no_error_here_and_leads_nowhere_else() -> None:
    """Whatever a byte is changed to, there is no image, or one whose parts are inside of it."""
    rng = random.Random(0)
    images = 0
    for text in (FLOATS, CALLS, ADDRESSES):
        obj = compiled(text)
        for _ in range(400):
            damaged = bytearray(obj)
            for _ in range(rng.choice((1, 1, 4))):
                damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 0xFF, rng.randrange(256)))
            image = laid_out(bytes(damaged), ["f"], lambda name: 0x7F0000001000)
            if image is not None:
                images += 1
                data = image.at(0x7F0000100000)
                assert data is None or len(data) == image.size < 16 * len(obj)
                assert 0 <= image.exports["f"] < image.size
    assert images > 100


def mapped() -> list[tuple[int, int]]:
    """The parts of this process's address space that are taken, reserved ones too."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    spans = (line.split()[0].split("-") for line in lines)
    return [(int(first, 16), int(end, 16)) for first, end in spans]


def test_pages_are_reused_and_never_writable_and_executable() -> None:
    obj = compiled(FLOATS)
    kept = [load_object(obj, ["f"]) for _ in range(40)]
    places = {one["f"] for one in kept}
    assert len(places) == 40
    del kept
    gc.collect()
    before = mapped()
    again = [load_object(obj, ["f"]) for _ in range(40)]
    # Not all are the same pages: other tests of the process have freed some, too.
    assert all(any(first <= one["f"] < end for first, end in before) for one in again)
    assert all(DOUBLE(one["f"])(0.0) == 10 for one in again)
    lines = [line.split(" ", 2) for line in Path("/proc/self/maps").read_text().splitlines()]
    first = again[0]["f"]
    (rights,) = [
        row[1]
        for row in lines
        if int(row[0].split("-")[0], 16) <= first < int(row[0].split("-")[1], 16)
    ]
    assert rights == "r-xp"


def test_threads_load_and_unload_at_once() -> None:
    objects = [compiled(IDENTITY.replace("ret i64 %x", f"%r = add i64 %x, {i}\n ret i64 %r"))
               for i in range(8)]  # fmt: skip
    problems: list[BaseException] = []

    def work(seed: int) -> None:
        rng, held = random.Random(seed), dict[int, LoadedObject]()
        try:
            for _ in range(400):
                i = rng.randrange(8)
                if i in held:
                    assert INT(held[i]["f"])(100) == 100 + i
                    held.pop(i).close() if rng.random() < 0.5 else held.pop(i)
                else:
                    held[i] = load_object(objects[i], ["f"])
            assert all(INT(one["f"])(1) == 1 + i for i, one in held.items())
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_large_code_gets_a_range_of_its_own() -> None:
    pages = ExecutablePages()
    small, large = pages.reserve(100), pages.reserve(3 << 20)
    assert small is not None and large is not None
    assert small[1] - small[0] == 4096 and large[1] - large[0] == 3 << 20
    assert pages.fill(large, b"\xc3" * (3 << 20))
    pages.release(small)
    pages.release(large)
    vars(pages)["_map"] = lambda *args: pytest.fail("memory that is free was not reused")
    first, second = pages.reserve(3 << 20), pages.reserve(100)
    assert first is not None and second is not None
    assert pages.fill(first, b"\xc3" * (3 << 20)) and pages.fill(second, b"\xc3")


@needs_fork
def test_a_child_changes_nothing_of_its_parents() -> None:
    obj = compiled(JUMPS)
    mine = load_object(obj, ["f"])

    def work() -> None:
        nonlocal mine
        address = mine["f"]
        mine.close()
        other = load_object(compiled(IDENTITY), ["f"])
        assert other["f"] == address
        assert INT(other["f"])(5) == 5

    assert_child_succeeds(work)
    assert INT(mine["f"])(5) == 32
    assert executable_pages() is executable_pages()
