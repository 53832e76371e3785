"""Schedules of loops: loads ahead of their use, buffers and barriers, roles of warps.

`schedule_loop` decides, `expand_loop` rewrites a loop by its schedule, `role_expansion` splits a
function into producer and consumers; the passes software-pipeline, specialize-warps and those that
prepare their loops use them. May import `nvidia.shared_memory` and `nvidia.layouts`.
"""
