"""The lock around LLVM: calls wait for it, and a forked child finds it free."""

import threading
import time

from tests.forking import assert_child_succeeds, needs_fork
from tilewright.llvm import compile_ir, host_target, load_object
from tilewright.llvm.library_calls import filled_text
from tilewright.llvm.llvm_lock import LLVM_LOCK

IR = """
define i64 @answer(i64 %x) {
  %sum = add i64 %x, 41
  ret i64 %sum
}
"""


def compile_and_load() -> None:
    assert load_object(compile_ir(IR, host_target()), ["answer"])["answer"]


def test_calls_of_llvm_wait_for_the_lock() -> None:
    done = threading.Event()

    def call() -> None:
        filled_text("GetHostCPUName")
        done.set()

    with LLVM_LOCK:
        thread = threading.Thread(target=call)
        thread.start()
        assert not done.wait(0.2)
    assert done.wait()
    thread.join()


@needs_fork
def test_children_compile_whatever_other_threads_do_meanwhile() -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            compile_and_load()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            time.sleep(0.01)
            assert_child_succeeds(compile_and_load)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
