"""Whatever keeps the blocks of a cluster together is missed when it is left out or wrong."""

import re

import numpy as np
import pytest

import tilewright.language as tl
from tests.emulator import machine
from tests.emulator.memory import Array, EmulationError
from tests.emulator.test_warp_roles_faults import plant, replaced, without
from tests.kernels.devices import EmulatedNvidia
from tests.kernels.test_shared_copies import assert_product
from tests.kernels.tutorial_matmul import tutorial_matmul
from tilewright import jit, settings


@jit
def in_place(x, z):
    """The second block of the cluster ends at once: its warps see nothing of all this."""
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 32)[None, :]
    tile = tl.load(x + j) + i
    tl.store(z + i * 32 + j, tile)
    tl.store(x + tl.arange(0, 32), tl.load(z + tl.arange(0, 32) * 33))


def stored_in_place() -> Array:
    device = EmulatedNvidia()
    x, z = device.array(np.arange(32), np.float32), device.empty((64, 32), np.float32)
    device.run(jit(in_place.fn), (1,), x, z, num_warps=4, num_ctas=2)
    return x


_BARRIER = (
    r'call void asm sideeffect "barrier\.cluster\.arrive\.relaxed;"[^\n]*\n[^\n]*'
    r"barrier\.cluster\.wait;[^\n]*\n"
)
_BLOCK_BARRIER = r'call void asm sideeffect "bar.sync 0;", "~{memory}"() #1\n'

FAULTS = {
    # the consumers of this block know of the mbarriers, the copies of the other do not
    "the blocks do not wait for each other's mbarriers": replaced(_BARRIER, _BLOCK_BARRIER, 0),
    "a block does not wait for the other's end": without(_BARRIER, 1),
    "copies are for one block": lambda text: text.replace("], 3;", "], 1;"),
    "copies are for a third block": lambda text: text.replace("], 3;", "], 7;"),
    "both halves are released where they were read": replaced(
        r"mapa\.shared::cluster\.u32 \$0, \$1, \$2;", "mov.u32 $0, $1;"
    ),
    "slots wait for one block": replaced(r"(= mul i32 %\w+), 4\b", r"\1, 2"),
    "a wait for the cluster without an arrival": replaced(
        r"barrier\.cluster\.arrive\.relaxed;", "griddepcontrol.wait;"
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(FAULTS[fault], monkeypatch)
    with pytest.raises(EmulationError), settings().cache.scope(always_compile=True):
        assert_product(EmulatedNvidia(), jit(tutorial_matmul.fn), 104, 104, 328)


def test_every_barrier_of_one_block_of_a_cluster_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = list[str]()
    parse = machine.parse
    with monkeypatch.context() as patched, settings().cache.scope(always_compile=True):
        patched.setattr(machine, "parse", lambda text: texts.append(text) or parse(text))
        np.testing.assert_array_equal(stored_in_place(), np.arange(32) * 2)
    barrier = r'call void asm sideeffect "bar\.sync 0;"[^\n]*\n'
    count = len(re.findall(barrier, texts[0]))
    assert count
    for number in range(count):
        with monkeypatch.context() as patched, settings().cache.scope(always_compile=True):
            plant(without(barrier, number), patched)
            with pytest.raises(EmulationError, match="without a barrier"):
                stored_in_place()
