"""What becomes of a failed assertion that no launch waits for."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.memory import EmulationError
from tests.kernels.devices import EmulatedNvidia
from tests.kernels.test_printing import assert_kernel
from tilewright.support import errors


def test_a_failed_assertion_leaves_its_record_and_traps_where_it_is_to_stop() -> None:
    device = EmulatedNvidia()
    values = np.arange(1, 65, dtype=np.int32)
    x, out = device.array(values), device.empty(64, np.int32)
    kernel = device.run(assert_kernel, (2,), x, out, 64, BLOCK=32, debug=True)
    console = kernel.launcher.console
    console.failure.stops = True
    x[40] = -1
    with pytest.raises(EmulationError, match="a thread traps"):
        device.run(assert_kernel, (2,), x, out, 64, BLOCK=32, debug=True)
    for _ in range(2):
        with pytest.raises(errors.DeviceAssertionFailure, match=r"\(1, 0, 0\).*at \(8\)"):
            console.check()
    console.failure.stops = False
    with pytest.raises(errors.DeviceAssertionFailure):
        console.check()
    device.run(assert_kernel, (1,), x, out, 32, BLOCK=32, debug=True)
    np.testing.assert_array_equal(out[:32], values[:32])


def test_a_failed_assertion_of_which_nobody_wants_a_record_traps() -> None:
    device = EmulatedNvidia()
    x, out = device.array(-np.ones(32, np.int32)), device.empty(32, np.int32)
    good = device.array(np.ones(32, np.int32))
    kernel = device.run(assert_kernel, (1,), good, out, 32, BLOCK=32, debug=True)
    console, failure = kernel.launcher.console, kernel.launcher.console.failure
    console.failure = None
    # the module's memory as it is loaded
    console._clear("tilewright_failure", 16)
    with pytest.raises(EmulationError, match="a thread traps"):
        device.run(assert_kernel, (1,), x, out, 32, BLOCK=32, debug=True)
    console.failure = failure
    assert failure.words() is None
    console._clear("tilewright_failure", 16)
