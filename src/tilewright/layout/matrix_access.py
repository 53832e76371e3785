"""Register layouts that ``ldmatrix`` and ``stmatrix`` can move, and their row addresses.

One instruction moves 1, 2 or 4 matrices of 8 rows by 16 bytes between shared memory and
registers, one 32-bit register a lane for each matrix. Lane ``l`` has the address of row ``l % 8``
of matrix ``l // 8``. The words that each lane receives are fixed:

    plain        lanes 4r .. 4r+3 receive the four words of row r
    transposed   16-bit elements; lane 4c + j receives column c of rows 2j and 2j+1

So a register layout can be moved if 16-byte rows exist in it: plain rows are made of the elements
in a word and lane bits 0, 1; transposed rows of lane bits 2, 3, 4. All other bits may go to any
row. Each side is a linear condition on the layout, which tensor-core fragments satisfy.
"""

from tilewright.layout import f2
from tilewright.layout.linear_layout import LANE, REGISTER, WARP, LinearLayout, log2
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class MatrixForm:
    """The 8 x 16-byte matrices of a register layout. Vectors are packed tile coordinates.

    ``row`` spans the 16 bytes of a row, lowest element bit first; ``rows`` are the three bits of
    the row number; ``word_bits`` is log2 of the elements in a 32-bit register.
    """

    transposed: bool
    row: f2.Matrix
    rows: f2.Matrix
    word_bits: int
    matrices: f2.Matrix

    @property
    def count_bits(self) -> int:
        """log2 of the matrices that one instruction moves: 0, 1 or 2."""
        return min(2, len(self.matrices))


def matrix_form(
    layout: LinearLayout, element_bits: int, *, transposed: bool = False
) -> MatrixForm | None:
    """The matrices of ``layout`` for ldmatrix or stmatrix, or None if it has none.

    The low register bits must be the elements of one 32-bit register.
    """
    registers, lanes = layout.packed(REGISTER), layout.packed(LANE)
    word_bits = 5 - log2(element_bits)
    if len(lanes) != 5 or word_bits < 0 or len(registers) < word_bits:
        return None
    if transposed and element_bits != 16:
        return None
    if transposed:
        row, rows = lanes[2:], (*registers[:1], *lanes[:2])
    else:
        row, rows = (*registers[:word_bits], *lanes[:2]), lanes[2:]
    matrices = registers[word_bits:]
    # The bytes of a row must be independent of the bits that select one, or rows would overlap.
    rest = f2.rank((*rows, *matrices, *layout.packed(WARP)))
    if f2.rank((*row, *rows, *matrices, *layout.packed(WARP))) != len(row) + rest:
        return None
    return MatrixForm(transposed, row, rows, word_bits, matrices)


def matrix_addresses(form: MatrixForm) -> f2.Matrix:
    """For each lane bit, the packed coordinates of the row whose address the lane has."""
    # Addresses of lanes beyond the matrices moved are ignored.
    count = form.count_bits
    return (*form.rows, *form.matrices[:count], *(0,) * (2 - count))
