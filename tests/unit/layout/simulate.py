"""Executes conversion plans element by element, by the definitions of the instructions alone.

Nothing here uses the algebra of the planner: layouts are only ever *applied*, ldmatrix and
stmatrix are written as the PTX ISA describes them, and bank conflicts are counted from byte
addresses.
"""

from collections.abc import Callable
from itertools import product

from tilewright.layout import (
    LANE,
    REGISTER,
    WARP,
    ConversionPlan,
    Identity,
    LinearLayout,
    RegisterPermute,
    SharedAccess,
    SharedMemory,
    WarpShuffle,
)

Place = tuple[int, int, int]  # register, lane, warp
File = dict[Place, tuple[int, ...]]  # what each place holds: the coordinates of an element


def register_file(layout: LinearLayout) -> File:
    """The element that every place holds."""
    sizes = [layout.in_size(name) for name in (REGISTER, LANE, WARP)]
    return {
        (r, lane, w): layout.apply(**_known(layout, {REGISTER: r, LANE: lane, WARP: w}))
        for r, lane, w in product(*map(range, sizes))
    }


def _known(layout: LinearLayout, place: dict[str, int]) -> dict[str, int]:
    return {name: value for name, value in place.items() if name in layout.in_names}


def run_plan(plan: ConversionPlan, src: LinearLayout, dst: LinearLayout, bits: int) -> File:
    """What the destination places hold after the plan ran on the source places."""
    before = register_file(src)
    match plan:
        case Identity():
            return before
        case RegisterPermute(sources):
            lanes, warps = range(src.in_size(LANE)), range(src.in_size(WARP))
            moves = product(enumerate(sources), lanes, warps)
            return {(to, lane, w): before[at, lane, w] for (to, at), lane, w in moves}
        case WarpShuffle():
            return _run_shuffles(plan, before, src)
        case SharedMemory():
            return _run_shared(plan, before, src, dst, bits)


def _run_shuffles(plan: WarpShuffle, before: File, src: LinearLayout) -> File:
    after: File = {}
    exchange = plan.exchange
    lanes = range(src.in_size(LANE))
    for warp, round_ in product(range(src.in_size(WARP)), exchange.rounds):
        wires = {
            lane: [before[round_.publish(lane) ^ e, lane, warp] for e in exchange.published]
            for lane in lanes
        }
        for lane in lanes:
            word = wires[round_.source(lane)]
            for value, e in zip(word, exchange.received, strict=True):
                place = (round_.receive(lane) ^ e, lane, warp)
                assert place not in after, "a register is received twice"
                after[place] = value
    return after


def _run_shared(
    plan: SharedMemory, before: File, src: LinearLayout, dst: LinearLayout, bits: int
) -> File:
    after: File = {}
    copies = dict(plan.copies)
    memories: dict[int, dict[int, tuple[int, ...]]] = {}

    def memory(warp: int) -> dict[int, tuple[int, ...]]:
        """One buffer for the block; one for each warp where the plan says that this suffices."""
        return memories.setdefault(warp if plan.warp_local else 0, {})

    def store(offset: int, place: Place) -> None:
        register, lane, warp = place
        if not plan.warp_local and (lane & copies[LANE] or warp & copies[WARP]):
            return
        value = before[register, lane, warp]
        assert memory(warp).get(offset, value) == value, "two elements in one cell"
        memory(warp)[offset] = value

    def load(offset: int, place: Place) -> None:
        assert place not in after, "a register is loaded twice"
        after[place] = memory(place[2])[offset]

    each_element(plan.store, src, bits, store)
    each_element(plan.load, dst, bits, load)
    for cells in memories.values():
        assert all(0 <= offset < plan.bytes * 8 // bits for offset in cells)
    if not plan.warp_local:
        assert memories[0] == {o: plan.shared.apply(offset=o) for o in memories[0]}
    return after


def each_element(
    access: SharedAccess, layout: LinearLayout, bits: int, visit: Callable[[int, Place], None]
) -> None:
    """Call ``visit(offset, place)`` for every element that the access moves."""
    move = _vector if access.kind == "vector" else _matrices
    for warp in range(layout.in_size(WARP)):
        for instruction, registers in enumerate(access.groups):
            addresses = lane_addresses(access, layout, instruction, warp)
            move(access, registers, addresses, warp, bits, visit)


def lane_addresses(
    access: SharedAccess, layout: LinearLayout, instruction: int, warp: int
) -> list[int]:
    """The element offset that every lane gives to one instruction."""
    return [
        access.address.apply(instruction=instruction, lane=lane, warp=warp)[0]
        for lane in range(layout.in_size(LANE))
    ]


def _vector(
    access: SharedAccess,
    registers: tuple[int, ...],
    addresses: list[int],
    warp: int,
    bits: int,
    visit: Callable[[int, Place], None],
) -> None:
    assert access.bits == bits * len(registers) <= 128
    for lane, address in enumerate(addresses):
        assert address % len(registers) == 0, "a vector must be aligned"
        for step, register in enumerate(registers):
            visit(address + step, (register, lane, warp))


def _matrices(
    access: SharedAccess,
    registers: tuple[int, ...],
    addresses: list[int],
    warp: int,
    bits: int,
    visit: Callable[[int, Place], None],
) -> None:
    """PTX: row i of matrix j at the address of lane 8j + i; lane l gets word l%4 of row l//4."""
    per_word, per_row = 32 // bits, 128 // bits
    matrices = len(registers) // per_word
    assert access.bits == 32 * matrices and matrices in (1, 2, 4)
    assert all(address % per_row == 0 for address in addresses[: 8 * matrices])
    for matrix, lane, part in product(range(matrices), range(32), range(per_word)):
        place = (registers[matrix * per_word + part], lane, warp)
        if access.kind == "matrix":
            row, column = lane // 4, lane % 4 * per_word + part
        else:
            assert bits == 16
            row, column = lane % 4 * 2 + part, lane // 4
        visit(addresses[8 * matrix + row] + column, place)


def count_degree(access: SharedAccess, layout: LinearLayout, bits: int) -> int:
    """The largest number of passes of any group of lanes served together, counted."""
    worst = 1
    for warp in range(layout.in_size(WARP)):
        for instruction in range(len(access.groups)):
            addresses = [
                offset * bits // 8 for offset in lane_addresses(access, layout, instruction, warp)
            ]
            worst = max(worst, _worst_group(access, addresses))
    return worst


def _worst_group(access: SharedAccess, addresses: list[int]) -> int:
    width = access.bits // 8 if access.kind == "vector" else 16
    if access.kind != "vector":
        addresses = addresses[: 8 * access.bits // 32]
    group = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[width]
    worst = 1
    for start in range(0, len(addresses), group):
        words = {
            word
            for address in addresses[start : start + group]
            for word in range(address // 4, (address + width - 1) // 4 + 1)
        }
        banks = [word % 32 for word in words]
        worst = max(worst, *(banks.count(bank) for bank in banks))
    return worst
