"""Whatever keeps the blocks of a cluster together is missed when it is left out or wrong."""

import pytest

from tests.emulator.memory import EmulationError
from tests.emulator.test_warp_roles_faults import plant, replaced, without
from tests.kernels.devices import EmulatedNvidia
from tests.kernels.test_shared_copies import assert_product
from tests.kernels.tutorial_matmul import tutorial_matmul
from tilewright import jit, settings

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
