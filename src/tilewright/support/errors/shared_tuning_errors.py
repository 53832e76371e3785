"""TW51x: tuning and compilation by several processes."""

from collections.abc import Iterable

from tilewright.support.data_class import dataclass
from tilewright.support.errors.user_error import TilewrightError


@dataclass(eq=False)
class SharedTuningError(TilewrightError, RuntimeError):
    """Base of the errors of processes that tune or compile together."""

    code = "TW510"


@dataclass(eq=False)
class RanksDiffer(SharedTuningError):
    """Ranks that tune different kernels or keys at the same time."""

    code = "TW511"
    template = "rank {rank} tunes {title}, but rank {other} tunes {expected}"
    hint_template = (
        "launch the tuned kernels of an agreement in the same order, with the same keys and "
        "configurations, on every rank of its group"
    )

    rank: int
    title: str
    other: int
    expected: str


@dataclass(eq=False)
class RanksLost(SharedTuningError, TimeoutError):
    """Ranks that make no progress while others wait for their timings."""

    code = "TW512"
    template = (
        "{whom} made no progress for {seconds} s in the tuning of {title}: every rank uses the "
        "default configuration, for later keys too"
    )
    hint_template = (
        "see whether these ranks have failed; for slow ones, pass a longer "
        "agree(..., timeout=seconds)"
    )

    ranks: Iterable[int]
    seconds: str
    title: str

    @property
    def whom(self) -> str:
        """The ranks that were lost."""
        return " and ".join(f"rank {rank}" for rank in self.ranks) or "some rank"


@dataclass(eq=False)
class RankFailed(SharedTuningError):
    """An exception of one rank during a tuning."""

    code = "TW513"
    template = (
        "the tuning of {title} failed on rank {rank} ({problem}): every rank uses the default "
        "configuration for this key"
    )
    hint_template = "see the exception of rank {rank}"

    title: str
    rank: int
    problem: str


@dataclass(eq=False)
class StoreLost(SharedTuningError, ConnectionError):
    """A store of a process group that does not respond."""

    code = "TW514"
    template = (
        "the store of the process group does not respond in the tuning of {title} ({problem}): "
        "this rank uses the default configuration, for later keys too"
    )
    hint_template = "see whether the process that has the store, rank 0 or torchrun, has failed"

    title: str
    problem: str


@dataclass(eq=False)
class OtherCompiler(SharedTuningError):
    """A worker whose versions differ from those of the process that sends it jobs."""

    code = "TW515"
    template = "this process compiles by {here}, and the worker by {there}"
    hint_template = "install the same versions of tilewright, llvmlite and ptxas on every machine"

    here: str
    there: str


@dataclass(eq=False)
class WorkerLost(SharedTuningError):
    """A worker that has not returned the result of a job; a warning."""

    code = "TW516"
    template = "no worker has compiled {kernel} in {tries} tries ({problem}); it is compiled here"
    hint_template = (
        "see the logs of the workers: they run out of memory, or cannot import tilewright"
    )

    kernel: str
    tries: int
    problem: str


@dataclass(eq=False)
class CompilerCrashed(SharedTuningError):
    """A kernel that ends every process that compiles it."""

    code = "TW517"
    template = "the compiler ends without a result for {kernel}: {problem}"
    hint_template = (
        "please report it with the kernel's source; other configurations are not affected"
    )

    kernel: str
    problem: str
