"""Which ops the texts of a back end's first stage may hold."""

from tilewright.backends.cpu.ops import BlockTransposeOp
from tilewright.backends.manifest import legal_ops
from tilewright.ir import Op
from tilewright.ops import AddOp


def test_ops_of_a_backend_are_legal_where_it_names_them() -> None:
    assert AddOp in legal_ops()
    assert BlockTransposeOp in legal_ops(BlockTransposeOp)
    assert BlockTransposeOp not in legal_ops()


def test_shared_ops_that_are_loaded_later_are_legal() -> None:
    """Formulas, and the op that they branch with, are loaded at the first use of a function."""
    ops = legal_ops()
    late = type("LateOp", (Op,), {"__module__": "tilewright.transforms.expand.late"})
    assert late in ops
