"""Exchanges between the lanes of a warp, as `layout.warp_shuffles` planned them.

Elements of 8 and 16 bits travel in words. Which word a lane publishes, and where it puts the
received one, depends on its number. Where all lanes take a word from two others, one `prmt` makes
it, whose selector each thread computes once:

    word 0 of lane l      l0 l1 | h0 h1     (l: of 8 columns, h: of the next 8)
    word 1                l0 l1 | h0 h1     (a further row)
    published             lanes 0, 2: l0 l1 of both     lanes 1, 3: h0 h1 of both
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, memory_bits
from tilewright.backends.nvidia.lower.register_packing import Element, pack, unpack
from tilewright.layout import LaneMap, Shuffles
from tilewright.llvm import Val

_LANES = 32
_WORD_BITS = 32

Place = tuple[object, int]
"""A word, and the element in it."""


def exchange_lanes(
    state: GpuLowering, exchange: Shuffles, source: Sequence[Val], count: int, element: Element
) -> list[Val]:
    """The `count` registers per thread after an exchange of those of `source`."""
    words = _exchange_words(state, exchange, source, count, element)
    if words is not None:
        return words
    received: dict[int, Val] = {}
    for entry in exchange.rounds:
        values = [_pick(state, entry.publish, source, e) for e in exchange.published]
        packed = pack(state, values, element)
        if not entry.source.is_own_lane:
            lane = _lane_value(state, entry.source)
            packed = [shuffle_packed(state, "idx", w, lane) for w in packed]
        arrived = unpack(state, packed, len(values), element)
        _deliver(state, entry.receive, exchange.received, arrived, received)
    return [received[register] for register in range(count)]


def shuffle_packed(state: GpuLowering, mode: str, register: Val, lane: Val) -> Val:
    """Exchange one packed register of 32 or 64 bits (narrower ones are widened) between lanes."""
    # 31: no segments; -1: all lanes take part, since control flow is the same for all.
    text = f"shfl.sync.{mode}.b32 $0, $1, $2, 31, -1;"
    return _by_words(state, register, lambda word: state.asm(text, "=r,r,r", "i32", word, lane))


def shift_packed(
    state: GpuLowering, mode: str, register: Val, distance: int, width: int
) -> tuple[Val, Val]:
    """A packed register of the lane at a distance within segments of `width` lanes, and whether
    there is one; mode: `up` from a lower lane, `down` from a higher one."""
    name, code, shifted = f"llvm.nvvm.shfl.sync.{mode}.i32p", state.code, list[Val]()
    state.module.declare(name, f"declare {{ i32, i1 }} @{name}(i32, i32, i32, i32)")
    limits = (_LANES - width) << 8 | (0 if mode == "up" else _LANES - 1)

    def shift(word: Val) -> Val:
        arguments = f"i32 -1, {word.typed}, i32 {distance}, i32 {limits}"
        shifted.append(code.let_here(f"call {{ i32, i1 }} @{name}({arguments})", "{ i32, i1 }"))
        return code.let_here(f"extractvalue {shifted[-1].typed}, 0", "i32")

    moved = _by_words(state, register, shift)
    return moved, code.let_here(f"extractvalue {shifted[0].typed}, 1", "i1")


def _by_words(state: GpuLowering, register: Val, move: Callable[[Val], Val]) -> Val:
    """A packed register after a move of its 32 bits, or of each half of its 64 bits."""
    code = state.code
    if register.type == "i64":
        low = code.let_here(f"trunc i64 {register} to i32", "i32")
        shifted = code.let_here(f"lshr i64 {register}, 32", "i64")
        high = code.let_here(f"trunc i64 {shifted} to i32", "i32")
        wide = [code.let_here(f"zext i32 {move(p)} to i64", "i64") for p in (low, high)]
        top = code.let_here(f"shl i64 {wide[1]}, 32", "i64")
        return code.let_here(f"or i64 {top}, {wide[0]}", "i64")
    if register.type != "i32":
        moved = move(code.let_here(f"zext {register.typed} to i32", "i32"))
        return code.let_here(f"trunc i32 {moved} to {register.type}", register.type)
    return move(register)


def _lane_value(state: GpuLowering, entry: LaneMap) -> Val:
    value = state.linear(list(entry.bases), state.lane)
    if entry.constant:
        return state.code.let_here(f"xor i32 {value}, {entry.constant}", "i32")
    return value


def _pick(state: GpuLowering, publish: LaneMap, source: Sequence[Val], extra: int) -> Val:
    """source[publish(lane) ^ extra]: a tree of selects over the bits that the lane decides."""
    return _select_tree(state, publish, source, publish.constant ^ extra, 0)


def _select_tree(
    state: GpuLowering, entry: LaneMap, source: Sequence[Val], number: int, bit: int
) -> Val:
    while bit < len(entry.bases) and entry.bases[bit] == 0:
        bit += 1
    if bit == len(entry.bases):
        return source[number]
    without = _select_tree(state, entry, source, number, bit + 1)
    with_bit = _select_tree(state, entry, source, number ^ entry.bases[bit], bit + 1)
    return _select_bit(state, bit, with_bit, without)


def _select_bit(state: GpuLowering, bit: int, when_set: Val, when_clear: Val) -> Val:
    # Both lead to one register, as with broadcasts: nothing to select.
    if when_set.text == when_clear.text:
        return when_set
    masked = state.code.let_here(f"and i32 {state.lane}, {1 << bit}", "i32")
    test = state.code.let_here(f"icmp ne i32 {masked}, 0", "i1")
    text = f"select i1 {test}, {when_set.typed}, {when_clear.typed}"
    return state.code.let_here(text, when_set.type)


def _deliver(
    state: GpuLowering,
    receive: LaneMap,
    extras: Sequence[int],
    arrived: Sequence[Val],
    received: dict[int, Val],
) -> None:
    """Assign received[receive(lane) ^ extra] = value by selects: the number depends on the lane."""
    reachable = _span(receive.bases)
    for value, extra in zip(arrived, extras, strict=True):
        for delta in reachable:
            number = receive.constant ^ extra ^ delta
            old = received.get(number)
            # The first value needs no select: lanes it is wrong for get theirs in another round.
            if receive.is_constant or old is None:
                received[number] = value
                continue
            received[number] = _select_where(state, receive, delta, value, old)


def _span(bases: Sequence[int]) -> list[int]:
    span = {0}
    for basis in bases:
        span |= {n ^ basis for n in span}
    return sorted(span)


def _select_where(state: GpuLowering, entry: LaneMap, delta: int, value: Val, old: Val) -> Val:
    """`value` in the lanes whose register differs from the constant by `delta`, else `old`."""
    moved = state.linear(list(entry.bases), state.lane)
    test = state.code.let_here(f"icmp eq i32 {moved}, {delta}", "i1")
    return state.code.let_here(f"select i1 {test}, {value.typed}, {old.typed}", value.type)


# ---- words ---------------------------------------------------------------------------------------


def _exchange_words(
    state: GpuLowering, exchange: Shuffles, source: Sequence[Val], count: int, element: Element
) -> list[Val] | None:
    """The same by whole words; None if elements fill none, or words are made of more than two."""
    bits = memory_bits(element)
    size, together = _WORD_BITS // bits, len(exchange.published)
    if size < 2 or together % size or len(source) % size or count % size:
        return None
    permutes = _Permutes(state, bits)
    words: dict[object, Val] = dict(enumerate(pack(state, source, element)))
    for number, entry in enumerate(exchange.rounds):
        for first in range(0, together, size):
            extras = exchange.published[first : first + size]

            def published(lane: int, field: int) -> Place:
                return divmod(entry.publish(lane) ^ extras[field], size)  # noqa: B023

            word = permutes.word(words, published)
            if word is None:
                return None
            if not entry.source.is_own_lane:
                word = shuffle_packed(state, "idx", word, _lane_value(state, entry.source))
            words[number, first // size] = word
    results: list[Val] = []
    for first in range(0, count, size):

        def received(lane: int, field: int) -> Place:
            return _arrival(exchange, lane, first + field, size)  # noqa: B023

        word = permutes.word(words, received)
        if word is None:
            return None
        results.append(word)
    return unpack(state, results, count, element)


def _arrival(exchange: Shuffles, lane: int, register: int, size: int) -> Place:
    """Source of a lane's register: the round, the word, and the element."""
    for number, entry in enumerate(exchange.rounds):
        extra = entry.receive(lane) ^ register
        if extra in exchange.received:
            word, field = divmod(exchange.received.index(extra), size)
            return (number, word), field
    raise AssertionError(f"no round brings register {register}")


