"""The module of each pass by name, imported when the text of a pipeline names the pass.

Compilation does not use this table: pipelines import their passes.
"""

from __future__ import annotations

_SHARED = "tilewright.transforms.passes"
_CPU = "tilewright.backends.cpu.passes"
_NVIDIA = "tilewright.backends.nvidia.passes"

PASS_MODULES = {
    "canonicalize": f"{_SHARED}.canonicalize",
    "cse": f"{_SHARED}.cse",
    "dce": f"{_SHARED}.dce",
    "lower-descriptors": f"{_SHARED}.lower_descriptors",
    "instrument-accesses": "tilewright.transforms.checks.instrument_accesses",
    "guard-inactive-programs": f"{_SHARED}.guard_inactive_programs",
    "licm": f"{_SHARED}.licm",
    "narrow-integers": f"{_SHARED}.narrow_integers",
    "strength-reduce": f"{_SHARED}.strength_reduce",
    "full-unroll": f"{_SHARED}.full_unroll",
    "unroll": f"{_SHARED}.unroll",
    "cpu-legalize": f"{_CPU}.legalize",
    "cpu-select-branches": f"{_CPU}.select_branches",
    "cpu-select-transposes": f"{_CPU}.select_transposes",
    "nvidia-assign-layouts": f"{_NVIDIA}.assign_layouts",
    "nvidia-sink-wgmma-waits": f"{_NVIDIA}.sink_wgmma_waits",
    "nvidia-lower-exchanges": f"{_NVIDIA}.lower_exchanges",
    "nvidia-insert-global-barriers": f"{_NVIDIA}.insert_global_barriers",
    "nvidia-insert-shared-barriers": f"{_NVIDIA}.insert_shared_barriers",
    "nvidia-legalize-arithmetic": f"{_NVIDIA}.legalize_arithmetic",
    "nvidia-legalize-casts": f"{_NVIDIA}.legalize_casts",
    "nvidia-legalize-dots": f"{_NVIDIA}.legalize_dots",
    "nvidia-legalize-shapes": f"{_NVIDIA}.legalize_shapes",
    "nvidia-infer-noncoherent-loads": f"{_NVIDIA}.infer_noncoherent_loads",
    "nvidia-insert-tma-store-waits": f"{_NVIDIA}.insert_tma_store_waits",
    "nvidia-predicate-accumulator-init": f"{_NVIDIA}.predicate_accumulator_init",
    "nvidia-skew-dependent-dots": f"{_NVIDIA}.skew_dependent_dots",
    "nvidia-lower-non-tma-descriptors": f"{_NVIDIA}.lower_non_tma_descriptors",
    "nvidia-select-tma": f"{_NVIDIA}.select_tma",
    "nvidia-select-mma": f"{_NVIDIA}.select_mma",
    "nvidia-multicast-tma": f"{_NVIDIA}.multicast_tma",
    "nvidia-simplify-pid-division": f"{_NVIDIA}.simplify_pid_division",
    "nvidia-peel-mask-selects": f"{_NVIDIA}.peel_mask_selects",
    "nvidia-software-pipeline": f"{_NVIDIA}.software_pipeline",
    "nvidia-specialize-warps": f"{_NVIDIA}.specialize_warps",
    "nvidia-split-dot-k": f"{_NVIDIA}.split_dot_k",
    "nvidia-split-reductions": f"{_NVIDIA}.split_reductions",
    "nvidia-strip-mine-tiles": f"{_NVIDIA}.strip_mine_tiles",
    "nvidia-version-loop-body": f"{_NVIDIA}.version_loop_body",
}
"""Passes of other packages are registered when their modules are imported."""
