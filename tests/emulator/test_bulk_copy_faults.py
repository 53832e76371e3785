"""Each synchronization of TMA loads is reported where it is left out."""

import re

import ml_dtypes
import numpy as np
import pytest

from tests.emulator import machine
from tests.emulator.memory import EmulationError
from tests.emulator.test_warp_roles_faults import plant, without
from tests.kernels.devices import EmulatedNvidia
from tests.kernels.test_computed_operands import exchanged_before
from tilewright import jit, settings


def run() -> None:
    device = EmulatedNvidia()
    a, b = (device.array(np.ones((128, 128)), ml_dtypes.float8_e5m2) for _ in range(2))
    out = device.empty((128, 32), np.float32)
    with settings().cache.scope(always_compile=True):
        device.run(jit(exchanged_before.fn), (1,), a, b, out, 4, 128, 32, 32, num_stages=2)


@pytest.mark.parametrize("statement", [r"fence\.proxy\.async\.shared::cta;", r"bar\.sync 0;"])
def test_every_statement_that_orders_is_missed(
    statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = list[str]()
    parse = machine.parse
    with monkeypatch.context() as patched:
        patched.setattr(machine, "parse", lambda text: texts.append(text) or parse(text))
        run()
    count = len(re.findall(statement, texts[0]))
    assert count
    for number in range(count):
        with monkeypatch.context() as patched:
            plant(without(statement, number), patched)
            with pytest.raises(EmulationError):
                run()