class _Permutes:
    """Words that are made of bytes of two others. bits: of an element."""

    def __init__(self, state: GpuLowering, bits: int) -> None:
        self.state, self.bytes = state, bits // 8
        self.fields = range(_WORD_BITS // bits)

    def word(self, words: dict[object, Val], place: Callable[[int, int], Place]) -> Val | None:
        """The word with the elements at places that depend on the lane and on the element's number;
        None if they are in more than two."""
        places = [[place(lane, field) for field in self.fields] for lane in range(_LANES)]
        used = list(dict.fromkeys(word for row in places for word, _ in row))
        if len(used) > 2:
            return None
        selectors = [self._selector(row, used) for row in places]
        if set(selectors) == {_AS_IT_IS}:
            return words[used[0]]
        chosen = self._chosen(selectors)
        if chosen is None:
            return None
        code = self.state.code
        first, second = words[used[0]], words[used[-1]]
        return code.call("llvm.nvvm.prmt", "i32", first, second, chosen)

    def _selector(self, row: Sequence[Place], used: Sequence[object]) -> int:
        """The operand of `prmt` that takes these elements: a byte's number in each four bits."""
        taken = [
            4 * used.index(word) + field * self.bytes + byte
            for word, field in row
            for byte in range(self.bytes)
        ]
        return sum(number << 4 * i for i, number in enumerate(taken))

    def _chosen(self, selectors: Sequence[int]) -> Val | None:
        """The selector of each lane; None if it is no affine function of the lane's number."""
        bases = tuple(selectors[1 << bit] ^ selectors[0] for bit in range(_LANES.bit_length() - 1))
        affine = LaneMap(selectors[0], bases)
        if any(affine(lane) != selector for lane, selector in enumerate(selectors)):
            return None
        return _lane_value(self.state, affine)


_AS_IT_IS = 0x3210
"""The selector of `prmt` that gives its first operand."""
