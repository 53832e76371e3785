"""Bank conflicts of shared memory, counted by force."""

from collections.abc import Iterator, Sequence


def words_of_busiest_banks(byte_addresses: Sequence[int], access_bytes: int) -> Iterator[int]:
    """The distinct words of the busiest bank, for each part of a warp that is served at once.

    byte_addresses: of lanes 0, 1, ..., linear or not, without inactive lanes at the end
    """
    group = min(32, 128 // access_bytes)
    for start in range(0, len(byte_addresses), group):
        banks: dict[int, set[int]] = {}
        for address in byte_addresses[start : start + group]:
            for word in range(address >> 2, (address + access_bytes + 3) >> 2):
                banks.setdefault(word & 31, set()).add(word)
        yield max(map(len, banks.values()))


def wavefronts(byte_addresses: Sequence[int], access_bytes: int) -> int:
    """The wavefronts of one access of a warp."""
    return sum(words_of_busiest_banks(byte_addresses, access_bytes))
