"""`triton._internal_testing`: targets, dtypes and arrays for tests that were written for Triton.

Arrays need torch, `requires_tma` and fresh knobs need pytest, as those tests do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, cast

import numpy as np
from numpy.random import RandomState

from tilewright.language import dtype as language_dtype
from tilewright.runtime import TensorWrapper, driver, reinterpret
from tilewright.support import import_late, settings
from tilewright.triton_alias import knobs
from tilewright.triton_alias.argument_paths import type_canonicalisation_dict
from tilewright.triton_alias.named_types import str_to_ty

Array = np.ndarray[Any, Any]

int_dtypes = ["int8", "int16", "int32", "int64"]
uint_dtypes = [f"u{name}" for name in int_dtypes]
integral_dtypes = int_dtypes + uint_dtypes
float_dtypes = ["float16", "float32", "float64"]
float_dtypes_with_bfloat16 = [*float_dtypes, "bfloat16"]
dtypes = integral_dtypes + float_dtypes
dtypes_with_bfloat16 = [*dtypes, "bfloat16"]
torch_float8_dtypes = ["float8_e4m3fn", "float8_e5m2"]
torch_dtypes = ["bool", *int_dtypes, "uint8", *float_dtypes_with_bfloat16]
tma_dtypes = sorted({*dtypes_with_bfloat16} - {"int64", "uint64", "float64"})


# --- the target -----------------------------------------------------------------------------------


def is_interpreter() -> bool:
    """Whether kernels are interpreted."""
    return settings().interpreter.enabled


def get_current_target() -> Any:
    """The target of the active device; None in the interpreter."""
    return None if is_interpreter() else driver.active.get_current_target()


def _backend() -> str:
    target = get_current_target()
    return "" if target is None else target.backend


def get_arch() -> str:
    """The architecture of the target; "" in the interpreter."""
    target = get_current_target()
    return "" if target is None else str(target.arch)


def is_cuda() -> bool:
    """Whether the active device is an NVIDIA GPU."""
    return _backend() == "cuda"


def is_hip() -> bool:
    """Whether it is an AMD GPU."""
    return _backend() == "hip"


def is_xpu() -> bool:
    """Whether it is an Intel GPU."""
    return _backend() == "xpu"


def _generation() -> int:
    """The major compute capability of the active NVIDIA GPU; 0 for any other device."""
    return int(get_current_target().arch) // 10 if is_cuda() else 0


def is_ampere_or_newer() -> bool:
    """Whether it is an NVIDIA GPU of compute capability 8 or higher."""
    return _generation() >= 8


def is_hopper() -> bool:
    """Whether it is an NVIDIA GPU of compute capability 9."""
    return _generation() == 9


def is_hopper_or_newer() -> bool:
    """Whether it is an NVIDIA GPU of compute capability 9 or higher."""
    return _generation() >= 9


def is_blackwell() -> bool:
    """Whether it is an NVIDIA GPU of compute capability 10."""
    return _generation() == 10


def is_sm12x() -> bool:
    """Whether it is an NVIDIA GPU of compute capability 12."""
    return _generation() == 12


def _on_amd(*architectures: str) -> Callable[[], bool]:
    def holds() -> bool:
        """Whether the active device is such an AMD GPU."""
        return is_hip() and any(name in get_arch() for name in architectures)

    return holds


is_hip_cdna2 = _on_amd("gfx90a")
is_hip_cdna3 = _on_amd("gfx942")
is_hip_cdna4 = _on_amd("gfx950")
is_hip_cdna = _on_amd("gfx90a", "gfx942", "gfx950")
is_hip_gfx11 = _on_amd("gfx11")
is_hip_gfx12 = _on_amd("gfx12")
is_hip_gfx1250 = _on_amd("gfx1250")


def get_hip_lds_size() -> int:
    """Bytes of shared memory of a program on an AMD GPU."""
    return 160 * 1024 if is_hip_cdna4() else 64 * 1024


def supports_tma(byval_only: bool = False) -> bool:
    """Whether tensor descriptors work; byval_only: those that are arguments of kernels."""
    if is_interpreter():
        return True
    if not is_hopper_or_newer():
        return False
    major, minor, *_ = (int(part) for part in knobs.nvidia.ptxas.version.split("."))
    return (major, minor) >= ((12, 0) if byval_only else (12, 3))


def supports_ws() -> bool:
    """Whether kernels with warp roles work."""
    return is_interpreter() or is_hopper_or_newer()


def tma_skip_msg(byval_only: bool = False) -> str:
    """The reason to skip a test with tensor descriptors."""
    toolkit = "12.0" if byval_only else "12.3"
    return f"tensor descriptors need compute capability 9 or higher, and CUDA {toolkit} or higher"


requires_tma: Any
"""A mark that skips tests if tensor descriptors do not work."""


def __getattr__(name: str) -> Any:
    # not at the import, since programs use the queries above without pytest
    if name != "requires_tma":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    pytest: Any = import_late("pytest")
    return pytest.mark.skipif(not supports_tma(), reason=tma_skip_msg())


# --- arrays ---------------------------------------------------------------------------------------


def numpy_random(
    shape: int | Sequence[int],
    dtype_str: str,
    rs: RandomState | None = None,
    low: int | None = None,
    high: int | None = None,
) -> Array:
    """Random numbers, the same for each call without `rs`.

    Integers are from `low` to `high`, by default all of the type, and never 0, which tests divide
    by; floats are normally distributed. "bfloat16" is float32 that bfloat16 represents; of "float8"
    the bits are returned, as int8.
    """
    rs = rs or RandomState(17)
    if dtype_str in integral_dtypes:
        limits = np.iinfo(dtype_str)
        least = limits.min if low is None else max(low, limits.min)
        most = limits.max if high is None else min(high, limits.max)
        numbers = rs.randint(least, most, shape, dtype=np.dtype(dtype_str))
        return np.where(numbers == 0, numbers.dtype.type(1), numbers)
    if "float8" in dtype_str:
        return rs.randint(20, 40, shape, dtype=np.int8)
    if dtype_str in ("bool", "int1", "bool_"):
        return rs.normal(0, 1, shape) > 0
    numbers = rs.normal(0, 1, shape)
    if dtype_str == "bfloat16":
        return (numbers.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
    return numbers.astype(dtype_str)


def to_triton(x: Array, device: Any, dst_type: str | None = None) -> Any:
    """An array as a tensor of torch, or a wrapper of one if torch lacks the dtype.

    dst_type: its dtype, if that is one that NumPy lacks: "bfloat16", "float8e5" ...
    """
    torch: Any = import_late("torch")
    name = x.dtype.name
    if name in uint_dtypes:
        signed = torch.tensor(x.view(name.removeprefix("u")), device=device)
        return reinterpret(signed, str_to_triton_dtype(name))
    tensor = torch.tensor(x, device=device)
    if dst_type and "float8" in dst_type:
        return reinterpret(tensor, language_dtype(dst_type.replace("float", "fp")))
    return tensor.bfloat16() if (name, dst_type) == ("float32", "bfloat16") else tensor


def to_numpy(x: Any) -> Array:
    """A tensor or wrapper as an array; bfloat16 as float32."""
    torch: Any = import_late("torch")
    if isinstance(x, TensorWrapper):
        return x.base.cpu().numpy().astype(torch_dtype_name(x.dtype))
    if not isinstance(x, torch.Tensor):
        raise ValueError(f"no tensor: {type(x).__name__}")
    tensor = x.cpu()
    return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()


def unwrap_tensor(t: Any) -> Any:
    """The tensor inside a wrapper."""
    return t.base if isinstance(t, TensorWrapper) else t


def str_to_triton_dtype(x: str) -> Any:
    """The type of the language for a dtype's name in NumPy or torch."""
    return str_to_ty(type_canonicalisation_dict[x], None)


