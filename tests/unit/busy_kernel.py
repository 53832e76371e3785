"""A kernel for scripts of profilers, whose time is that of one line."""

BUSY = """
@{package}.jit
def busy(x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i)
    for _ in range(64):
        a = tl.sin(a) + 1.0
    tl.store(x + i, a)

x = np.ones(1 << 18, "f")
"""
"""Text for `str.format`: `package` is the module with `jit`."""
