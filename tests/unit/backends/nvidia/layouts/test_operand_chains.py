"""What stands between loads and an operand of a product: found, or refused where others use it."""

import pytest

from tilewright.backends.nvidia.layouts.layout_propagation import part_along, with_parts
from tilewright.backends.nvidia.layouts.operand_chains import OperandChain, operand_chain
from tilewright.ir import Op, parse_function
from tilewright.layout import LinearLayout, operand_layout, wgmma_fragment
from tilewright.ops import DotOp

HEAD = """func @f(%p: tile<32x64xptr<i8>>, %q: tile<16x64xptr<i8>>, %a: tile<64x32xf16>,
    %c: tile<64x64xf32>, %to: tile<32x64xptr<f16>>) {
"""
CAST = """  %w = mem.load %p : tile<32x64xi8>
  %b = arith.cast %w : tile<32x64xf16>
"""
JOINED = """  %w = mem.load %q : tile<16x64xi8>
  %j = tile.join %w, %w : tile<16x64x2xi8>
  %t = tile.transpose %j {order = [0, 2, 1]} : tile<16x2x64xi8>
  %r = tile.reshape %t {shape = [32, 64]} : tile<32x64xi8>
  %b = arith.cast %r : tile<32x64xf16>
"""
DOT = "  %d = tile.dot %a, %b, %c : tile<64x64xf32>\n"
LEFT = operand_layout(
    wgmma_fragment(64, 16),
    LinearLayout.parse(
        "register=(0,1)(8,0)(0,8)(0,16)(0,32) lane=(0,2)(0,4)(1,0)(2,0)(4,0) warp=(16,0)(32,0) "
        "-> dim0:64 dim1:64"
    ),
    "a",
    32,
)


def chain(body: str) -> OperandChain | None:
    """That of the second operand of the first product."""
    function = parse_function(f"{HEAD}{body}  cf.return\n}}\n")
    product = next(op for op in function.body if isinstance(op, DotOp))
    assert isinstance(product, Op)
    return operand_chain(product, 1, dim=1)


@pytest.mark.parametrize(("body", "count", "dim"), [(CAST, 1, 1), (JOINED, 4, 1)])
def test_a_chain_leads_to_what_was_loaded(body: str, count: int, dim: int) -> None:
    found = chain(body + DOT)
    assert found is not None and len(found.values) == count
    assert [source.dim for source in found.sources] == [dim]


def test_layouts_of_a_chain_put_every_element_where_the_product_has_it() -> None:
    found = chain(JOINED + DOT)
    assert found is not None
    layouts = found.layouts(LEFT.transpose((1, 0)))
    assert [layouts[value].shape for value in found.values] == [
        (32, 64), (32, 64), (16, 2, 64), (16, 64, 2)
    ]  # fmt: skip


OTHER_USES = {
    "stored": f"{CAST}{DOT}  mem.store %to, %b\n",
    "the other operand, too": f"""{CAST}
  %u = tile.transpose %b {{order = [1, 0]}} : tile<64x32xf16>
  %d = tile.dot %u, %b, %c : tile<64x64xf32>
""",
    "not loaded": """  %b = tile.transpose %a {order = [1, 0]} : tile<32x64xf16>
  %d = tile.dot %a, %b, %c : tile<64x64xf32>
""",
}


@pytest.mark.parametrize("body", OTHER_USES.values(), ids=OTHER_USES)
def test_what_is_used_elsewhere_or_not_loaded_is_no_chain(body: str) -> None:
    assert chain(body) is None


def test_products_that_share_an_operand_share_its_chain() -> None:
    found = chain(f"{CAST}{DOT}  %e = tile.dot %a, %b, %d : tile<64x64xf32>\n")
    assert found is not None and len(found.operands) == 1


@pytest.mark.parametrize("extent", [8, 16])
def test_parts_lie_in_registers_of_their_own(extent: int) -> None:
    found = part_along(LEFT, 1, extent)
    assert found is not None
    part, bits = found
    assert part.shape == (64, extent)
    count = LEFT.in_size("register")
    for number in range(32 // extent):
        named = [
            r
            for r in range(count)
            if all(r >> bit & 1 == number >> i & 1 for i, bit in enumerate(bits))
        ]
        assert len(named) == part.in_size("register")
        for new, old in enumerate(named):
            row, column = LEFT.apply(register=old)
            assert part.apply(register=new) == (row, column - extent * number)
    whole = with_parts(part, 1, 32)
    assert whole.shape == LEFT.shape
    # The highest register bits name the part.
    for register in range(count):
        row, column = part.apply(register=register % part.in_size("register"))
        number = register // part.in_size("register")
        assert whole.apply(register=register) == (row, column + extent * number)


def test_what_warps_share_has_no_parts() -> None:
    assert part_along(LEFT, 0, 32) is None
    assert part_along(LEFT, 1, 0) is None
