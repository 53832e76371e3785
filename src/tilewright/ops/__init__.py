"""The tile ops: arithmetic, memory, shapes, contractions, control flow."""

# pyright: reportUnusedImport=false

from tilewright.ops.arith import (
    COMPARISONS,
    MATH_FUNCTIONS,
    AbsOp,
    AddOp,
    AndOp,
    BinaryOp,
    BitcastOp,
    CastOp,
    CompareOp,
    ConstantOp,
    DivOp,
    FmaOp,
    MathOp,
    MaxOp,
    MinOp,
    MulHighOp,
    MulOp,
    NegOp,
    OrOp,
    RemOp,
    SelectOp,
    ShlOp,
    ShrOp,
    SubOp,
    UnaryOp,
    XorOp,
)
from tilewright.ops.contraction import PRECISIONS, DotOp, ReduceOp, ScanOp
from tilewright.ops.control import (
    AssertOp,
    AssumeOp,
    ConditionOp,
    ForOp,
    IfOp,
    NumProgramsOp,
    PrintOp,
    ProgramIdOp,
    ReturnOp,
    StopOp,
    TimerOp,
    WhileOp,
    YieldOp,
)
from tilewright.ops.control_flow_values import (
    ancestor_in,
    blocks_around,
    incoming_values,
    loops_around,
)
from tilewright.ops.descriptor_access import (
    MAX_DESCRIPTOR_RANK,
    PADDINGS,
    REDUCTIONS,
    DescriptorAccess,
    DescriptorGatherOp,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorScatterOp,
    DescriptorStoreOp,
)
from tilewright.ops.index_sign import LARGEST_FACTOR, Sign, sign_of
from tilewright.ops.mapped import AsmOp, MapOp, VolatileAsmOp, wrong_assembly
from tilewright.ops.memory import (
    ACCESS_ORDERS,
    ATOMIC_KINDS,
    ATOMIC_TYPES,
    EVICTION_POLICIES,
    LOAD_MODIFIERS,
    MEMORY_ORDERS,
    SCOPES,
    STORE_MODIFIERS,
    AtomicCasOp,
    AtomicOp,
    BarrierOp,
    LoadOp,
    OffsetOp,
    StoreOp,
    pointee,
)
from tilewright.ops.order import HistogramOp, SortOp
from tilewright.ops.print_lines import (
    operand_text,
    printed_kind,
)
from tilewright.ops.region_checks import op_with_effects, wrong_args, wrong_end
from tilewright.ops.shape import (
    BroadcastOp,
    CatOp,
    ExpandDimsOp,
    GatherOp,
    HintOp,
    ItemOp,
    JoinOp,
    RangeOp,
    ReshapeOp,
    SplatOp,
    SplitOp,
    TransposeOp,
)
