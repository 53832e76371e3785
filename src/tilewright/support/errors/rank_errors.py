"""TW6xx: mistakes of ranks, and ranks that fail."""

from collections.abc import Iterable

from tilewright.support.data_class import dataclass
from tilewright.support.errors.user_error import TilewrightError


@dataclass(eq=False)
class RankError(TilewrightError, RuntimeError):
    """Base of the errors of ranks: groups, memory of peers, waits for peers."""

    code = "TW600"


@dataclass(eq=False)
class WrongRank(RankError, ValueError):
    """A rank outside its group, or one that two processes have."""

    code = "TW607"
    template = "rank {rank} {problem}"
    hint_template = "each process of a group has a rank of its own, from 0 to its size - 1"

    rank: int
    problem: str


@dataclass(eq=False)
class WrongWorldSize(RankError, ValueError):
    """Ranks that disagree about the size of their group, or a size that is not supported."""

    code = "TW602"
    template = "{subject} has a world size of {found}, but {other} of {expected}"
    hint_template = "start every rank with the same world size"

    subject: str
    found: int
    other: str
    expected: int


@dataclass(eq=False)
class UnlikePeers(RankError, ValueError):
    """Tensors of peers that differ in dtype, size or kind of device."""

    code = "TW603"
    template = "rank {rank} passes {found}, but rank {other} passes {expected}"
    hint_template = "pass tensors of one dtype and size on every rank, all on CPUs or all on GPUs"

    rank: int
    found: str
    other: int
    expected: str


@dataclass(eq=False)
class UnmappedPeer(RankError):
    """Memory of one rank that another one cannot access."""

    code = "TW604"
    template = "rank {rank} cannot access the tensor of rank {peer}: {problem}"
    hint_template = "{instead}"

    rank: int
    peer: int
    problem: str
    instead: str = "allocate it by tilewright.distributed.zeros, on ranks of one host"


@dataclass(eq=False)
class MissingPeer(RankError, TimeoutError):
    """A wait for ranks that ended by its timeout: they are dead, late, or were never started."""

    code = "TW605"
    template = "rank {rank} has waited {seconds} s for {whom}, in {place}"
    hint_template = (
        "see whether these ranks have failed; on every rank, the same calls and launches must "
        "happen in the same order"
    )

    rank: int
    missing: Iterable[int]
    seconds: str
    place: str

    @property
    def whom(self) -> str:
        """The missing ranks."""
        return " and ".join(f"rank {rank}" for rank in self.missing)


@dataclass(eq=False)
class NoGroup(RankError):
    """A call without a group, in a process without a default one."""

    code = "TW606"
    template = "there is no group of ranks"
    hint_template = (
        "call torch.distributed.init_process_group, or pass group=: a FolderGroup or ThreadGroup "
        "of tilewright.distributed"
    )
