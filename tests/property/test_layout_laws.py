"""The laws of the layout algebra, on random maps and against pointwise evaluation."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.layout.same_map import is_same_map
from tests.unit.layout.strategies import bijections, layouts
from tilewright.layout import LinearLayout, f2, slice_of

Point = dict[str, int]


def points(layout: LinearLayout) -> list[Point]:
    sizes = [range(1 << bits) for _, bits in layout.ins]
    return [dict(zip(layout.in_names, values, strict=True)) for values in product(*sizes)]


def named(layout: LinearLayout, point: Point) -> Point:
    return dict(zip(layout.out_names, layout.apply(**point), strict=True))


@st.composite
def chains(draw: st.DrawFn) -> tuple[LinearLayout, LinearLayout, LinearLayout]:
    """Three maps, each from the outputs of the one before, listed in another order."""
    first = draw(layouts())
    maps = [first]
    for names in (("a", "b"), ("x", "y", "z")):
        ins = tuple(draw(st.permutations(maps[-1].outs)))
        out_bits = draw(st.integers(0, 5))
        cut = draw(st.integers(0, out_bits))
        outs = ((names[0], cut), (names[1], out_bits - cut))
        width = sum(bits for _, bits in ins)
        columns = tuple(draw(st.integers(0, (1 << out_bits) - 1)) for _ in range(width))
        maps.append(LinearLayout(ins, outs, columns))
    return maps[0], maps[1], maps[2]


@given(layouts(), st.data())
def test_maps_are_linear(layout: LinearLayout, data: st.DataObject):
    p, q = (data.draw(st.sampled_from(points(layout))) for _ in range(2))
    both = {name: p[name] ^ q[name] for name in p}
    sums = tuple(a ^ b for a, b in zip(layout.apply(**p), layout.apply(**q), strict=True))
    assert layout.apply(**both) == sums


@given(chains())
def test_composition_is_pointwise_and_associative(chain):
    inner, middle, outer = chain
    both = middle @ inner
    for point in points(inner):
        assert named(both, point) == named(middle, named(inner, point))
    assert (outer @ middle) @ inner == outer @ (middle @ inner)


@given(bijections())
def test_inverse(layout: LinearLayout):
    inverse = layout.invert()
    assert f2.unit(layout.in_bits) == (inverse @ layout).columns == (layout @ inverse).columns
    assert inverse.invert() == layout


@given(layouts())
def test_kernel_image_and_copies(layout: LinearLayout):
    reached = [layout.apply(**point) for point in points(layout)]
    assert len(set(reached)) == 1 << layout.rank
    assert layout.is_injective == (len(set(reached)) == len(reached))
    for vector in f2.kernel(layout.columns):
        assert f2.apply(layout.columns, vector) == 0
    free = layout.free_masks()
    owners = [p for p in points(layout) if not any(p[name] & free[name] for name in p)]
    assert sorted(layout.apply(**p) for p in owners) == sorted(set(reached))


@given(layouts(max_bits=4), layouts(max_bits=4), layouts(max_bits=4))
def test_product_is_associative(a, b, c):
    assert is_same_map((a * b) * c, a * (b * c))


@given(layouts(max_bits=4), layouts(max_bits=4))
def test_product_is_pointwise(a: LinearLayout, b: LinearLayout):
    whole = a * b
    for p, q in product(points(a), points(b)):
        names = dict(whole.ins)
        at = {n: p.get(n, 0) + q.get(n, 0) * a.in_size(n) for n in names}
        low, high = named(a, p), named(b, q)
        expected = {n: low.get(n, 0) + high.get(n, 0) * a.out_size(n) for n in dict(whole.outs)}
        assert named(whole, at) == expected


@given(layouts())
def test_text_round_trip(layout: LinearLayout):
    assert LinearLayout.parse(str(layout)) == layout


@given(layouts(), st.data())
def test_order_of_dims_does_not_matter(layout: LinearLayout, data: st.DataObject):
    ins = data.draw(st.permutations(layout.in_names))
    outs = data.draw(st.permutations(layout.out_names))
    other = layout.sublayout(ins, outs)
    assert is_same_map(other, layout)
    for point in points(layout):
        assert named(other, point) == named(layout, point)
    assert other.sublayout(layout.in_names, layout.out_names) == layout


@st.composite
def tiles(draw: st.DrawFn) -> LinearLayout:
    layout = draw(layouts())
    names = {name: f"dim{i}" for i, name in enumerate(layout.out_names)}
    return layout.rename({name: f"tmp{new}" for name, new in names.items()}).rename(
        {f"tmp{new}": new for new in names.values()}
    )


@given(tiles(), st.data())
def test_transpose_permutes_coordinates(layout: LinearLayout, data: st.DataObject):
    order = data.draw(st.permutations(range(len(layout.outs))))
    turned = layout.transpose(order)
    for point in points(layout):
        assert turned.apply(**point) == tuple(layout.apply(**point)[i] for i in order)
    back = [order.index(i) for i in range(len(order))]
    assert turned.transpose(back) == layout


@given(tiles(), st.data())
def test_reshape_keeps_the_row_major_index(layout: LinearLayout, data: st.DataObject):
    cuts = sorted(data.draw(st.lists(st.integers(0, layout.out_bits), max_size=2)))
    edges = [0, *cuts, layout.out_bits]
    shape = [1 << (b - a) for a, b in zip(edges, edges[1:], strict=False)]
    other = layout.reshape(shape)
    assert other.shape == tuple(shape)
    for point in points(layout):
        assert row_major(other, point) == row_major(layout, point)
    assert other.reshape(layout.shape) == layout


def row_major(layout: LinearLayout, point: Point) -> int:
    index = 0
    for coordinate, size in zip(layout.apply(**point), layout.shape, strict=True):
        index = index * size + coordinate
    return index


@given(tiles(), st.data())
def test_slice_forgets_one_coordinate(layout: LinearLayout, data: st.DataObject):
    dim = data.draw(st.integers(0, len(layout.outs) - 1))
    rest = slice_of(layout, dim)
    whole = {layout.apply(**p)[:dim] + layout.apply(**p)[dim + 1 :] for p in points(layout)}
    assert {rest.apply(**p) for p in points(rest)} == whole
    assert rest.out_names == tuple(f"dim{i}" for i in range(len(layout.outs) - 1))
