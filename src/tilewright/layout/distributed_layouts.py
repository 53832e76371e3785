"""Distributions of a tile over registers, lanes and warps that are not tied to tensor cores.

`blocked` is for coalesced memory accesses: adjacent lanes have adjacent elements. `slice_of` is
the layout after a dim is reduced. Both use `fit`, which makes a layout cover exactly a given
shape: a smaller tile has copies in lanes and warps, a larger tile takes more registers.
"""

from collections.abc import Sequence

from tilewright.layout.linear_layout import LANE, REGISTER, WARP, LinearLayout, log2, tile_dims


def grid(in_dim: str, counts: Sequence[int], order: Sequence[int]) -> LinearLayout:
    """``in_dim`` counts through an n-dim grid of ``counts``, dim ``order[0]`` fastest."""
    # Empty dims first, so that outputs are in the order of dims whatever `order` is.
    outs = tuple((f"dim{i}", 0) for i in range(len(counts)))
    layout = LinearLayout(((in_dim, 0),), outs, ())
    for dim in order:
        layout *= LinearLayout.identity(in_dim, f"dim{dim}", counts[dim])
    return layout


def blocked(
    shape: Sequence[int],
    size_per_thread: Sequence[int],
    threads_per_warp: Sequence[int],
    warps_per_cta: Sequence[int],
    order: Sequence[int],
) -> LinearLayout:
    """Each lane holds a block of ``size_per_thread``; lanes, then warps, tile the plane with it.

    All sequences have one entry per dim. ``order`` lists the dims from the fastest to the slowest
    and applies inside a thread, among lanes and among warps. For example 16 x 64 elements of
    16 bits read in rows of 16 bytes by 4 warps of 32 lanes::

        blocked((16, 64), (1, 8), (4, 8), (4, 1), order=(1, 0))
            -> register=(0,1..4) lane=(0,8..32)(1,0)(2,0) warp=(4,0)(8,0)

    A tile smaller than that pattern is replicated over the lanes and warps beyond it;
    for a larger tile the pattern repeats in further registers, in ``order``. ValueError for sizes
    that are not powers of two.
    """
    rank = len(shape)
    lists = (size_per_thread, threads_per_warp, warps_per_cta, order)
    if any(len(item) != rank for item in lists) or sorted(order) != list(range(rank)):
        raise ValueError(
            f"a blocked layout of {tuple(shape)} needs {rank} entries in each of {lists}"
        )
    pattern = (
        grid(REGISTER, size_per_thread, order)
        * grid(LANE, threads_per_warp, order)
        * grid(WARP, warps_per_cta, order)
    )
    return fit(pattern, shape, order)


def fit(layout: LinearLayout, shape: Sequence[int], order: Sequence[int]) -> LinearLayout:
    """Make a layout cover exactly ``shape``.

    Where it reaches past the shape its bases become zero: those lanes and warps hold copies, such
    registers disappear. Where it covers less, new register bits repeat it, ``order[0]`` first.
    """
    sizes = tile_dims(shape)
    names = list(sizes)
    layout = layout.reorder_outs(names)
    bases = {
        name: [_clip(basis, shape) for basis in layout.bases(name)] for name in layout.in_names
    }
    # Registers that are copies are removed; lanes and warps cannot be.
    registers = [basis for basis in bases.get(REGISTER, []) if any(basis)]
    for dim in order:
        covered = min(layout.out_size(names[dim]), shape[dim])
        registers += [
            tuple(1 << bit if i == dim else 0 for i in range(len(shape)))
            for bit in range(log2(covered), log2(shape[dim]))
        ]
    return LinearLayout.from_bases({**bases, REGISTER: registers}, sizes)


def _clip(basis: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """A basis with its coordinates taken modulo the shape."""
    return tuple(item % size for item, size in zip(basis, shape, strict=True))


def slice_of(parent: LinearLayout, dim: int) -> LinearLayout:
    """The layout of a tile without dim ``dim``, each value in the location of its row or column.

    It is the result of a reduction along ``dim``, and the source of a broadcast along a new dim
    ``dim``. Lanes and warps along that dim hold copies; registers along it are removed.
    The remaining dims are numbered anew.
    """
    names = list(parent.out_names)
    del names[dim]
    kept = parent.sublayout(parent.in_names, names)
    kept = kept.with_columns(REGISTER, [column for column in kept.packed(REGISTER) if column])
    return kept.rename({name: f"dim{i}" for i, name in enumerate(names)})
