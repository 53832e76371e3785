"""`triton.language.core.builtin` and `extern`: functions of users that kernels call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.triton_alias.user_builtins import builtin


@builtin
def are_known(*values, _semantic=None):
    return sum(isinstance(value, tl.constexpr) << i for i, value in enumerate(values))


@builtin
def difference(x: Any, y: Any, _semantic: Any = None):
    assert _semantic is None
    # keywords that only functions written for Triton pass on
    larger: Any = tl.maximum
    return larger(x, y, _semantic=_semantic) - tl.minimum(x, y)


@builtin
def sine(arg0, _semantic=None):
    names = {(tl.float32,): ("__nv_sinf", tl.float32)}
    return tl.extern_elementwise("", "", [arg0], names, is_pure=True, _semantic=_semantic)


@pytest.mark.parametrize("interpret", [False, True])
def test_kernels_call_functions_of_users(interpret: bool) -> None:
    @tilewright.jit(interpret=interpret)
    def kernel(x, n: tl.constexpr, pair):
        value = tl.load(x)
        tl.store(x, are_known(n, value, pair, tl.float32, 7))
        tl.store(x + 1, difference(value, y=n))
        tl.store(x + 2, sine(value))

    x = np.array([0.5, 0, 0], np.float32)
    kernel[(1,)](x, 3, (1, 2))
    np.testing.assert_allclose(x, [0b11001, 2.5, np.sin(0.5)], rtol=1e-6)
    assert sine.__name__ == "sine"
