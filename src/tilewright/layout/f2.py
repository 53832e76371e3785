"""Linear algebra over F2, the field with the two elements 0 and 1.

A vector is a Python int: bit ``i`` is its coordinate ``i``, and addition is XOR. A matrix is a
tuple of ints, its *columns*: column ``j`` is the image of the unit vector ``1 << j``. So the
matrix

    [1 1]
    [0 1]      is the tuple (0b01, 0b11) = (1, 3)

and multiplying it with the vector ``0b11`` gives ``1 ^ 3 == 2``. The number of rows is not
stored; the caller has it. Matrices have at most about twenty columns, for which ints are faster
than arrays: a multiplication takes microseconds.
"""

from collections.abc import Iterable, Sequence

Matrix = tuple[int, ...]
"""Columns of a bit matrix; column ``j`` is the image of ``1 << j``."""


def unit(bits: int) -> Matrix:
    """The identity matrix with ``bits`` rows and columns."""
    return tuple(1 << i for i in range(bits))


def apply(columns: Sequence[int], vector: int) -> int:
    """Multiply a matrix and a vector: the XOR of the columns that ``vector`` selects."""
    result = 0
    for column in columns:
        if vector & 1:
            result ^= column
        vector >>= 1
    return result


def compose(outer: Sequence[int], inner: Sequence[int]) -> Matrix:
    """Compose two maps, ``outer @ inner``: first ``inner``, then ``outer``."""
    return tuple(apply(outer, column) for column in inner)


class Span:
    """A subspace that grows by one vector at a time and remembers how its vectors were combined.

    Each stored vector has its own leading bit, and its *combination*: the vectors given to `add`
    (bit ``j`` is the ``j``-th call) whose XOR it is. This record answers membership, rank, solving
    and kernels.
    """

    __slots__ = ("_count", "_rows")

    def __init__(self, vectors: Iterable[int] = ()) -> None:
        self._rows: dict[int, tuple[int, int]] = {}
        self._count = 0
        for vector in vectors:
            self.add(vector)

    @property
    def rank(self) -> int:
        """The dimension of the subspace."""
        return len(self._rows)

    def reduce(self, vector: int) -> tuple[int, int]:
        """``(rest, combination)``: ``vector`` minus the combination is ``rest``; 0 for a member."""
        combination = 0
        rows = self._rows
        while vector:
            row = rows.get(vector.bit_length())
            if row is None:
                break
            vector ^= row[0]
            combination ^= row[1]
        return vector, combination

    def __contains__(self, vector: int) -> bool:
        return self.reduce(vector)[0] == 0

    def add(self, vector: int) -> int | None:
        """Add a vector. None if it was independent, else the combination that equals zero with it.

        The returned combination includes the new vector itself: it is an element of the kernel of
        the matrix whose columns are all vectors added so far.
        """
        own = 1 << self._count
        self._count += 1
        rest, combination = self.reduce(vector)
        if rest == 0:
            return combination | own
        self._rows[rest.bit_length()] = (rest, combination | own)
        return None

    def solve(self, target: int) -> int | None:
        """A combination of the added vectors whose XOR is ``target``; None if there is none.

        Only vectors that were independent of the earlier ones are used, so the answer is unique and
        prefers vectors that were added first.
        """
        rest, combination = self.reduce(target)
        return None if rest else combination


def rank(columns: Iterable[int]) -> int:
    """The dimension of the span of the columns."""
    # Without `Span`, whose combinations are not needed.
    rows: dict[int, int] = {}
    for column in columns:
        while column:
            row = rows.get(column.bit_length())
            if row is None:
                rows[column.bit_length()] = column
                break
            column ^= row
    return len(rows)


def inverse(columns: Sequence[int]) -> Matrix:
    """The inverse of a square matrix. ValueError if it is singular (or not square)."""
    right = right_inverse(columns, len(columns))
    # A higher bit means more rows than columns, which `right_inverse` does not detect.
    if right is None or any(column >> len(columns) for column in columns):
        raise ValueError(f"the matrix {tuple(columns)} has no inverse")
    return right


def right_inverse(columns: Sequence[int], rows: int) -> Matrix | None:
    """``R`` with ``columns @ R == unit(rows)``, or None if the columns do not span all rows."""
    span = Span(columns)
    solutions = [span.solve(1 << i) for i in range(rows)]
    if None in solutions:
        return None
    return tuple(x for x in solutions if x is not None)


def kernel(columns: Iterable[int]) -> Matrix:
    """A basis of the vectors that the matrix sends to zero."""
    span = Span()
    relations = (span.add(column) for column in columns)
    return tuple(relation for relation in relations if relation is not None)


def pivots(columns: Iterable[int]) -> int:
    """A mask of the columns that are independent of the columns before them."""
    span = Span()
    mask = 0
    for index, column in enumerate(columns):
        if span.add(column) is None:
            mask |= 1 << index
    return mask


def basis(columns: Iterable[int]) -> Matrix:
    """The columns that are independent of the columns before them, in order."""
    span = Span()
    return tuple(column for column in columns if span.add(column) is None)


def extension(columns: Iterable[int], candidates: Iterable[int]) -> Matrix:
    """The candidates, taken greedily, that are independent of the columns and of each other."""
    span = Span(columns)
    return tuple(candidate for candidate in candidates if span.add(candidate) is None)


def intersection(left: Sequence[int], right: Sequence[int]) -> Matrix:
    """A basis of the intersection of two spans, each given by independent or dependent vectors.

    In a relation ``xor(left part) ^ xor(right part) == 0`` both parts are the same vector of the
    intersection; the kernel of the joined matrix lists the relations. Vectors of ``left`` that
    ``right`` contains come first, unchanged.
    """
    other = Span(right)
    direct = tuple(vector for vector in basis(left) if vector in other)
    mask = (1 << len(left)) - 1
    joined = [apply(left, relation & mask) for relation in kernel((*left, *right))]
    return basis((*direct, *joined))
