"""Promote affine pointer loads to descriptor loads, which TMA issues.

    %i = (%pid * 128 + range(0, 128)) % %M
    %p = %a + %i * %stride + range(0, 64)           cf.for %k ... {
    cf.for %k ... (%p) {                              %x = mem.descriptor_load %a, %M, %K, %stride,
      %m = range(0, 64) < %K - %k * 64        ->          %pid * 128, %k * 64 {bulk = true}
      %x = mem.load %p, %m, 0                         ...
      cf.yield %p + 64                              }
    }

TMA must read the same elements as the load, in every launch: the address is a sum of rows and
columns of an array that starts at an argument and whose rows are multiples of 16 bytes apart; the
mask is the end of the array, or all indices are constants. Where indices wrap around instead
(`% M`), TMA reads zeros: nothing that leaves the program may use those rows
(_discarded_elements.py). Indices may not be negative, since pointers would read memory before the
array; of tile indices that is assumed (docs/adr/0022-tile-indices-start-at-zero.md).

Promotion follows the selection of MMAs, so that only loads are rewritten that TMA issues.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import cast

from tilewright.analysis import (
    BlockDim,
    Form,
    Kind,
    MemoryForms,
    NotABlock,
    StridedBlock,
    Symbol,
    added,
    analyze_alignment,
    as_constant,
    constant,
    integer_range,
    is_fence,
    quotient_of,
    strided_block,
)
from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.backends.nvidia.passes._discarded_elements import is_discarded
from tilewright.backends.nvidia.passes._materialize_forms import (
    dominates,
    is_computable,
    materialize,
)
from tilewright.backends.nvidia.passes._tma_loads import TmaLoads, bulk_buffer
from tilewright.backends.nvidia.schedule.schedule_loop import STORES, is_zero
from tilewright.backends.nvidia.tensor_map_sources import load_map
from tilewright.backends.nvidia.tensor_maps import MAP_ALIGNMENT
from tilewright.ir import Builder, Function, Op, Rewriter, Value
from tilewright.ir.types import DType, dtype_of, i32, i64, shape_of, u32
from tilewright.ops import (
    MAX_DESCRIPTOR_RANK,
    ConstantOp,
    DescriptorLoadOp,
    DivOp,
    ForOp,
    LoadOp,
    Sign,
    TransposeOp,
)
from tilewright.support import SourceLoc

ENDLESS = constant((1 << 31) - 1)
"""The extent of an array without a known end: no index is larger."""

LAST_INDEX = (1 << 31) - 512
"""The largest start of a block, past all extents: coordinates of a box are i32."""


def promote_loads(function: Function, decision: TmaLoads) -> dict[SourceLoc | None, str]:
    """Rewrite the loads that TMA issues. By each load that only wgmma reads, why it is not
    rewritten, or ""."""
    if not _has_wgmma(function):
        return {}
    loads = [op for op in function.walk() if isinstance(op, LoadOp) and bulk_buffer(op)]
    if not loads:
        return {}
    promotion = _LoadPromotion(function)
    found = {load: _outside_of_loops(load) or promotion.promote(load) for load in loads}
    found |= promotion.confirm(decision)
    return {load.loc: found[load] for load in loads}


def _has_wgmma(function: Function) -> bool:
    """Whether a function has wgmma dots, whose operands are the only loads to look for."""
    return any(isinstance(op, WgmmaOp) for op in function.walk())


def loads_before_loops(function: Function) -> list[LoadOp]:
    """The loads of a function's outermost block that only wgmma reads, before any store or fence:
    with layouts, as `promote_before_loops` takes them."""
    found: list[LoadOp] = []
    if not _has_wgmma(function):
        return found
    for op in function.body:
        if any(is_fence(inner) or isinstance(inner, STORES) for inner in op.walk()):
            break
        if isinstance(op, LoadOp) and bulk_buffer(op):
            found.append(op)
    return found


def promote_before_loops(
    function: Function, loads: Sequence[LoadOp]
) -> tuple[DescriptorLoadOp, ...]:
    """Rewrite those of `loads_before_loops` that TMA can issue; returns the new loads."""
    promotion = _LoadPromotion(function)
    for load in loads:
        promotion.promote(load)
    return promotion.keep_maps()


OUTSIDE_OF_LOOPS = "it is not in a loop, or in a branch of one"


def _outside_of_loops(load: LoadOp) -> str:
    """Why a load is left to `promote_before_loops`, or ""."""
    in_loop = load.parent is not None and isinstance(load.parent.owner, ForOp)
    return "" if in_loop else OUTSIDE_OF_LOOPS


class _LoadPromotion:
    """The promotion of the loads of one function.

    made: by load, its rewritten form, as long as TMA may refuse it
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._forms = MemoryForms(function)
        self._facts = analyze_alignment(function)
        self._made: dict[LoadOp, tuple[DescriptorLoadOp, Value]] = {}
        self._numbers: dict[Form, list[Value]] = defaultdict(list)
        for value in _scalars(function):
            self._numbers[self._forms.forms.form(value)].append(value)

    def promote(self, load: LoadOp) -> str:
        """Rewrite a load. Returns why it is not rewritten, or ""."""
        try:
            block = strided_block(load, self._forms, partial(self._is_stride, load))
            block = _ended(block, shape_of(load.type))
            self._require_access(load, block)
            for dim, part in enumerate(block.dims):
                self._require_index(load, dim, part)
            for part in block.outer:
                self._require_start(load, part)
        except NotABlock as problem:
            return str(problem)
        # The contiguous dim of a descriptor is its last.
        order = (0, 1) if as_constant(block.dims[1].stride) == 1 else (1, 0)
        self._made[load] = self._described(load, block, order)
        Rewriter.replace_uses(load.result, self._made[load][1])
        return ""

    def keep_maps(self) -> tuple[DescriptorLoadOp, ...]:
        """Restore loads whose buffers TMA does not fill; give the others the layouts of the pointer
        loads."""
        kept: list[DescriptorLoadOp] = []
        for load, (copied, tile) in self._made.items():
            buffer = bulk_buffer(copied) if tile is copied.result else None
            if buffer is None or load_map(copied, buffer, self._function.args) is None:
                self._take_back(load, copied, tile)
                continue
            copied.results[0].type = load.type
            Rewriter.erase(load)
            kept.append(copied)
        return tuple(kept)

    def confirm(self, decision: TmaLoads) -> dict[LoadOp, str]:
        """Restore the loads that TMA does not issue after all; returns the reasons."""
        found: dict[LoadOp, str] = {}
        # One refusal may cause others.
        while given_up := self._given_up(decision):
            for load, obstacle in given_up.items():
                found[load] = obstacle
                self._take_back(load, *self._made.pop(load))
        for load in self._made:
            Rewriter.erase(load)
        return found

    @staticmethod
    def _take_back(load: LoadOp, copied: DescriptorLoadOp, tile: Value) -> None:
        Rewriter.replace_uses(tile, load.result)
        for op in dict.fromkeys((cast("Op", tile.op), copied)):
            Rewriter.erase(op)

    def _given_up(self, decision: TmaLoads) -> dict[LoadOp, str]:
        obstacles = decision.obstacles(self._function)
        given_up = {load: obstacles[copied] for load, (copied, _) in self._made.items()}
        return {load: obstacle for load, obstacle in given_up.items() if obstacle}

    # ---- what must hold --------------------------------------------------------------------------

    def _require_access(self, load: LoadOp, block: StridedBlock) -> None:
        """Raise NotABlock for an access that TMA cannot issue, wherever the block is."""
        if load.volatile or load.cache not in ("", ".cg", ".ca"):
            raise NotABlock("it is volatile or has a cache operator")
        if load.other is not None and not is_zero(load.other):
            raise NotABlock("TMA fills masked elements with zeros only")
        if self._parameter(self._forms.forms.form(block.base)) is None:
            raise NotABlock("its array is not known at the launch")
        if self._facts[block.base].divisibility[0] < MAP_ALIGNMENT:
            raise NotABlock(f"its array is not known to be aligned to {MAP_ALIGNMENT} bytes")
        if len(block.dims) + len(block.outer) > MAX_DESCRIPTOR_RANK:
            raise NotABlock(f"it has more than {MAX_DESCRIPTOR_RANK} strides")

    def _require_index(self, load: LoadOp, dim: int, part: BlockDim) -> None:
        """Raise NotABlock where TMA would read other elements along a dim."""
        self._require_stride(part.stride, dtype_of(load.type).bytes)
        if part.extent is not None and self._extent(part.extent) is None:
            raise NotABlock("its mask ends at no argument of int32")
        self._require_start(load, part)
        if part.wrap and not is_discarded(load.result, dim, part.beyond, self._forms):
            raise NotABlock("rows or columns that wrap around are used")

    def _require_start(self, load: LoadOp, part: BlockDim) -> None:
        if self._sign(part.start) is Sign.UNKNOWN:
            raise NotABlock("its indices may be negative")
        if self._scalar(part.start, load) is None:
            if not is_computable(part.start, load):
                raise NotABlock("its first index is not computed before it")
            # An index of 64 bits may exceed a coordinate; past all extents that does not matter.
            if part.extent is None and not self._is_small_count(part.start):
                raise NotABlock("an index without an end is not computed in 32 bits")

    def _is_small_count(self, form: Form) -> bool:
        """Whether a form is less than the last index of loops that follow each other: a sum of
        c * n, for iteration n of x // d with c <= d, or of iterations in steps of d >= c. Those of
        the loops before the last one are all, whose number is exact."""
        loops = [self._counted_loop(monomial, factor) for monomial, factor in form]
        if not loops or None in loops:
            return False
        (first, *_), rest = loops, zip(loops, loops[1:], strict=False)
        follow = all(self._follows(before, after) for before, after in rest if before and after)
        return first is not None and self._facts[first.lower].sign is Sign.NON_NEGATIVE and follow

    def _follows(self, before: ForOp, after: ForOp) -> bool:
        """Whether a loop starts at the upper bound of another one, which its steps reach."""
        form = self._forms.forms.form
        step, facts = _constant(before.step) or 0, self._facts
        whole = step > 0 and not any(
            facts[bound].every % step for bound in (before.lower, before.upper)
        )
        return whole and form(after.lower) == form(before.upper)

    @staticmethod
    def _counted_loop(monomial: Sequence[Symbol], factor: int) -> ForOp | None:
        """The loop whose iterations a term counts, in steps that are not longer than its own."""
        (symbol, *others), count = monomial or (None,), None
        if symbol is None or others or symbol.kind not in (Kind.ITERATION, Kind.TRIPS):
            return None
        loop = symbol.key
        if not isinstance(loop, ForOp) or factor <= 0 or not _ends_in_32_bits(loop):
            return None
        count, step = loop.upper.op, _constant(loop.step) or 0
        if step == 1 and symbol.kind is Kind.ITERATION and isinstance(count, DivOp):
            step = _constant(count.rhs) or 0
        return loop if factor <= step else None

    def _require_stride(self, stride: Form, size: int) -> None:
        number = self._parameter(stride)
        if number is None:
            raise NotABlock("its stride is no argument")
        if number == 1:
            return
        every = number if isinstance(number, int) else self._facts[number].every
        if every * size % MAP_ALIGNMENT:
            raise NotABlock(f"its stride is not known to be a multiple of {MAP_ALIGNMENT} bytes")
        # No i32 stride is too large for TMA.
        fits = 0 < number < 1 << 31 if isinstance(number, int) else number.type is i32
        if not fits or self._sign(stride) is not Sign.NON_NEGATIVE:
            raise NotABlock("its stride may be negative, or more than an int32")

    def _is_stride(self, load: LoadOp, value: Value) -> bool:
        """Whether an argument may be the stride of an outer dim."""
        if not any(value is arg for arg in self._function.args):
            return False
        fact, size = self._facts[value], dtype_of(load.type).bytes
        return value.type is i32 and fact.natural and fact.every * size % MAP_ALIGNMENT == 0

    def _sign(self, form: Form) -> Sign:
        """The sign of a form, known from its terms or from a scalar with its value."""
        terms = min((self._sign_of_term(*term) for term in form), default=Sign.NON_NEGATIVE)
        return max([terms, *(self._facts[value].sign for value in self._numbers.get(form, ()))])

    def _sign_of_term(self, monomial: Sequence[Symbol], coefficient: int) -> Sign:
        if coefficient < 0:
            return Sign.UNKNOWN
        return min(map(self._sign_of_symbol, monomial), default=Sign.NON_NEGATIVE)

    def _sign_of_symbol(self, symbol: Symbol) -> Sign:
        if symbol.kind in (Kind.ITERATION, Kind.TRIPS):
            return Sign.NON_NEGATIVE
        return max((self._facts[value].sign for value in symbol.values), default=Sign.UNKNOWN)

    # ---- the descriptor --------------------------------------------------------------------------

    def _described(
        self, load: LoadOp, block: StridedBlock, order: tuple[int, int]
    ) -> tuple[DescriptorLoadOp, Value]:
        """The load by a descriptor, and the tile with its dims in the order of the load."""
        build = Builder.at(load)
        dropped = len(block.outer)
        dims = [*block.outer, *(block.dims[dim] for dim in order)]
        ends = [ENDLESS if part.extent is None else part.extent for part in dims]
        extents = [self._end(build, end) for end in ends]
        strides = [self._number(build, part.stride, i64) for part in dims[:-1]]
        starts = [self._start(build, part.start, load) for part in dims]
        numbers = (*extents, *strides, *starts)
        shape = (*[1] * dropped, *(shape_of(load.type)[dim] for dim in order))
        load_op = DescriptorLoadOp(block.base, numbers, shape, bulk=True, dropped=dropped)
        copied = build.emit(load_op)
        is_plain = order == (0, 1)
        return copied, copied.result if is_plain else build.value(TransposeOp(copied.result, order))

    def _parameter(self, form: Form) -> Value | int | None:
        """The launch constant that a form equals: an argument, or a number; None for others."""
        if (number := as_constant(form)) is not None:
            return number
        symbols = form[0][0]
        is_one = len(form) == 1 and form[0][1] == 1 and len(symbols) == 1
        key = symbols[0].key if is_one else None
        return next((arg for arg in self._function.args if arg is key), None)

    def _extent(self, form: Form) -> tuple[Value | int, int, int] | None:
        """An extent (a + b) div c: a, an argument of i32 or a number, and the numbers b and c."""
        _, dividend, divisor = quotient_of(form) or (None, form, 1)
        number = next((c for monomial, c in dividend if not monomial), 0)
        start = self._parameter(added(dividend, constant(number), -1))
        if start is None or (isinstance(start, Value) and start.type is not i32):
            return None
        return start, number, divisor

    def _start(self, build: Builder, form: Form, load: LoadOp) -> Value:
        """The first index of a block, as i32."""
        if (number := self._scalar(form, load)) is not None:
            return number if isinstance(number, Value) else build.constant(number, i32)
        index = materialize(build, form, load)
        if not self._is_small_count(form):
            index = build.min(index, LAST_INDEX)
        return build.cast(index, i32)

    def _scalar(self, form: Form, load: LoadOp) -> Value | int | None:
        """A constant, or an i32 scalar before a load, with the value of a form."""
        number = as_constant(form)
        found = (value for value in self._numbers.get(form, ()) if dominates(value, load))
        return next(found, None) if number is None else number

    def _end(self, build: Builder, form: Form) -> Value:
        """An extent as i32."""
        extent = self._extent(form)
        assert extent is not None
        start, number, divisor = extent
        if not isinstance(start, Value):
            return build.constant((start + number) // divisor, i32)
        end = build.add(start, number) if number else start
        return build.div(end, divisor) if divisor != 1 else end

    def _number(self, build: Builder, form: Form, type_: DType) -> Value:
        """An argument or a constant as a value of a type."""
        number = self._parameter(form)
        assert number is not None
        if isinstance(number, int):
            return build.constant(number, type_)
        return build.cast(number, type_)


def _ends_in_32_bits(loop: ForOp) -> bool:
    """Whether the upper bound of a loop is at most that of i32, as that of a loop downwards."""
    end = integer_range(loop.upper)
    return end is not None and loop.upper.type in (i32, u32) and end.high <= i32.max_int


def _ended(block: StridedBlock, shape: Sequence[int]) -> StridedBlock:
    """The block, where the array ends after it if its indices are constants and no mask ends it."""
    dims = [
        replace(part, extent=added(part.start, constant(size)))
        if part.extent is None and as_constant(part.start) is not None
        else part
        for part, size in zip(block.dims, shape, strict=True)
    ]
    return replace(block, dims=tuple(dims))


def _constant(value: Value) -> int | None:
    return int(value.op.value) if isinstance(value.op, ConstantOp) else None


def _scalars(function: Function) -> Iterator[Value]:
    """All i32 scalars except those that loops carry."""
    results = (result for op in function.walk() for result in op.results)
    indices = (op.index for op in function.walk() if isinstance(op, ForOp))
    return (value for value in chain(function.args, results, indices) if value.type is i32)
