"""From legal tile IR to the LLVM text of a CPU kernel: fused loop nests over lanes.

`cpu_function` is the entry, `fusion` decides which loop nests there are, `fused_loop_nest` emits
one. May import `cpu.microkernel` and `cpu.ops`; independent of passes and of running code.
"""
