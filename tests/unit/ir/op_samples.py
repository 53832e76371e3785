"""Builds a valid instance of every registered op, so that tests cover ops nobody thought of.

Operand types come from the constraints, attributes from their choices and defaults. Ops whose
fields depend on each other are listed by hand; an op that neither way builds fails the tests.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright import ops
from tilewright.ir import OPS, Block, Builder, Constraint, Field, Function, Op, Value, verify
from tilewright.ir.types import (
    DType,
    PointerType,
    TileType,
    Type,
    f16,
    f32,
    f64,
    i1,
    i32,
    i64,
    u8,
)

CANDIDATES: tuple[Type, ...] = (
    i32,
    f32,
    i1,
    u8,
    PointerType(f32),
    TileType((4, 8), f32),
    TileType((8,), i32),
    TileType((8,), i1),
    TileType((8,), PointerType(f16)),
)
"""Types that operands are tried with; the first that a constraint accepts is taken."""

Maker = Callable[["Sampler"], Op]


class Sampler:
    """Collects the arguments of a function that holds one sample."""

    def __init__(self) -> None:
        self.body = Block()

    def arg(self, type_: Type) -> Value:
        """A new argument of the function."""
        return self.body.add_arg(type_, f"a{len(self.body.args)}")

    def region(self, args: tuple[Type, ...], end: Callable[[list[Value]], Op]) -> Block:
        """A block that takes `args` and ends with the op that `end` makes."""
        block = Block(args, tuple(f"b{i}" for i in range(len(args))))
        Builder(block).emit(end(block.args))
        return block

    def yielding(self, args: tuple[Type, ...], *which: int) -> Block:
        """A block that yields some of its arguments."""
        return self.region(args, lambda values: ops.YieldOp(tuple(values[i] for i in which)))


def _for(s: Sampler) -> Op:
    body = s.yielding((i32, f32, i32), 1, 2)
    inits = (s.arg(f32), s.arg(i32))
    return ops.ForOp(s.arg(i32), s.arg(i32), s.arg(i32), inits, body, stages=3, licm=False)


def _while(s: Sampler) -> Op:
    go = s.arg(i1)
    before = s.region((f32,), lambda values: ops.ConditionOp(go, tuple(values)))
    return ops.WhileOp((s.arg(f32),), before, s.yielding((f32,), 0))


def _if(s: Sampler) -> Op:
    x = s.arg(f64)
    blocks = [s.region((), lambda _: ops.YieldOp((x,))) for _ in range(2)]
    return ops.IfOp(s.arg(i1), blocks[0], blocks[1], (f64,))


def _reduce(s: Sampler) -> Op:
    inputs = (s.arg(TileType((4, 8), f32)), s.arg(TileType((4, 8), i32)))
    return ops.ReduceOp(inputs, s.yielding((f32, i32, f32, i32), 0, 3), axis=1)


def _scan(s: Sampler) -> Op:
    inputs = (s.arg(TileType((4, 8), f32)),)
    return ops.ScanOp(inputs, s.yielding((f32, f32), 1), axis=0, reverse=True)


def _dot(s: Sampler) -> Op:
    a, b, acc = (s.arg(TileType(shape, f32)) for shape in ((16, 8), (8, 32), (16, 32)))
    return ops.DotOp(a, b, acc, precision="tf32")


def _store(s: Sampler) -> Op:
    pointers, mask = s.arg(TileType((8,), PointerType(f32))), s.arg(TileType((8,), i1))
    return ops.StoreOp(pointers, s.arg(TileType((8,), f32)), mask, eviction="evict_last")


def _load(s: Sampler) -> Op:
    pointers, mask = s.arg(TileType((8,), PointerType(f32))), s.arg(TileType((8,), i1))
    return ops.LoadOp(pointers, mask, s.arg(TileType((8,), f32)), volatile=True)


def _array(s: Sampler, rank: int) -> tuple[Value, ...]:
    """Shape and strides of a descriptor."""
    return (*(s.arg(i32) for _ in range(rank)), *(s.arg(i64) for _ in range(rank - 1)))


def _descriptor_load(s: Sampler) -> Op:
    numbers = (*_array(s, 3), s.arg(i32), s.arg(i32), s.arg(i32))
    return ops.DescriptorLoadOp(s.arg(PointerType(f32)), numbers, (1, 4, 8), padding="nan")


def _descriptor_store(s: Sampler) -> Op:
    numbers = (*_array(s, 2), s.arg(i32), s.arg(i32))
    tile = s.arg(TileType((4, 8), f16))
    return ops.DescriptorStoreOp(s.arg(PointerType(f16)), tile, numbers, (4, 8))


def _descriptor_reduce(s: Sampler) -> Op:
    numbers = (*_array(s, 1), s.arg(i32))
    tile = s.arg(TileType((8,), i32))
    return ops.DescriptorReduceOp(s.arg(PointerType(i32)), tile, numbers, (8,), kind="xor")


def _descriptor_gather(s: Sampler) -> Op:
    numbers, rows = (*_array(s, 2), s.arg(i32)), s.arg(TileType((16,), i32))
    return ops.DescriptorGatherOp(s.arg(PointerType(f32)), rows, numbers, (1, 8))


def _descriptor_scatter(s: Sampler) -> Op:
    numbers, rows = (*_array(s, 2), s.arg(i32)), s.arg(TileType((16,), i32))
    tile = s.arg(TileType((16, 8), f32))
    return ops.DescriptorScatterOp(s.arg(PointerType(f32)), tile, rows, numbers, (1, 8))


def _map(s: Sampler) -> Op:
    inputs = (s.arg(TileType((8,), f32)), s.arg(TileType((8,), i32)))
    return ops.MapOp(inputs, s.yielding((f32, f32, i32, i32), 1, 0, 2, 3), pack=2)


def _assembly(s: Sampler, op_class: type[ops.AsmOp | ops.VolatileAsmOp]) -> Op:
    text, result = 'add.s32 $0, $1, 1; // "\\"', (TileType((8,), i32),)
    return op_class((s.arg(TileType((8,), i32)),), text, "=r,r", result, pack=2)


BY_HAND: dict[type[Op], Maker] = {
    ops.ForOp: _for,
    ops.WhileOp: _while,
    ops.IfOp: _if,
    ops.ReduceOp: _reduce,
    ops.ScanOp: _scan,
    ops.DotOp: _dot,
    ops.MapOp: _map,
    ops.AsmOp: lambda s: _assembly(s, ops.AsmOp),
    ops.VolatileAsmOp: lambda s: _assembly(s, ops.VolatileAsmOp),
    ops.StoreOp: _store,
    ops.StopOp: lambda s: ops.StopOp(s.arg(PointerType(i64)), (s.arg(i64),)),
    ops.LoadOp: _load,
    ops.DescriptorLoadOp: _descriptor_load,
    ops.DescriptorStoreOp: _descriptor_store,
    ops.DescriptorReduceOp: _descriptor_reduce,
    ops.DescriptorGatherOp: _descriptor_gather,
    ops.DescriptorScatterOp: _descriptor_scatter,
    ops.ConstantOp: lambda s: ops.ConstantOp(-0.5, TileType((8,), f32)),
    ops.RangeOp: lambda s: ops.RangeOp(3, 11),
    ops.SplatOp: lambda s: ops.SplatOp(s.arg(f16), (4, 1)),
    ops.BroadcastOp: lambda s: ops.BroadcastOp(s.arg(TileType((4, 1), f32)), (4, 8)),
    ops.ReshapeOp: lambda s: ops.ReshapeOp(s.arg(TileType((4, 8), f32)), (32,)),
    ops.TransposeOp: lambda s: ops.TransposeOp(s.arg(TileType((4, 8), f32)), (1, 0)),
    ops.ExpandDimsOp: lambda s: ops.ExpandDimsOp(s.arg(TileType((4, 8), f32)), 1),
    ops.SplitOp: lambda s: ops.SplitOp(s.arg(TileType((4, 2), f32))),
    ops.ItemOp: lambda s: ops.ItemOp(s.arg(TileType((1, 1), f32))),
    ops.HintOp: lambda s: ops.HintOp(s.arg(TileType((4, 8), i32)), divisibility=(1, 16)),
    ops.GatherOp: lambda s: ops.GatherOp(
        s.arg(TileType((16, 8), f32)), s.arg(TileType((4, 8), i32)), 0
    ),
    ops.SortOp: lambda s: ops.SortOp(s.arg(TileType((4, 8), i32)), 1, 4, descending=True),
    ops.HistogramOp: lambda s: ops.HistogramOp(
        s.arg(TileType((8,), i32)), 16, s.arg(TileType((8,), i1))
    ),
    ops.BitcastOp: lambda s: ops.BitcastOp(s.arg(f32), i32),
    ops.CastOp: lambda s: ops.CastOp(s.arg(f32), f16, rounding="rtz"),
    ops.AtomicOp: lambda s: ops.AtomicOp(s.arg(PointerType(i64)), s.arg(i64), kind="max"),
    ops.AtomicCasOp: lambda s: ops.AtomicCasOp(s.arg(PointerType(i64)), s.arg(i64), s.arg(i64)),
}


def shared_ops() -> list[type[Op]]:
    """Ops of every back end; ops of one, and of one pass, have tests beside it."""
    return [cls for cls in OPS.values() if cls.__module__.startswith("tilewright.ops")]


def sample(cls: type[Op]) -> Function:
    """A verified function that contains one instance of an op class."""
    sampler = Sampler()
    builder = Builder(sampler.body)
    op = BY_HAND[cls](sampler) if cls in BY_HAND else _by_fields(cls, sampler)
    if op.opcode in ("cf.yield", "cf.condition"):
        return _in_a_region(cls, sampler)
    builder.emit(op)
    if op.opcode != "cf.return":
        builder.emit(ops.ReturnOp())
    function = Function("sample", sampler.body)
    assert not verify(function), f"no valid sample of {cls.opcode}: add one to BY_HAND"
    return function


def _in_a_region(cls: type[Op], sampler: Sampler) -> Function:
    """Terminators of regions are sampled inside the op that they belong to."""
    owner = ops.WhileOp if cls is ops.ConditionOp else ops.IfOp
    function = sample(owner)
    assert any(type(op) is cls for op in function.walk())
    return function


def _by_fields(cls: type[Op], sampler: Sampler) -> Op:
    values: dict[str, object] = {}
    for field in cls.fields:
        if field.role == "operand":
            values[field.name] = sampler.arg(_type_for(field.constraint))
        elif field.role == "variadic":
            values[field.name] = (sampler.arg(_type_for(field.constraint)),)
        elif field.role == "attr":
            values[field.name] = _attr(field)
        else:
            assert field.role == "optional", f"{cls.opcode} has regions: add it to BY_HAND"
    return cls(**values)


def _type_for(constraint: Constraint) -> Type:
    return next(t for t in CANDIDATES if constraint.accepts(t))


def _attr(field: Field) -> object:
    """The last choice, which is seldom the default; else the default, else a string."""
    if field.choices:
        return field.choices[-1]
    return field.default if field.has_default else "text"


SCALARS: tuple[DType, ...] = (i1, i32, i64, u8, f16, f32, f64)
