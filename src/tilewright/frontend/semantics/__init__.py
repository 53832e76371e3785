"""Semantics of language functions and operators, for both front ends and `interpret=True`."""

# pyright: reportUnusedImport=false

from tilewright.frontend.frontend_options import FrontendOptions
from tilewright.frontend.semantics import (
    atomics,
    block_pointers,
    compiler_hints,
    creation,
    described_arrays,
    dot,
    extrema,
    index_helpers,
    machine_queries,
    mapped_functions,
    math_functions,
    memory_access,
    reductions,
    scaled_dot,
    selection,
    shape_functions,
    softmax_function,
    sorting,
)
from tilewright.frontend.semantics.described_arrays import described_array
from tilewright.frontend.semantics.dtype_casts import as_offset, cast_to, offset_dtype
from tilewright.frontend.semantics.literal_constants import constant, materialize
from tilewright.frontend.semantics.loop_bounds import (
    Bound,
    LoopBounds,
    ascending_bounds,
    check_step,
    descending_bounds,
    inclusive_bounds,
    index_dtype,
    integer_bounds,
    is_positive_step,
    range_bounds,
)
from tilewright.frontend.semantics.numeric_operators import (
    as_condition,
    binary,
    compare,
    logical,
    unary,
)
from tilewright.frontend.semantics.semantic_context import (
    Context,
    erase_ops,
    refuse_extension,
    warn_once,
)
from tilewright.frontend.semantics.semantics_registry import (
    call,
    call_builtin,
    implementation_of,
    implements,
)
from tilewright.frontend.semantics.shape_functions import part, without_axis
from tilewright.frontend.semantics.tile_indexing import getitem
from tilewright.frontend.semantics.value_attributes import getattr_, truth
from tilewright.frontend.typed_numbers import (
    TypedInt,
    converted,
    joined,
    plain_number,
    typed_number,
)
