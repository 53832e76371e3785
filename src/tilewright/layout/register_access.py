"""Properties of a register layout that memory accesses depend on."""

from tilewright.layout.linear_layout import REGISTER, LinearLayout


def contiguous_registers(layout: LinearLayout, dim: int) -> int:
    """The number of consecutive registers with consecutive, aligned elements along ``dim``.

    If the result is n, registers n*i .. n*i + n - 1 of every thread are elements x .. x + n - 1 of
    one line along ``dim``, and x is a multiple of n, as a vector load of n elements requires.
    """
    limit = len(layout.packed(REGISTER))
    bases = layout.bases(REGISTER)
    run = 0
    while run < limit and bases[run] == _along(layout, dim, run):
        run += 1
    others = [basis[dim] for name in layout.in_names for basis in layout.bases(name)]
    start = sum(len(layout.packed(n)) for n in _names_before(layout, REGISTER))
    del others[start : start + run]
    # A low bit in any other basis would start a vector inside a run. A register bit that leaves the
    # run becomes such a basis.
    while run and any(value & ((1 << run) - 1) for value in others):
        run -= 1
        others.append(1 << run)
    return 1 << run


def _along(layout: LinearLayout, dim: int, bit: int) -> tuple[int, ...]:
    return tuple(1 << bit if i == dim else 0 for i in range(len(layout.outs)))


def _names_before(layout: LinearLayout, name: str) -> tuple[str, ...]:
    return layout.in_names[: layout.in_names.index(name)]
