"""Linear layouts: the map from hardware locations to elements of a tile, linear over bits.

A GPU spreads a tile over hardware locations: a *register* of a *lane* of a *warp* (of a *block* in
a cluster), or an *offset* in shared memory. All counts are powers of two, so a location is a row of
bits, an element's coordinates are a row of bits, and the distributions that hardware uses are
linear: the coordinates are the XOR of one constant, a *basis*, for each location bit that is 1. A
layout is the list of these bases.

A worked 4 x 4 example: 4 lanes, each with 4 registers that hold a 2 x 2 block:

            dim1 ->
    dim0    l0r0 l0r1 | l1r0 l1r1        register bit 0 -> (0,1)      one step right
     |      l0r2 l0r3 | l1r2 l1r3        register bit 1 -> (1,0)      one step down
     v      ----------+----------        lane bit 0     -> (0,2)      two steps right
            l2r0 l2r1 | l3r0 l3r1        lane bit 1     -> (2,0)      two steps down
            l2r2 l2r3 | l3r2 l3r3

    text form: register=(0,1)(1,0) lane=(0,2)(2,0) -> dim0:4 dim1:4

Where is register 3 of lane 2? 3 = 0b11 gives (0,1) ^ (1,0), lane 2 = 0b10 gives (2,0); together
(3,1).

* Who owns element (3,1)? The inverse map: register 3, lane 2. It exists because the map is a
  bijection.
* A *transposed* tile swaps the two coordinates of every basis; no element moves.
* Four more lanes that hold copies get a zero basis, lane bit 2 -> (0,0): a broadcast is a kernel.
* A row-major buffer is offset=(0,1)(0,2)(1,0)(2,0). Its inverse after the layout above maps a lane
  and a register to the offset of that value: composition is address computation.
* A buffer without bank conflicts has other bases, such as offset=(0,1)(0,2)(1,2)(2,0): rows 1 and
  3 swap their halves. A swizzle is a linear map as well.

Dims are ordered. A map is stored as one bit matrix (`f2.Matrix`): the bits of all input dims are
numbered from the first dim's lowest bit upwards, and outputs in the same way.
"""

from collections.abc import Mapping, Sequence

from tilewright.layout import f2, layout_text

Dims = tuple[tuple[str, int], ...]
"""Dim names with their number of bits, in order."""

REGISTER, LANE, WARP, BLOCK, OFFSET = "register", "lane", "warp", "block", "offset"


def tile_dims(shape: Sequence[int]) -> dict[str, int]:
    """The output dims of a tile: ``(32, 8)`` -> ``{"dim0": 32, "dim1": 8}``."""
    return {f"dim{i}": size for i, size in enumerate(shape)}


def log2(size: int) -> int:
    """The exponent of a power of two. ValueError for any other number."""
    if size <= 0 or size & (size - 1):
        raise ValueError(f"sizes in a layout are powers of two, {size} is not")
    return size.bit_length() - 1


