"""Whatever orders a producer and its consumers is missed when it is left out or done too early."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.emulator import launch, machine
from tests.emulator.memory import EmulationError
from tests.kernels.devices import EmulatedNvidia
from tests.kernels.looped_products import batched, nested
from tests.kernels.test_warp_roles import assert_right, assert_turns
from tilewright import jit, settings
from tilewright.backends.nvidia.schedule import role_expansion

_WAIT = re.compile(r'call void asm sideeffect "\{ \.reg \.pred done;[^\n]*\n')
_ARRIVE = re.compile(r'"@\$1 mbarrier\.arrive\.shared::cta\.b64 _, \[\$0\];"[^\n]*\n')


def without(pattern: str, number: int = 0) -> Callable[[str], str]:
    """The text without one of what matches."""

    def changed(text: str) -> str:
        match = list(re.finditer(pattern, text))[number]
        return text[: match.start()] + text[match.end() :]

    return changed


def replaced(old: str, new: str, number: int = 0) -> Callable[[str], str]:
    def changed(text: str) -> str:
        match = list(re.finditer(old, text))[number]
        return text[: match.start()] + match.expand(new) + text[match.end() :]

    return changed


def released_while_read(text: str) -> str:
    """The slot before is released at once, though its product goes on."""
    arrive = _line_with(text, _ARRIVE)
    wait = "wgmma.wait_group.sync.aligned 1;"
    assert text.index(wait) < text.index(arrive)
    return text.replace(wait, "wgmma.wait_group.sync.aligned 2;", 1)


def _line_with(text: str, pattern: re.Pattern[str]) -> str:
    match = pattern.search(text)
    assert match is not None
    return match[0]


WAIT = _WAIT.pattern
FAULTS: dict[str, Callable[[str], str]] = {
    # the producer's code comes first
    "no wait for empty slots": without(WAIT, 0),
    "no wait for full slots": without(WAIT, 1),
    "a slot is released while it is read": released_while_read,
    "more arrivals than warps": replaced(r"mbarrier\.init([^;]*), 4;", r"mbarrier.init\1, 5;"),
    "fewer arrivals than warps": replaced(r"mbarrier\.init([^;]*), 4;", r"mbarrier.init\1, 3;"),
    "no fence behind the barriers' start": lambda text: text.replace(
        "fence.mbarrier_init.release.cluster;", ""
    ),
    "the roles do not wait for the barriers": without(r"bar\.sync 0;"),
    "a barrier of all threads in a role": replaced(
        r'"bar\.sync \$0, 128;", "r', '"bar.sync $0, 256;", "r'
    ),
    "registers are not given back": without(r"setmaxnreg\.dec\.sync\.aligned\.u32 \d+;"),
    "the producer's first parity": replaced(r"(%c\d+ = phi i32 \[) 1,", r"\1 0,"),
}


TURNS: dict[str, Callable[[str], str]] = {
    "a group does not wait for its turn": without(WAIT, 1),
    # the first one releases slots in the loop
    "no group passes the turn on": without(
        r"@\$1 mbarrier\.arrive\.shared::cta\.b64 _, \[\$0\];", 1
    ),
    "groups exchange in the same bytes": replaced(
        r"(udiv i32 [^\n]*\n[^\n]*= mul i32 %v\d+), \d+", r"\1, 0"
    ),
}


def run(seed: int | None) -> None:
    with settings().cache.scope(always_compile=True):
        assert_right(EmulatedNvidia(seed), jit(nested.fn), (200, 136, 328))


def run_turns() -> None:
    with settings().cache.scope(always_compile=True):
        assert_turns(EmulatedNvidia(0), jit(batched.fn), (8, 656, 208))


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(FAULTS[fault], monkeypatch)
    with pytest.raises(EmulationError):
        run(None)


@pytest.mark.parametrize("fault", TURNS)
def test_every_fault_of_turns_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(TURNS[fault], monkeypatch)
    # or wrong results: nothing forbids to write what others have read
    with pytest.raises((EmulationError, AssertionError)):
        run_turns()


def plant(fault: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Launch kernels with a fault in their text."""
    texts = list[str]()
    parse, launched = machine.parse, launch.Emulated.launch

    def kept(text: str) -> Any:
        texts.append(text)
        return parse(text)

    def launched_with_fault(self: Any, grid: Any, values: Any) -> None:
        right = self.kernel
        text = fault(texts[0])
        assert text != texts[0]
        self.kernel = right.with_text(text)
        launched(self, grid, values)

    monkeypatch.setattr(machine, "parse", kept)
    monkeypatch.setattr(launch.Emulated, "launch", launched_with_fault)


def test_counters_that_start_again_with_each_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    carry = role_expansion.carry_through

    def restarted(
        loops: Any, block: Any, values: Any, following: Any, found: Any, **more: Any
    ) -> Any:
        (loop,) = loops
        return carry(loops, loop.parent, values, following, found, **more)

    monkeypatch.setattr(role_expansion, "carry_through", restarted)
    with pytest.raises(EmulationError, match="copy may be writing|all warps wait"):
        run(1)
