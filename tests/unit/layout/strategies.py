"""Hypothesis strategies for layouts."""

from hypothesis import strategies as st

from tilewright.layout import LinearLayout, blocked

Draw = st.DrawFn


@st.composite
def dims(draw: Draw, names: tuple[str, ...], bits: int) -> tuple[tuple[str, int], ...]:
    """Some of the names in some order, with ``bits`` bits in all, dims of size 1 included."""
    chosen = draw(st.permutations(names))[: draw(st.integers(1, len(names)))]
    cuts = sorted(draw(st.integers(0, bits)) for _ in chosen[1:])
    edges = [0, *cuts, bits]
    return tuple((name, edges[i + 1] - edges[i]) for i, name in enumerate(chosen))


INS = ("register", "lane", "warp")
OUTS = ("dim0", "dim1", "dim2")


@st.composite
def layouts(
    draw: Draw, ins: tuple[str, ...] = INS, outs: tuple[str, ...] = OUTS, max_bits: int = 6
) -> LinearLayout:
    """Any linear map at all."""
    in_bits, out_bits = draw(st.integers(0, max_bits)), draw(st.integers(0, max_bits))
    columns = [draw(st.integers(0, (1 << out_bits) - 1)) for _ in range(in_bits)]
    return LinearLayout(draw(dims(ins, in_bits)), draw(dims(outs, out_bits)), tuple(columns))


@st.composite
def bijections(draw: Draw, max_bits: int = 6) -> LinearLayout:
    """An invertible layout: a permutation of unit vectors, then random additions of columns."""
    bits = draw(st.integers(1, max_bits))
    columns = [1 << i for i in draw(st.permutations(range(bits)))]
    steps = st.tuples(st.integers(0, bits - 1), st.integers(0, bits - 1))
    for i, j in draw(st.lists(steps, max_size=8)):
        if i != j:
            columns[i] ^= columns[j]
    return LinearLayout(draw(dims(INS, bits)), draw(dims(OUTS, bits)), tuple(columns))


@st.composite
def tile_layouts(
    draw: Draw, shape: tuple[int, int], warp_bits: int, *, whole_warps: bool = True
) -> LinearLayout:
    """A register layout of a whole tile on 32 lanes: mixed bases, with copies here and there."""
    bits = (shape[0] * shape[1]).bit_length() - 1
    vectors = [1 << i for i in draw(st.permutations(range(bits)))]
    steps = st.tuples(st.integers(0, bits - 1), st.integers(0, bits - 1))
    for i, j in draw(st.one_of(st.just([]), st.lists(steps, max_size=8))) if bits else []:
        if i != j:
            vectors[i] ^= vectors[j]
    threads: list[int] = []
    for _ in range(5 + warp_bits):
        copied = not vectors or draw(st.integers(0, 7)) == 0
        anything = st.integers(0, (1 << bits) - 1)
        threads.append(draw(st.one_of(st.just(0), anything)) if copied else vectors.pop())
    extra = draw(st.lists(st.integers(0, (1 << bits) - 1), max_size=1))
    registers = draw(st.permutations([*vectors, *extra]))
    ins = (("register", len(registers)), ("lane", 5), ("warp", warp_bits))
    outs = tuple((f"dim{i}", size.bit_length() - 1) for i, size in enumerate(shape))
    return LinearLayout(ins, outs, (*registers, *threads))


@st.composite
def blocked_layouts(draw: Draw, shape: tuple[int, int], warp_bits: int) -> LinearLayout:
    """A blocked layout of a tile on 32 lanes, which may be too large or too small for it."""
    split = draw(st.integers(0, 5))
    warps = draw(st.integers(0, warp_bits))
    return blocked(
        shape,
        (1 << draw(st.integers(0, 3)), 1 << draw(st.integers(0, 3))),
        (1 << split, 32 >> split),
        (1 << warps, 1 << (warp_bits - warps)),
        draw(st.sampled_from([(0, 1), (1, 0)])),
    )


@st.composite
def conversions(draw: Draw) -> tuple[LinearLayout, LinearLayout, int]:
    """Two layouts of one tile on the same threads, and an element width in bits.

    A third of the pairs differ only inside the warps.
    """
    shape = (1 << draw(st.integers(0, 6)), 1 << draw(st.integers(0, 6)))
    warp_bits = draw(st.integers(0, 2))
    any_layout = st.one_of(tile_layouts(shape, warp_bits), blocked_layouts(shape, warp_bits))
    src = draw(any_layout)
    if draw(st.integers(0, 2)):
        dst = draw(any_layout)
    else:
        inside = len(src.columns) - warp_bits
        order = draw(st.permutations(range(inside)))
        columns = [src.columns[i] for i in order]
        dst = LinearLayout(src.ins, src.outs, (*columns, *src.columns[inside:]))
    return src, dst, draw(st.sampled_from([8, 16, 32, 64, 128]))