class LinearLayout:
    """An immutable linear map from named input bits to named output bits.

    ``ins`` and ``outs`` are the dims as (name, bits), ``columns`` the packed bases. ``==`` compares
    the dims in order. Use `from_bases` to build one
    by hand, `distributed_layouts` and `shared_layouts` for the usual ones, and
    ``parse(str(layout))`` to read one from text.
    """

    __slots__ = ("_hash", "columns", "ins", "outs")

    ins: Dims
    outs: Dims
    columns: f2.Matrix
    _hash: int

    def __init__(self, ins: Dims, outs: Dims, columns: f2.Matrix) -> None:
        assert sum(bits for _, bits in ins) == len(columns), (ins, columns)
        object.__setattr__(self, "ins", ins)
        object.__setattr__(self, "outs", outs)
        object.__setattr__(self, "columns", columns)
        # Hashed once: layouts are keys of the cache of plans.
        object.__setattr__(self, "_hash", hash((ins, outs, columns)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a layout is immutable, cannot set {name}")

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, LinearLayout):
            return NotImplemented
        return (
            self._hash == other._hash
            and self.columns == other.columns
            and self.ins == other.ins
            and self.outs == other.outs
        )

    def __reduce__(self) -> tuple[object, ...]:
        # By default pickling sets the slots one by one, which `__setattr__` rejects.
        return LinearLayout, (self.ins, self.outs, self.columns)

    # ---- building ------------------------------------------------------------------------------

    @classmethod
    def from_bases(
        cls, bases: Mapping[str, Sequence[Sequence[int]]], out_sizes: Mapping[str, int]
    ) -> "LinearLayout":
        """A layout from the coordinates of each input bit, lowest bit first.

        ``from_bases({"register": [(0, 1)], "lane": [(1, 0)]}, {"dim0": 2, "dim1": 2})``.
        ValueError if a size is not a power of two or a basis is outside the output.
        """
        outs = tuple((name, log2(size)) for name, size in out_sizes.items())
        ins = tuple((name, len(vectors)) for name, vectors in bases.items())
        columns = tuple(_pack(outs, vector) for vectors in bases.values() for vector in vectors)
        return cls(ins, outs, columns)

    @classmethod
    def identity(cls, in_dim: str, out_dim: str, size: int) -> "LinearLayout":
        """``in_dim`` counts along ``out_dim``: index i is coordinate i."""
        bits = log2(size)
        return cls(((in_dim, bits),), ((out_dim, bits),), f2.unit(bits))

    # ---- queries -------------------------------------------------------------------------------

    @property
    def in_bits(self) -> int:
        """The number of input bits over all dims."""
        return len(self.columns)

    @property
    def out_bits(self) -> int:
        """The number of output bits over all dims."""
        return sum(bits for _, bits in self.outs)

    @property
    def in_names(self) -> tuple[str, ...]:
        """The names of the input dims in order."""
        return tuple(name for name, _ in self.ins)

    @property
    def out_names(self) -> tuple[str, ...]:
        """The names of the output dims in order."""
        return tuple(name for name, _ in self.outs)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the output dims in order."""
        return tuple(1 << bits for _, bits in self.outs)

    def in_size(self, name: str) -> int:
        """The size of an input dim; 1 if the layout has no such dim."""
        return 1 << dict(self.ins).get(name, 0)

    def out_size(self, name: str) -> int:
        """The size of an output dim; 1 if the layout has no such dim."""
        return 1 << dict(self.outs).get(name, 0)

    def packed(self, in_dim: str) -> f2.Matrix:
        """The packed bases of one input dim; empty if the layout has no such dim."""
        start = 0
        for name, bits in self.ins:
            if name == in_dim:
                return self.columns[start : start + bits]
            start += bits
        return ()

    def bases(self, in_dim: str) -> tuple[tuple[int, ...], ...]:
        """The coordinates of each bit of one input dim, in the order of the output dims."""
        return tuple(self.unpack(column) for column in self.packed(in_dim))

    def apply(self, **coordinates: int) -> tuple[int, ...]:
        """The output coordinates of an input point; dims not named are 0."""
        vector = shift = 0
        for name, bits in self.ins:
            vector |= coordinates.pop(name, 0) << shift
            shift += bits
        assert not coordinates, f"no input dims {sorted(coordinates)} in {self}"
        assert vector >> shift == 0, f"coordinates exceed the input of {self}"
        return self.unpack(f2.apply(self.columns, vector))

    def unpack(self, packed: int) -> tuple[int, ...]:
        """Coordinates of a packed output vector."""
        result: list[int] = []
        for _, bits in self.outs:
            result.append(packed & ((1 << bits) - 1))
            packed >>= bits
        return tuple(result)

    def pack(self, coordinates: Sequence[int]) -> int:
        """The packed output vector of some coordinates, in the order of the output dims."""
        return _pack(self.outs, coordinates)

    @property
    def rank(self) -> int:
        """The dimension of the image, so that 2**rank elements are reached."""
        return f2.rank(self.columns)

    @property
    def is_injective(self) -> bool:
        """Whether no two hardware locations hold the same element."""
        return self.rank == self.in_bits

    @property
    def is_bijective(self) -> bool:
        """Whether every element has exactly one hardware location."""
        return self.in_bits == self.out_bits == self.rank

    def free_masks(self) -> dict[str, int]:
        """For each input dim the bits that are dependent on earlier bits.

        The locations whose free bits are all 0 hold every element exactly once, so they store. Dims
        are taken in order, so with the usual order registers are kept before lanes and lanes before
        warps.
        """
        # All bits above the last one are 1; the masks of the dims clear them.
        free = ~f2.pivots(self.columns)
        result: dict[str, int] = {}
        for name, bits in self.ins:
            result[name] = free & ((1 << bits) - 1)
            free >>= bits
        return result

    # ---- combining -----------------------------------------------------------------------------

    def compose(self, inner: "LinearLayout") -> "LinearLayout":
        """``self`` after ``inner``; also written ``self @ inner``.

        The outputs of ``inner`` must be the inputs of ``self`` by name and size, in any order.
        """
        if self.ins != inner.outs:
            assert sorted(self.ins) == sorted(inner.outs), f"cannot compose {self} after {inner}"
            inner = inner.reorder_outs(self.in_names)
        return LinearLayout(inner.ins, self.outs, f2.compose(self.columns, inner.columns))

    def __matmul__(self, inner: "LinearLayout") -> "LinearLayout":
        return self.compose(inner)

    def invert(self) -> "LinearLayout":
        """The inverse of a bijection. ValueError for any other layout."""
        if not self.is_bijective:
            raise ValueError(f"only a bijection has an inverse, not {self}")
        return LinearLayout(self.outs, self.ins, f2.inverse(self.columns))

    def product(self, outer: "LinearLayout") -> "LinearLayout":
        """The direct sum, also ``self * outer``: ``outer`` places copies of the tile ``self``.

        Bits of ``outer`` go above the bits of ``self`` in dims that both have, on both sides:
        4 lanes along dim0 times 8 warps along dim0 is 32 rows, lane fastest.
        """
        ins = _merge(self.ins, outer.ins)
        outs = _merge(self.outs, outer.outs)
        mine = _embedding(self.outs, outs, {})
        high = _embedding(outer.outs, outs, dict(self.outs))
        columns: list[int] = []
        for name, _ in ins:
            columns += [_embed(column, mine) for column in self.packed(name)]
            columns += [_embed(column, high) for column in outer.packed(name)]
        return LinearLayout(ins, outs, tuple(columns))

    def __mul__(self, outer: "LinearLayout") -> "LinearLayout":
        return self.product(outer)

    # ---- reshaping -----------------------------------------------------------------------------

    def sublayout(self, ins: Sequence[str], outs: Sequence[str]) -> "LinearLayout":
        """Only these input dims (the others at 0), and only these output coordinates, in this
        order."""
        sizes = dict(self.outs)
        new_outs = tuple((name, sizes[name]) for name in outs)
        moves = _embedding(new_outs, self.outs, {})
        columns = tuple(_extract(column, moves) for name in ins for column in self.packed(name))
        return LinearLayout(tuple((n, len(self.packed(n))) for n in ins), new_outs, columns)

    def restrict(self, ins: Sequence[str]) -> "LinearLayout":
        """Only these input dims, in this order, with all others held at 0."""
        return self.sublayout(ins, self.out_names)

    def reorder_outs(self, names: Sequence[str]) -> "LinearLayout":
        """The same map with the output dims listed in another order."""
        assert sorted(names) == sorted(self.out_names), (names, self.out_names)
        return self.sublayout(self.in_names, names)

    def rename(self, names: Mapping[str, str]) -> "LinearLayout":
        """The same map with renamed dims; other names are unchanged."""
        ins = tuple((names.get(name, name), bits) for name, bits in self.ins)
        outs = tuple((names.get(name, name), bits) for name, bits in self.outs)
        return LinearLayout(ins, outs, self.columns)

    def transpose(self, order: Sequence[int]) -> "LinearLayout":
        """The layout of the transposed tile: new dim ``i`` is the old dim ``order[i]``."""
        names = self.out_names
        moved = self.reorder_outs([names[i] for i in order])
        sizes = [bits for _, bits in moved.outs]
        return LinearLayout(self.ins, tuple(zip(names, sizes, strict=True)), moved.columns)

    def reshape(self, shape: Sequence[int]) -> "LinearLayout":
        """The layout of the same elements, in row-major order, seen under another tile shape.

        Element order is NumPy's: the last dim runs fastest. The output dims become dim0, dim1, ...
        """
        # Packing puts the first dim lowest, NumPy's order the last: hence reversed, twice.
        backwards = self.reorder_outs(self.out_names[::-1])
        outs = tuple((f"dim{i}", log2(size)) for i, size in enumerate(shape))
        assert sum(bits for _, bits in outs) == self.out_bits, (shape, self.shape)
        flat = LinearLayout(self.ins, outs[::-1], backwards.columns)
        return flat.reorder_outs([name for name, _ in outs])

    def with_columns(self, in_dim: str, columns: Sequence[int]) -> "LinearLayout":
        """The same layout with other packed bases for one input dim (possibly fewer or more)."""
        ins = tuple((n, len(columns) if n == in_dim else bits) for n, bits in self.ins)
        parts = [columns if n == in_dim else self.packed(n) for n, _ in self.ins]
        return LinearLayout(ins, self.outs, tuple(column for part in parts for column in part))

    # ---- text ----------------------------------------------------------------------------------

    def __str__(self) -> str:
        bases = {name: self.bases(name) for name in self.in_names}
        return layout_text.render(bases, dict(zip(self.out_names, self.shape, strict=True)))

    def __repr__(self) -> str:
        return f"LinearLayout.parse({str(self)!r})"

    @classmethod
    def parse(cls, text: str) -> "LinearLayout":
        """The layout of a text form; ``parse(str(x)) == x``. ValueError on any other text."""
        return cls.from_bases(*layout_text.parse(text))


# ---- packing and embedding -----------------------------------------------------------------------

_Moves = tuple[tuple[int, int, int], ...]
"""(shift in the small packing, mask, shift in the large packing) for each dim."""


def _pack(outs: Dims, coordinates: Sequence[int]) -> int:
    if len(coordinates) != len(outs):
        raise ValueError(f"{tuple(coordinates)} needs one coordinate for each of {outs}")
    packed = shift = 0
    for (name, bits), coordinate in zip(outs, coordinates, strict=True):
        # Also not 0 for negative coordinates.
        if coordinate >> bits:
            raise ValueError(f"coordinate {coordinate} is outside {name} of size {1 << bits}")
        packed |= coordinate << shift
        shift += bits
    return packed


def _merge(first: Dims, second: Dims) -> Dims:
    sizes = dict(first)
    for name, bits in second:
        sizes[name] = sizes.get(name, 0) + bits
    return tuple(sizes.items())


def _embedding(small: Dims, large: Dims, skip: Mapping[str, int]) -> _Moves:
    """The moves that embed packed vectors of ``small`` in ``large``, ``skip[name]`` bits up in
    each dim."""
    starts: dict[str, int] = {}
    shift = 0
    for name, width in large:
        starts[name] = shift
        shift += width
    moves: list[tuple[int, int, int]] = []
    shift = 0
    for name, bits in small:
        moves.append((shift, (1 << bits) - 1, starts[name] + skip.get(name, 0)))
        shift += bits
    return tuple(moves)


def _embed(vector: int, moves: _Moves) -> int:
    result = 0
    for source, mask, target in moves:
        result |= (vector >> source & mask) << target
    return result


def _extract(vector: int, moves: _Moves) -> int:
    result = 0
    for source, mask, target in moves:
        result |= (vector >> target & mask) << source
    return result
