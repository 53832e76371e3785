"""Dropping memory from the caches: every line of it, and nothing else."""

import numpy as np
import pytest

from tilewright.backends.cpu.driver import cache_flush
from tilewright.backends.cpu.driver.cache_flush import drop_lines
from tilewright.llvm import compile_ir, host_cpu, host_target

needs_the_instruction = pytest.mark.skipif(
    "clflushopt" not in host_cpu().enabled, reason="this CPU has no clflushopt"
)

LINE = 64
INSTRUCTION = "declare void @llvm.x86.clflushopt(ptr)"
COUNTED = """
define internal void @count(ptr %line) nounwind {
  %old = load i8, ptr %line
  %new = add i8 %old, 1
  store i8 %new, ptr %line
  ret void
}
"""


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of dropping a line, count in its first byte."""
    text = cache_flush.CACHE_FLUSH.text()
    assert INSTRUCTION in text
    text = text.replace(INSTRUCTION, COUNTED).replace("@llvm.x86.clflushopt", "@count")
    text = text.replace("declare void @llvm.x86.sse2.mfence()\n", "")
    text = text.replace("  call void @llvm.x86.sse2.mfence()\n", "")
    obj = compile_ir(text, host_target(), inline=True)
    loaded = cache_flush._load(obj)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(cache_flush, "_loaded", lambda: loaded)


@pytest.mark.parametrize(
    "spans",
    [
        [(0, 1)],
        [(0, 64)],
        [(63, 2)],
        [(100, 1000)],
        [(1 << 16, 1 << 16)],
        [((1 << 16) - 5, (1 << 17) + 9)],
        [(0, 1 << 20)],
        [(128, 10), (4096, 3 << 16), (1 << 19, 1), ((1 << 20) - 1, 1)],
    ],
)
@pytest.mark.usefixtures("counted")
def test_each_line_once_and_no_other(spans: list[tuple[int, int]]) -> None:
    memory = np.zeros((1 << 20) + LINE, np.uint8)
    start = memory.ctypes.data + -memory.ctypes.data % LINE
    assert drop_lines([(start + first, size) for first, size in spans])
    found = memory[start - memory.ctypes.data :][: 1 << 20]
    expected = np.zeros(1 << 20, np.uint8)
    for first, size in spans:
        expected[first & -LINE : first + size : LINE] = 1
    np.testing.assert_array_equal(found, expected)


@needs_the_instruction
def test_memory_keeps_what_it_holds() -> None:
    memory = np.arange(1 << 20, dtype=np.uint32)
    memory[5] = 7
    assert drop_lines([(memory.ctypes.data, memory.nbytes)])
    memory[5] = 5
    np.testing.assert_array_equal(memory, np.arange(1 << 20, dtype=np.uint32))


def test_a_cpu_without_the_instruction_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_flush, "_loaded", lambda: None)
    assert not drop_lines([(0, 64)])
