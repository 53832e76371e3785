"""wgmma: operands of every type and layout against NumPy, and faults in the protocol around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.emulator.llvm_program import Program, launch
from tests.emulator.memory import Array, EmulationError
from tests.emulator.wgmma_kernels import (
    STEPS,
    TYPES,
    Tile,
    accumulator_places,
    begin,
    fragment_words,
    store_words,
)

PARAMETERS = "ptr %image, ptr %fragments, ptr %out"


@dataclass
class Case:
    """d = a @ b.T, (64, n), over 128 bytes of K in four instructions."""

    dtype: str = "f16"
    n: int = 64
    a_turned: bool = False
    b_turned: bool = False
    swizzle: int = 128
    from_registers: bool = False
    sums: str = ""

    @property
    def d(self) -> str:
        return self.sums or ("s32" if self.dtype in ("s8", "u8") else "f32")

    @property
    def a(self) -> Tile:
        return Tile(64, self.dtype, self.swizzle, self.a_turned)

    @property
    def b(self) -> Tile:
        return Tile(self.n, self.dtype, self.swizzle, self.b_turned)

    @property
    def registers(self) -> int:
        return self.n // 4 if self.d == "f16" else self.n // 2

    @property
    def type_(self) -> str:
        return "float" if self.d == "f32" else "i32"

    def operands(self) -> tuple[Array, Array]:
        rng = np.random.default_rng(0)
        low = 0 if self.dtype == "u8" else -4
        shapes = [(64, self.a.depth), (self.n, self.a.depth)]
        a, b = (rng.integers(low, 5, shape).astype(TYPES[self.dtype]) for shape in shapes)
        return a, b

    def immediates(self) -> str:
        if self.d == "s32":
            return ""
        turned = [] if self.from_registers else [int(self.a_turned)]
        sixteen = [*turned, int(self.b_turned)] if self.a.size == 2 else []
        return "".join(f", {i}" for i in (1, 1, *sixteen))

    def multiply(self, step: int, a: str, b: str, keep: str) -> str:
        sums = ", ".join(f"${i}" for i in range(self.registers))
        kind = f"m64n{self.n}k{32 // self.a.size}.{self.d}.{self.dtype}.{self.dtype}"
        return (f"wgmma.mma_async.sync.aligned.{kind} "
                f"{{{sums}}}, {a}, {b}, {keep}{self.immediates()};")  # fmt: skip

    def block(
        self,
        keep: str = "0",
        change_a: int = 0,
        change_b: int = 0,
        steps: Sequence[int] = range(STEPS),
    ) -> str:
        """The wgmmas of a block along K; descriptors are constants but for their start."""
        lines: list[str] = []
        first = 2 * self.registers
        for step in steps:
            da = self.a.descriptor(0, step, change_a)
            db = self.b.descriptor(64 * 128, step, change_b)
            a = "da"
            if self.from_registers:
                a = "{" + ", ".join(f"${first + 1 + 4 * step + i}" for i in range(4)) + "}"
            for name, d in (("da", da), ("db", db)):
                lines += [f"add.u32 t, ${first}, {d & 0xFFFFFFFF};", f"mov.b32 h, {d >> 32};",
                          f"mov.b64 {name}, {{t, h}};"]  # fmt: skip
            lines.append(self.multiply(step, a, "db", keep if step == steps[0] else "1"))
        return "\n".join(lines)


HEAD = "{\n.reg .b64 da, db;\n.reg .b32 t, h;\n"
COMMIT, WAIT = "wgmma.commit_group.sync.aligned;\n", "wgmma.wait_group.sync.aligned 0;\n"
FENCE, PROXY, BARRIER = (
    "wgmma.fence.sync.aligned;\n",
    "fence.proxy.async.shared::cta;",
    "bar.sync 0;",
)


def whole(case: Case, **changes: Any) -> str:
    """One asm statement for a block."""
    return HEAD + FENCE + case.block(**changes) + "\n" + COMMIT + WAIT + "}"


def filled(case: Case) -> Program:
    """Shared memory holds the operands, for wgmma too."""
    p = begin((64 + case.n) * 128)
    p.asm(PROXY, "~{memory}")
    p.asm(BARRIER, "~{memory}")
    return p


def zeros(case: Case) -> list[str]:
    return ["0.0" if case.type_ == "float" else "0"] * case.registers


def fragments(p: Program) -> list[str]:
    """A of all steps, from %fragments."""
    wide = p.let(f"zext i32 {p.let('mul i32 %tid, 16')} to i64")
    pointer = p.let(f"getelementptr i32, ptr %fragments, i64 {wide}")
    pointers = [p.let(f"getelementptr i32, ptr {pointer}, i64 {i}") for i in range(16)]
    return [p.let(f"load i32, ptr {pointer}") for pointer in pointers]


def multiplied(p: Program, case: Case, text: str, values: list[str] | None = None) -> list[str]:
    words = fragments(p) if case.from_registers else []
    more = ",r" * (1 + len(words))
    given = ["i32 %at", *[f"i32 {w}" for w in words]]
    return p.tied(text, values or zeros(case), case.type_, more, *given)


def run(p: Program, case: Case, seed: int | None = None, base: int = 0) -> tuple[Array, Array]:
    """What the kernel leaves as (64, n), and the product."""
    a, b = case.operands()
    image = np.concatenate([case.a.image(a), case.b.image(b), np.zeros(2048, np.uint8)])
    out = np.zeros((128, case.registers), np.uint32)
    launch(p.text(PARAMETERS), image.nbytes, image, fragment_words(a), out, seed=seed, base=base)
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[case.d]
    found = np.zeros((64, case.n), dtype)
    found[accumulator_places(case.n)] = out.view(dtype)
    return found, (a.astype(np.float64) @ b.astype(np.float64).T).astype(dtype)


def assert_product(case: Case, text: str, seed: int | None = None, factor: int = 1) -> None:
    p = filled(case)
    store_words(p, multiplied(p, case, text), case.type_)
    found, expected = run(p, case, seed)
    np.testing.assert_array_equal(found, factor * expected)


BOTH = (False, True)
CASES = [Case("f16", 64, a, b, w) for w in (128, 64, 32, 0) for a in BOTH for b in BOTH]
CASES += [Case(t, 64, swizzle=w) for t in TYPES if t != "f16" for w in (128, 0)]
CASES += [Case(t, 64, from_registers=True) for t in TYPES]
CASES += [Case("bf16", n, b_turned=True) for n in (64, 128, 256)]
CASES += [
    Case("bf16", 8),
    Case("f16", 32, sums="f16"),
    Case("e5m2", 256, sums="f16"),
    Case("s8", 24),
]


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_products_in_every_layout(case: Case) -> None:
    assert_product(case, whole(case))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("from_registers", [False, True])
def test_warps_in_any_order(seed: int, from_registers: bool) -> None:
    case = Case(from_registers=from_registers)
    assert_product(case, whole(case), seed)


@pytest.mark.parametrize("is_masked", [True, False])
def test_shared_memory_of_another_program_of_a_cluster(is_masked: bool) -> None:
    """Its addresses hold the rank above, which must not come into descriptors."""
    case = Case(swizzle=0)
    p = begin((64 + case.n) * 128, is_masked=is_masked)
    p.asm(PROXY, "~{memory}")
    p.asm(BARRIER, "~{memory}")
    store_words(p, multiplied(p, case, whole(case)), "float")
    if not is_masked:
        with pytest.raises(EmulationError, match="matrix descriptor|nobody wrote"):
            run(p, case, base=0x10000400)
        return
    found, expected = run(p, case, base=0x10000400)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("fault", ["", "pending", "no wait", "no fence", "fence before the wait"])
def test_operands_that_asynchronous_copies_bring(fault: str, seed: int | None) -> None:
    case = Case()
    p = begin((64 + case.n) * 128, by_copies=True)
    wait = "" if fault == "no wait" else f"cp.async.wait_group {int(fault == 'pending')};"
    steps = [wait, "" if fault == "no fence" else PROXY, BARRIER]
    if fault == "fence before the wait":
        steps = [PROXY, wait, BARRIER]
    for step in filter(None, steps):
        p.asm(step, "~{memory}")
    store_words(p, multiplied(p, case, whole(case)), "float")
    if fault:
        match = "without a proxy fence" if "fence" in fault else "a copy may be writing"
        with pytest.raises(EmulationError, match=match):
            run(p, case, seed)
        return
    found, expected = run(p, case, seed)
    np.testing.assert_array_equal(found, expected)


def test_operands_of_tf32_lose_their_low_bits() -> None:
    case = Case("tf32", 8)
    a, b = (x + np.float32(2**-12) for x in case.operands())
    p = filled(case)
    store_words(p, multiplied(p, case, whole(case)), "float")
    case.operands = lambda: (a, b)  # type: ignore[method-assign]
    found, _ = run(p, case)
    cut = [(x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for x in (a, b)]
    np.testing.assert_allclose(found, cut[0] @ cut[1].T, rtol=1e-5, atol=1e-5)


def test_two_groups_one_waited_for_at_a_time() -> None:
    """Accumulators are handed on while on their way; only the last wait makes them known."""
    case = Case()
    p = filled(case)
    one = HEAD + FENCE + case.block() + "\n" + COMMIT + "wgmma.wait_group.sync.aligned 1;\n}"
    two = one.replace("da, db, 0", "da, db, 1", 1)
    values = multiplied(p, case, two, multiplied(p, case, one))
    store_words(p, p.tied(WAIT, values, "float", ""), "float")
    found, expected = run(p, case)
    np.testing.assert_array_equal(found, 2 * expected)


# ---- faults -------------------------------------------------------------------------------------


def assert_refused(p: Program, case: Case, match: str, seed: int | None = None) -> None:
    with pytest.raises(EmulationError, match=match):
        run(p, case, seed)


def after_product(text: str, case: Case | None = None, **faults: Any) -> Program:
    case = case or Case()
    p = filled(case)
    store_words(p, multiplied(p, case, text), case.type_)
    return p


def test_no_wait() -> None:
    text = HEAD + FENCE + Case().block() + "\n" + COMMIT + "}"
    assert_refused(after_product(text), Case(), "accumulator is read while")


def test_a_wait_that_leaves_a_group() -> None:
    text = whole(Case()).replace("wait_group.sync.aligned 0", "wait_group.sync.aligned 1")
    assert_refused(after_product(text), Case(), "accumulator is read while")


def test_a_group_that_is_not_committed() -> None:
    assert_refused(
        after_product(whole(Case()).replace(COMMIT, "")), Case(), "accumulator is read while"
    )


def test_a_wait_that_is_not_tied_to_the_accumulators() -> None:
    case = Case()
    p = filled(case)
    values = multiplied(p, case, HEAD + FENCE + case.block() + "\n" + COMMIT + "}")
    p.asm(WAIT, "~{memory}")
    store_words(p, values, "float")
    assert_refused(p, case, "accumulator is read while")


def test_no_wgmma_fence() -> None:
    assert_refused(after_product(whole(Case()).replace(FENCE, "")), Case(), "no wgmma.fence after")


@pytest.mark.parametrize("token", ["$0", "$65"])
def test_registers_that_are_written_after_the_fence(token: str) -> None:
    case = Case(from_registers=True)
    text = whole(case).replace(FENCE, FENCE + f"mov.b32 {token}, 0;\n")
    assert_refused(after_product(text, case), case, "no wgmma.fence after")


@pytest.mark.parametrize(("token", "match"), [("$0", "is read while"), ("$65", "may yet read")])
def test_registers_that_are_written_while_in_flight(token: str, match: str) -> None:
    case = Case(from_registers=True)
    text = whole(case).replace(WAIT, f"mov.b32 {token}, 0;\n" + WAIT)
    assert_refused(after_product(text, case), case, match)


@pytest.mark.parametrize("pending", [0, 1])
def test_registers_that_the_next_iteration_writes(pending: int) -> None:
    """A loop writes the registers of A again; the wgmma of the iteration before must be over."""
    case = Case(from_registers=True)
    p = filled(case)
    p.label("loop")
    sums = [f"%sum{i}" for i in range(32)]
    p.do("%i = phi i32 [ 0, %start ], [ %next, %loop ]")
    p.lines += [f"{s} = phi float [ 0.0, %start ], [ %new{i}, %loop ]" for i, s in enumerate(sums)]
    text = whole(case, keep="1").replace(WAIT, WAIT.replace("0", str(pending)))
    for i, value in enumerate(multiplied(p, case, text, sums)):
        p.lines[-32 + i] = p.lines[-32 + i].replace(f"{value} =", f"%new{i} =")
    p.do("%next = add i32 %i, 1")
    p.do("%again = icmp ult i32 %next, 3")
    p.do("br i1 %again, label %loop, label %end\nend:")
    store_words(p, p.tied(WAIT, [f"%new{i}" for i in range(32)], "float", ""), "float")
    if pending:
        for seed in (None, 0):
            assert_refused(p, case, "may yet read", seed)
        return
    found, expected = run(p, case)
    np.testing.assert_array_equal(found, 3 * expected)


def test_no_proxy_fence() -> None:
    case = Case()
    p = begin((64 + case.n) * 128)
    p.asm(BARRIER, "~{memory}")
    store_words(p, multiplied(p, case, whole(case)), "float")
    for seed in (None, 0):
        assert_refused(p, case, "without a proxy fence", seed)


def test_a_proxy_fence_behind_the_barrier() -> None:
    """It must be executed by who has written, before others are told."""
    case = Case()
    p = begin((64 + case.n) * 128)
    p.asm(BARRIER, "~{memory}")
    p.asm(PROXY, "~{memory}")
    store_words(p, multiplied(p, case, whole(case)), "float")
    for seed in (None, 0):
        assert_refused(p, case, "without a proxy fence", seed)


def test_no_barrier_before() -> None:
    case = Case()
    p = begin((64 + case.n) * 128)
    p.asm(PROXY, "~{memory}")
    store_words(p, multiplied(p, case, whole(case)), "float")
    for seed in (None, 0):
        assert_refused(p, case, "without a barrier|nobody wrote", seed)


def test_operands_that_are_overwritten_before_the_wait() -> None:
    case = Case()
    p = filled(case)
    values = multiplied(p, case, HEAD + FENCE + case.block() + "\n" + COMMIT + "}")
    p.asm("st.shared.b32 [$0], $0;", "r,~{memory}", f"i32 {p.let('shl i32 %tid, 2')}")
    store_words(p, p.tied(WAIT, values, "float", ""), "float")
    for seed in (None, 0):
        assert_refused(p, case, "overwritten|what was written", seed)


def test_operands_that_another_warp_overwrites_after_its_wait() -> None:
    """All warps have waited, but the one that writes cannot know of the others."""
    case = Case()
    p = begin((64 + case.n) * 128, threads=256)
    p.asm(PROXY, "~{memory}")
    p.asm(BARRIER, "~{memory}")
    p.do("%first = icmp ult i32 %tid, 128")
    p.do("br i1 %first, label %multiply, label %write\nmultiply:")
    store_words(p, multiplied(p, case, whole(case)), "float")
    p.do("BEFORE\nbr label %end\nwrite:\nAFTER")
    p.asm("st.shared.b32 [$0], $0;", "r,~{memory}", f"i32 {p.let('and i32 %tid, 28')}")
    p.do("br label %end\nend:")
    image = np.zeros((64 + case.n) * 128, np.uint8)
    arrays = image, np.zeros((128, 16), np.uint32), np.zeros((128, 32), np.uint32)
    for wait in ("", 'call void asm sideeffect "bar.sync 1, 256;", "~{memory}"()'):
        text = p.text(PARAMETERS).replace("BEFORE", wait).replace("AFTER", wait)
        for seed in (None, *range(3)):
            if wait:
                launch(text, image.nbytes, *arrays, warps=8, seed=seed)
                continue
            with pytest.raises(EmulationError, match=r"overwrit|what was written"):
                launch(text, image.nbytes, *arrays, warps=8, seed=seed)


@pytest.mark.parametrize("field", [16, 32], ids=["leading", "stride"])
def test_wrong_strides_give_wrong_results(field: int) -> None:
    case = Case(swizzle=0)
    text = HEAD + FENCE + case.block(change_b=-(1 << field)) + "\n" + COMMIT + WAIT + "}"
    p = after_product(text, case)
    found, expected = run(p, case)
    assert (found != expected).any()


def test_a_stride_that_breaks_the_swizzle() -> None:
    case = Case()
    assert_refused(after_product(whole(case, change_b=1 << 32), case), case, "groups of 8 rows are")


def test_a_start_that_breaks_the_swizzle() -> None:
    case = Case()
    assert_refused(after_product(whole(case, change_b=8), case), case, "whose rows start at")


def test_an_address_that_is_not_masked() -> None:
    case = Case()
    p = after_product(whole(case, change_a=1 << 14), case)
    assert_refused(p, case, "other bits set")


def test_operands_beyond_shared_memory() -> None:
    case = Case()
    assert_refused(after_product(whole(case, change_b=1024), case), case, "beyond")


def test_accumulators_of_another_shape() -> None:
    case = Case(n=64)
    other = Case(n=32, sums="f32")
    p = filled(case)
    values = multiplied(p, case, HEAD + FENCE + case.block() + "\n" + COMMIT + "}")
    text = HEAD + FENCE + other.block(keep="1") + "\n" + COMMIT + WAIT + "}"
    store_words(p, multiplied(p, other, text, values[:16]), "float")
    assert_refused(p, case, "another shape")


def test_an_accumulator_that_two_products_use() -> None:
    case = Case()
    p = filled(case)
    values = multiplied(p, case, HEAD + FENCE + case.block() + "\n" + COMMIT + "}")
    once = multiplied(p, case, whole(case, keep="1"), values)
    store_words(p, once, "float")
    store_words(p, multiplied(p, case, whole(case, keep="1"), values), "float")
    assert_refused(p, case, "is read while")


def test_a_warp_of_the_warpgroup_stays_away() -> None:
    case = Case()
    p = filled(case)
    p.do("%some = icmp ult i32 %tid, 96")
    p.do("br i1 %some, label %multiply, label %end\nmultiply:")
    store_words(p, multiplied(p, case, whole(case)), "float")
    p.do("br label %end\nend:")
    for seed in (None, 0):
        assert_refused(p, case, "not all four warps", seed)


def test_part_of_a_warp() -> None:
    case = Case()
    p = filled(case)
    p.do("%some = icmp ult i32 %tid, 120")
    p.do("br i1 %some, label %multiply, label %end\nmultiply:")
    store_words(p, multiplied(p, case, whole(case)), "float")
    p.do("br label %end\nend:")
    assert_refused(p, case, "not all threads of a warp")


def test_nobody_waits_before_the_end() -> None:
    case = Case()
    p = filled(case)
    multiplied(p, case, HEAD + FENCE + case.block() + "\n" + COMMIT + "}")
    assert_refused(p, case, "ends before a wgmma is waited for")
