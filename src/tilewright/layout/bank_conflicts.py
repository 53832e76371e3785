"""Bank conflicts: the number of passes of an access to shared memory.

Shared memory has 32 banks of 4 bytes; word ``w`` (bytes 4w to 4w+3) is in bank ``w % 32``. One
pass, a *wavefront*, serves one word of every bank to any number of lanes. An access of up to 4
bytes a lane serves all 32 lanes at once, 8 bytes a lane in two half-warps, 16 bytes in four
quarter-warps: never more than 128 bytes. The *conflict degree* is the number of wavefronts that
each such group needs, the largest number of distinct words in one bank; 1 is free of conflicts.
``ldmatrix`` and ``stmatrix`` behave like 16-byte accesses: eight rows of 16 bytes per matrix.

For linear layouts every group of lanes, every register and every warp has the same degree, which
follows from ranks: the words touched are a subspace U, and U meets every bank that it meets at
all in ``|U| / |U modulo banks|`` words.
"""

from collections.abc import Sequence

from tilewright.layout import f2

BANK_BITS = 5
WORD_BITS = 2  # log2 of 4 bytes
WAVEFRONT_BITS = BANK_BITS + WORD_BITS


def lanes_at_once(access_bytes_log2: int) -> int:
    """log2 of the lanes served together for an access of ``2**access_bytes_log2`` bytes a lane."""
    # 5: a warp has 2^5 lanes.
    return min(5, WAVEFRONT_BITS - access_bytes_log2)


def degree(lane_offsets: Sequence[int], vector_bits: int, element_bytes_log2: int) -> int:
    """The conflict degree of a linear access.

    ``lane_offsets`` are the element offsets of the lane bits that are served together, each lane
    then accesses ``2**vector_bits`` consecutive elements.
    """
    shift = element_bytes_log2 - WORD_BITS
    words = [offset << shift if shift >= 0 else offset >> -shift for offset in lane_offsets]
    # The words inside one lane's vector.
    words += [1 << bit for bit in range(max(0, vector_bits + shift))]
    banks = [word & ((1 << BANK_BITS) - 1) for word in words]
    return 1 << (f2.rank(words) - f2.rank(banks))
