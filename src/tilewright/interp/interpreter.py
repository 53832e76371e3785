"""Interpreter of tile IR: op by op with NumPy, one program instance after the other.

The combine region of a reduction or scan runs on whole slices if all its ops are element-wise:
adjacent pairs are combined until one slice is left (a tree, which preserves left and right), and
scans double their reach in each step. Otherwise the elements are folded one by one from the left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from tilewright.interp.access_errors import BOUND, CONDITION
from tilewright.interp.concrete_value import ConcreteValue
from tilewright.interp.numpy_dtypes import Array, as_array, numpy_dtype
from tilewright.interp.numpy_rules import evaluate
from tilewright.interp.program_state import MACHINE_RULES, Grid, Machine
from tilewright.interp.tile_indices import check_dividend, follow_sign
from tilewright.ir import REFERENCE_RULES, REGION_RULES, Block, Op, Trait, Value
from tilewright.ir.types import BufferType, PointerType, element_of, shape_of
from tilewright.ops import ForOp, IfOp, MapOp, ReduceOp, RemOp, ScanOp, WhileOp
from tilewright.support import errors

Environment = dict[Value, ConcreteValue]


class Interpreter:
    """Evaluator of ops on a machine. `environment` holds the values of running blocks."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.environment: Environment = {}
        # greater than 0 while a combine region runs, where arrays have the shape of slices
        self._on_slices = 0
        self._structured: dict[
            type[Op], Callable[[Any, Sequence[ConcreteValue]], list[ConcreteValue]]
        ]
        self._structured = {
            ForOp: self._for,
            WhileOp: self._while,
            IfOp: self._if,
            ReduceOp: self._reduce,
            ScanOp: self._scan,
            MapOp: self._map,
        }

    def run(self, op: Op, inputs: Sequence[ConcreteValue]) -> list[ConcreteValue]:
        """The results of one op. Designed errors get the op's location."""
        try:
            region_rule = REGION_RULES.get(type(op))
            if region_rule is not None:
                arrays = region_rule(op, self._run_region, *[value.data for value in inputs])
                found = zip(op.results, arrays, strict=True)
                return [ConcreteValue(result.type, as_array(array)) for result, array in found]
            structured = self._structured.get(type(op))
            results = structured(op, inputs) if structured else self._simple(op, inputs)
            # in a combine region, arrays have the shape of slices: the fold itself is checked
            if self.machine.checks is not None and not self._on_slices:
                self.machine.checks.follow(op, inputs, results)
            return results
        except errors.TilewrightError as error:
            # the error keeps its first location: with_loc only sets a missing one
            raise error.with_loc(op.loc) from None

    def run_block(self, block: Block, args: Sequence[ConcreteValue]) -> list[ConcreteValue]:
        """The operands of a block's terminator."""
        environment = self.environment
        for arg, value in zip(block.args, args, strict=True):
            environment[arg] = value
        last = block.terminator
        for op in block:
            inputs = [self._value(operand) for operand in op.operands]
            if op is last:
                return inputs
            for result, value in zip(op.results, self.run(op, inputs), strict=True):
                environment[result] = value
        raise AssertionError("a block without terminator")

    def _run_region(self, block: Block, *args: Array) -> list[ConcreteValue]:
        values = zip(block.args, args, strict=True)
        return self.run_block(block, [ConcreteValue(arg.type, value) for arg, value in values])

    def _value(self, value: Value) -> ConcreteValue:
        return value if isinstance(value, ConcreteValue) else self.environment[value]

    def _simple(self, op: Op, inputs: Sequence[ConcreteValue]) -> list[ConcreteValue]:
        if isinstance(op, RemOp):
            check_dividend(inputs[0])
        machine_rule = MACHINE_RULES.get(type(op))
        if machine_rule is not None:
            arrays = machine_rule(self.machine, op, inputs)
        else:
            rule = REFERENCE_RULES.get(type(op))
            if rule is None:
                raise errors.InterpreterError(f"the interpreter has no rule for {op.opcode}")
            arrays = evaluate(op, rule, *[value.data for value in inputs])
        return [
            self._result(op, result, array, inputs)
            for result, array in zip(op.results, arrays, strict=True)
        ]

    def _result(
        self, op: Op, result: Value, array: Array, inputs: Sequence[ConcreteValue]
    ) -> ConcreteValue:
        type_ = result.type
        if isinstance(type_, BufferType):
            # unchecked: memory in the form of the rules that use it
            return ConcreteValue(type_, array, name=result.name)
        assert array.dtype == numpy_dtype(type_), f"{op.opcode} gave {array.dtype} for {type_}"
        assert self._on_slices or array.shape == shape_of(type_), f"{op.opcode}: {array.shape}"
        value = ConcreteValue(type_, array, name=result.name)
        follow_sign(op, value, inputs)
        if isinstance(element_of(type_), PointerType):
            # pointers of two arguments (a select) have no single root: all arrays are allowed then
            roots = {v.root for v in inputs if isinstance(element_of(v.type), PointerType)}
            value.root = roots.pop() if len(roots) == 1 else None
        return value

    # --- control flow -----------------------------------------------------------------------------

    def _for(self, op: ForOp, inputs: Sequence[ConcreteValue]) -> list[ConcreteValue]:
        self._decide(BOUND, *inputs[:3])
        lower, upper, step = (int(value.data) for value in inputs[:3])
        carried = list(inputs[3:])
        # an empty loop may have any step; an endless one is an error
        if step <= 0:
            if lower >= upper:
                return carried
            raise errors.InterpreterError(f"the step of a loop must be positive, found {step}")
        index_type = inputs[0].type
        dtype = numpy_dtype(index_type)
        for number in range(lower, upper, step):
            index = ConcreteValue(index_type, np.array(number, dtype))
            # steps are positive, so no index is below the first
            index.sign, index.work = inputs[0].sign, inputs[0].work
            carried = self.run_block(op.body, [index, *carried])
        return carried

    def _while(self, op: WhileOp, inputs: Sequence[ConcreteValue]) -> list[ConcreteValue]:
        carried = list(inputs)
        while True:
            go, *carried = self.run_block(op.before, carried)
            self._decide(CONDITION, go)
            if not go.data:
                return carried
            carried = self.run_block(op.body, carried)

    def _if(self, op: IfOp, inputs: Sequence[ConcreteValue]) -> list[ConcreteValue]:
        self._decide(CONDITION, inputs[0])
        return self.run_block(op.then if inputs[0].data else op.orelse, ())

    def _decide(self, what: str, *values: ConcreteValue) -> None:
        """Check scalars before control flow depends on them. Errors: UndefinedElement."""
        if self.machine.checks is not None:
            self.machine.checks.check_condition(what, *values)

    # --- reduction and scan -----------------------------------------------------------------------

    def _reduce(self, op: ReduceOp, inputs: Sequence[ConcreteValue]) -> list[ConcreteValue]:
        # The folded axis first, so that slices are indexed by position.
        slices = [np.moveaxis(value.data, op.axis, 0) for value in inputs]
        fold = self._fold_tree if _is_elementwise(op.combine) else self._fold_elements
        reduced = fold(op.combine, slices)
        return [
            ConcreteValue(r.type, as_array(x)) for r, x in zip(op.results, reduced, strict=True)
        ]

    def _fold_tree(self, combine: Block, slices: list[Array]) -> list[Array]:
        # neighbours are combined, never reordered: the op is associative, not always commutative
        while (count := len(slices[0])) > 1:
            even = [x[0 : count - 1 : 2] for x in slices]
            odd = [x[1:count:2] for x in slices]
            pairs = self._combine(combine, even, odd)
            # an odd slice remains for the next round
            if count % 2:
                pairs = [np.concatenate([p, x[-1:]]) for p, x in zip(pairs, slices, strict=True)]
            slices = pairs
        return [x[0] for x in slices]

    def _fold_elements(self, combine: Block, slices: list[Array]) -> list[Array]:
        return [x[-1] for x in self._scan_elements(combine, slices)]

    def _scan(self, op: ScanOp, inputs: Sequence[ConcreteValue]) -> list[ConcreteValue]:
        slices = [np.moveaxis(value.data, op.axis, 0) for value in inputs]
        slices = [x[::-1] if op.reverse else x for x in slices]
        scan = self._scan_doubling if _is_elementwise(op.combine) else self._scan_elements
        scanned = scan(op.combine, slices)
        scanned = [x[::-1] if op.reverse else x for x in scanned]
        return [
            ConcreteValue(r.type, np.moveaxis(x, 0, op.axis))
            for r, x in zip(op.results, scanned, strict=True)
        ]

    def _scan_doubling(self, combine: Block, slices: list[Array]) -> list[Array]:
        reach = 1
        while reach < len(slices[0]):
            before, here = [x[:-reach] for x in slices], [x[reach:] for x in slices]
            combined = self._combine(combine, before, here)
            # The first `reach` prefixes are final.
            slices = [np.concatenate([x[:reach], c]) for x, c in zip(slices, combined, strict=True)]
            reach *= 2
        return slices

    def _scan_elements(self, combine: Block, slices: list[Array]) -> list[Array]:
        # Copies: results overwrite the elements that later steps combine with.
        scanned = [x.copy() for x in slices]
        for position, *rest in np.ndindex(slices[0].shape):
            if position == 0:
                continue
            here, before = (position, *rest), (position - 1, *rest)
            left = [as_array(x[before]) for x in scanned]
            right = [as_array(x[here]) for x in slices]
            for x, value in zip(scanned, self._combine(combine, left, right), strict=True):
                x[here] = value
        return scanned

    def _map(self, op: MapOp, inputs: Sequence[ConcreteValue]) -> list[ConcreteValue]:
        """Groups along the last dimension; all at once if the function is element-wise."""
        pack, block = op.pack, op.function
        columns = [_every(value.data, i, pack) for value in inputs for i in range(pack)]
        shape = columns[0].shape
        if _is_elementwise(block):
            found = self._on_arrays(block, columns, shape)
        else:
            found = [np.empty(shape, numpy_dtype(v.type)) for v in block.terminator.operands]
            for place in np.ndindex(shape):
                values = self._on_arrays(block, [as_array(x[place]) for x in columns], ())
                for target, value in zip(found, values, strict=True):
                    target[place] = value
        groups = [found[i : i + pack] for i in range(0, len(found), pack)]
        return [
            ConcreteValue(r.type, as_array(np.stack(group, axis=-1).reshape(shape_of(r.type))))
            for r, group in zip(op.results, groups, strict=True)
        ]

    def _combine(self, combine: Block, left: list[Array], right: list[Array]) -> list[Array]:
        """The combine region on slices, or on single elements."""
        return self._on_arrays(combine, [*left, *right], left[0].shape)

    def _on_arrays(
        self, block: Block, arrays: Sequence[Array], shape: tuple[int, ...]
    ) -> list[Array]:
        """The results of a region of scalars for arrays of one shape."""
        args = [ConcreteValue(arg.type, x) for arg, x in zip(block.args, arrays, strict=True)]
        self._on_slices += 1
        try:
            results = self.run_block(block, args)
        finally:
            self._on_slices -= 1
        return [np.broadcast_to(value.data, shape) for value in results]


def _every(x: Array, first: int, pack: int) -> Array:
    return x if pack == 1 else x[..., first::pack]


def _is_elementwise(block: Block) -> bool:
    # Other ops, loops or gathers for example, do not work on slices of another shape.
    return all(Trait.ELEMENTWISE in op.traits or Trait.TERMINATOR in op.traits for op in block)


def program_ids(grid: Grid, only: Grid | None = None) -> Iterator[Grid]:
    """The program instances of a grid, the first axis fastest; or only `only`.

    Errors: InterpreterError if it is not in the grid, unless that is empty.
    """
    if only is None or 0 in grid:
        # reversed twice: product varies its last factor fastest, a grid its first axis
        return ((x, y, z) for z, y, x in product(*(range(n) for n in reversed(grid))))
    if any(i >= n for i, n in zip(only, grid, strict=True)):
        raise errors.InterpreterError(f"the grid {grid} has no program {only}")
    return iter([only])
