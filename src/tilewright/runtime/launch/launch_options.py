"""Keywords of a launch that are not parameters of the kernel: options of the backend, and
errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from tilewright.backends import CommonOptions
from tilewright.runtime.arguments.kernel_parameters import KernelParam
from tilewright.support import errors

IGNORED = frozenset(
    {
        # AMD's options of Triton
        "waves_per_eu", "matrix_instr_nonkdim", "kpack", "schedule_hint", "allow_flush_denorm",
        "instruction_sched_variant", "cluster_dims",
        # NVIDIA's: tuning hints and assembler options, which never change a result
        "ptx_version", "ptx_options", "enable_reflect_ftz", "max_num_imprecise_acc_default",
        "instrumentation_mode", "sched4reg", "clc", "min_shared_mem", "num_buffers_warp_spec",
        "num_consumer_groups", "enable_warp_specialization", "reg_dec_producer",
        "reg_inc_consumer", "optimize_epilogue", "fpsan_homomorphic_casts", "arch",
    }
)  # fmt: skip
"""Options that programs for Triton pass: accepted, and without effect unless the backend has
them."""

_REFUSED = {
    "device": "kernels run on the device of their array arguments",
    "stream": "kernels run on the current stream of their device",
    "grid": "write kernel[grid](...), or kernel.run(..., grid=grid)",
    "warmup": "to compile without running, call kernel.warmup(..., grid=grid)",
    **{
        name: f"it belongs to the decorator: @jit({name}=...)"
        for name in (
            "check", "do_not_specialize", "do_not_specialize_on_alignment", "int64_offsets",
            "interpret", "launch_metadata", "noinline", "repr", "strict_triton",
        )
    },
}  # fmt: skip

IR_OVERRIDE = "ir_override"
"""Name of the option whose value is a file: the stage from which compilation continues."""

Keywords = Mapping[str, object]


def split_keywords(
    kernel: str, params: Sequence[KernelParam], keywords: Keywords, options: frozenset[str]
) -> tuple[dict[str, Any], dict[str, object]]:
    """Options of the backend, and the entries of the kernel's `**META`; IGNORED are dropped.

    Errors: RefusedKeyword, UnknownArgument.
    """
    has_meta = any(param.is_keywords for param in params)
    chosen: dict[str, Any] = {}
    meta: dict[str, object] = {}
    for name, value in keywords.items():
        if name in options or name == IR_OVERRIDE:
            chosen[name] = _frozen(value)
        elif has_meta:
            meta[name] = value
        elif name in _REFUSED:
            raise errors.RefusedKeyword(kernel, name, _REFUSED[name])
        elif name not in IGNORED:
            names = [param.name for param in params]
            raise errors.UnknownArgument(kernel, name, [*names, *sorted(options)])
    return chosen, meta


def refuse_unknown(kernel: str, params: Sequence[KernelParam], keywords: Keywords) -> None:
    """Raise RefusedKeyword or UnknownArgument for a keyword that neither the kernel nor any backend
    takes."""
    split_keywords(kernel, params, keywords, CommonOptions.names())


def _frozen(value: object) -> object:
    """An option's value as a part of a key: dictionaries and lists become tuples."""
    if isinstance(value, dict):
        # sorted, since the order of a dictionary means nothing to an option
        return tuple(sorted(cast("dict[str, object]", value).items()))
    return tuple(cast("list[object]", value)) if isinstance(value, list) else value