def torch_dtype_name(dtype: Any) -> str:
    """The name of a dtype of the language or of torch."""
    if isinstance(dtype, language_dtype):
        return dtype.name
    torch: Any = import_late("torch")
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"no dtype of the language or of torch: {type(dtype).__name__}")
    return str(cast("object", dtype)).rpartition(".")[2]


def default_alloc_fn(size: int, align: int, _: object) -> Any:
    """An allocator for `set_allocator`, in the memory of the GPU."""
    torch: Any = import_late("torch")
    return torch.empty(size, dtype=torch.int8, device="cuda")


# --- settings -------------------------------------------------------------------------------------


def _fresh_knobs_impl(  # pyright: ignore[reportUnusedFunction]
    skipped_attr: Collection[str] | None = None,
) -> tuple[Callable[[], Any], Callable[[], None]]:
    """(fresh, reset): `fresh()` is `knobs` without assignments and without its variables in the
    environment; `reset()` restores all. skipped_attr: groups that are left alone."""
    pytest: Any = import_late("pytest")
    patch = pytest.MonkeyPatch()
    groups = {
        name: value
        for name, value in vars(knobs).items()
        if isinstance(value, knobs.base_knobs) and name not in (skipped_attr or ())
    }
    propagated = knobs.propagate_env

    def fresh() -> Any:
        for name, group in groups.items():
            for knob in group.knob_descriptors.values():
                # set before it is deleted, so that the value that a test sets is undone
                patch.setenv(knob.key, "")
                patch.delenv(knob.key)
            setattr(knobs, name, group.copy().reset())
        knobs.propagate_env = True
        return knobs

    def reset() -> None:
        for name, group in groups.items():
            setattr(knobs, name, group)
        patch.undo()
        knobs.propagate_env = propagated

    return fresh, reset
