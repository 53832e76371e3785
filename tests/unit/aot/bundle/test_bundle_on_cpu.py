"""Bundles for CPUs: C programs that link them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.aot.bundle.bundle_kernels import (
    add_specs,
    load,
    matmul_specs,
    nothing,
    printing,
    reserved_specs,
    scale_spec,
    softmax_spec,
    turns_specs,
)
from tests.unit.aot.bundle.c_programs import bundle_of, compiled, compiler, run_checked
from tilewright.aot import KernelSpec
from tilewright.llvm import host_cpu
from tilewright.support import errors

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-amx", "aarch64")

ADD = r"""
#include "demo.h"
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
enum { N = 50000 };

static void all(void *context, tilewright_part *part, void *job, int32_t threads) {
    ++*(int *)context;
    for (int32_t i = 0; i < threads; i++)
        part(job, i);
}

static void *work(void *thread) {
    int calls = 0;
    tilewright_queue queue = tilewright_cpu();
    queue.threads = (int)(size_t)thread % 3;
    if (queue.threads == 2)
        queue.threads = 7, queue.parallel = all, queue.context = &calls;
    char *memory = malloc(3 * N * sizeof(float) + 64);
    float *x = (float *)memory + (size_t)thread % 4, *y = x + N, *out = y + N;
    size_t wrong = 0;
    for (int i = 0; i < N; i++)
        x[i] = (float)i, y[i] = 2.0f * (float)i;
    for (int round = 0; round < 10; round++) {
        int n = N - 48 * round - round % 2;
        for (int i = 0; i < N; i++)
            out[i] = -1;
        wrong += demo_add(&queue, x, y, out, n) != TILEWRIGHT_OK;
        for (int i = 0; i < N; i++)
            wrong += out[i] != (i < n ? 3.0f * (float)i : -1);
    }
    free(memory);
    return (void *)(wrong + (queue.threads == 7 && calls != 10));
}

int main(void) {
    pthread_t threads[8];
    size_t wrong = 0;
    for (size_t i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 8; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (size_t)result;
    }
    printf("%zu wrong\n", wrong);
    return 0;
}
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    bundle_of("demo", [*add_specs(), softmax_spec(), *matmul_specs(16, 32)], *LEVELS).write(folder)
    return folder


ZIG = pytest.mark.dev("ziglang")


@pytest.mark.parametrize("name", ["gcc", "clang", pytest.param("zig cc", marks=ZIG)])
@pytest.mark.parametrize("standard", ["c99", "gnu2x"])
def test_compiles_without_warnings(demo: Path, name: str, standard: str) -> None:
    command = [*compiler(name), f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    run_checked([*command, "-c", str(demo / "demo.c"), "-o", str(demo / "demo.o")])
    assert (demo / "demo.o").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["g++", "clang++"])
def test_header_is_for_cpp_too(demo: Path, name: str) -> None:
    source = demo / "program.cpp"
    source.write_text('#include "demo.h"\nint main() { return demo_abi() - TILEWRIGHT_ABI; }\n')
    command = [*compiler(name), "-Wall", "-Wextra", "-Werror", "-c", str(source)]
    assert run_checked([*command, "-o", str(demo / "cpp.o")]) == ""


def test_threads_of_pool_and_caller(demo: Path) -> None:
    program = compiled(demo, ADD, bundles=["demo"])
    assert run_checked([str(program)]) == "0 wrong\n"


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_sanitizers(demo: Path, sanitizer: str) -> None:
    options = (f"-fsanitize={sanitizer}", "-g")
    program = compiled(demo, ADD, *options, bundles=["demo"], command=compiler("gcc"))
    # the pool reads the owner of a slot without order: any other thread's number will do
    known = demo / "known.txt"
    known.write_text("race:^is_nested$\nrace:^own$\n")
    output = run_checked([str(program)], TSAN_OPTIONS=f"suppressions={known}")
    assert output == "0 wrong\n"


def test_under_valgrind(tmp_path: Path) -> None:
    bundle_of("demo", add_specs(), "x86-64-v3").write(tmp_path)
    program = compiled(tmp_path, ADD.replace("50000", "9000"), bundles=["demo"])
    valgrind = [*compiler("valgrind"), "-q", "--error-exitcode=9", "--leak-check=full"]
    valgrind += ["--errors-for-leak-kinds=definite", "--show-leak-kinds=definite"]
    assert run_checked([*valgrind, str(program)]) == "0 wrong\n"


FAILURES = r"""
#include "demo.h"
#include <stdio.h>
int main(void) {
    float a[64] = {0};
    tilewright_queue cpu = tilewright_cpu(), old = cpu, cuda = tilewright_cuda(NULL), two = cpu;
    old.abi = 7;
    two.threads = 2;
    printf("%d\n", demo_add(&cpu, a, a, a, 0));
    printf("%d %s\n", demo_add(&cpu, (float *)((char *)a + 1), a, a, 1), demo_error());
    printf("%d %s\n", demo_add(&old, a, a, a, 1), demo_error());
    printf("%d %s\n", demo_add(&cuda, a, a, a, 1), demo_error());
    printf("%d %s\n", demo_add(&two, a, a, a, 1), demo_error());
    printf("%d %s\n", demo_softmax(&cpu, 1, -1, 1, a, a + 8, 1), demo_error());
    printf("%d %s\n", demo_softmax(&cpu, 1, 1, 1, a, a + 8, -1), demo_error());
    printf("%d %s\n", demo_matmul(&cpu, a, a, a, 1, 1, 1, 48), demo_error());
    printf("%d %s\n", demo_matmul(&cpu, a, a, a, 1, 1, 1, 0), demo_error());
    printf("%d %s\n", demo_load(&cuda), demo_error());
    return 0;
}
"""


def test_failures_are_codes_and_sentences(demo: Path) -> None:
    program = compiled(demo, FAILURES, bundles=["demo"])
    lines = run_checked([str(program)]).splitlines()
    assert [int(line.partition(" ")[0]) for line in lines] == [0, 4, 1, 2, 10, 5, 3, 3, 5, 2]
    misaligned, version, device, threads, grid, missing, choice, zero, load_ = lines[1:]
    assert "add: the pointer 'x' (0x" in misaligned and "multiple of 4 bytes" in misaligned
    assert version.endswith(
        "add: the program has version 7 of the bundle's header, the library version 1; compile the "
        "program again"
    )
    assert device.partition(" ")[2] == load_.partition(" ")[2]
    assert device.endswith("add: the bundle has no code for CUDA on this system")
    assert threads.endswith("add: threads is 2, but the queue has no function `parallel`")
    assert grid.endswith("(1, -1, 1) has a size that is not from 0 to 2**31 - 1")
    assert "softmax: no variant for 'columns' = -1" in missing and "at least 0" in missing
    assert "matmul: no variant for 'BLOCK' = 48" in choice
    assert zero.endswith("matmul: the grid divides by zero or overflows for these arguments")


NUMBERS = r"""
#include "demo.h"
#include <math.h>
#include <stdio.h>
int main(void) {
    static float a[40 * 24], b[24 * 72], c[40 * 72];
    double worst = 0;
    for (int i = 0; i < 40 * 24; i++)
        a[i] = (float)(i % 7) - 3;
    for (int i = 0; i < 24 * 72; i++)
        b[i] = (float)(i % 5) - 2;
    for (int block = 16; block <= 32; block += 16) {
        int status = demo_matmul(NULL, a, b, c, 40, 72, 24, block);
        if (status)
            printf("%d %s\n", status, demo_error());
        for (int m = 0; m < 40; m++)
            for (int n = 0; n < 72; n++) {
                double sum = 0;
                for (int k = 0; k < 24; k++)
                    sum += (double)a[m * 24 + k] * b[k * 72 + n];
                worst = fmax(worst, fabs(sum - c[m * 72 + n]));
            }
    }
    uint16_t ones[8] = {0x3c00, 0x3c00, 0x3c00, 0x3c00, 0, 0, 0, 0}, out[8];
    int status = demo_softmax(NULL, 2, 1, 1, ones, out, 4);
    printf("%g %d %x %x\n", worst, status, out[0], out[7]);
    return 0;
}
"""


WIDE = pytest.mark.skipif(not host_cpu().has_avx512, reason="needs AVX-512")


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", pytest.param("x86-64-v4", marks=WIDE)])
def test_values_on_each_level(level: str, tmp_path: Path) -> None:
    bundle_of("demo", [softmax_spec(), *matmul_specs(16, 32)], level).write(tmp_path)
    program = compiled(tmp_path, NUMBERS, bundles=["demo"])
    assert run_checked([str(program)]) == "0 0 3400 3400\n"


@pytest.mark.dev("ziglang")
def test_aarch64_under_qemu(demo: Path) -> None:
    zig = [*compiler("zig cc"), "-target", "aarch64-linux-musl", "-static"]
    program = compiled(demo, NUMBERS, bundles=["demo"], command=zig)
    assert run_checked([*compiler("qemu-aarch64"), str(program)]) == "0 0 3400 3400\n"


def test_floats_constants_and_assertions(tmp_path: Path) -> None:
    bundle_of("demo", [scale_spec(debug=True)], "x86-64-v3").write(tmp_path)
    source = r"""
#include "demo.h"
#include <stdio.h>
int main(void) {
    static float x[128] = {8, [99] = 4, [100] = 3};
    int status = demo_scale(NULL, x, 0.5f, 2.0, 100);
    printf("%d %g %g %g\n", status, x[0], x[99], x[100]);
    printf("%d %s\n", demo_scale(NULL, x, 0.5f, 2.0, 99), demo_error());
    printf("%d %s\n", demo_scale(NULL, x, 0.5f, -2.0, 100), demo_error());
    return 0;
}
"""
    lines = run_checked([str(compiled(tmp_path, source, bundles=["demo"]))]).splitlines()
    assert lines[0] == "0 2 1 3"
    assert lines[1].startswith("3 scale: no variant for 'n' = 99") and "equal to 100" in lines[1]
    assert lines[2].startswith("9 scale: an assertion failed in program (0, 0, 0)")
    assert "wide is positive" in lines[2]


ASSERTIONS = r"""
#include "demo.h"
#include <pthread.h>
#include <stdio.h>

// Whether each launch reports its own assertion, and no other one's.
static void *work(void *thread) {
    size_t wrong = 0;
    float x[128] = {0};
    tilewright_queue queue = tilewright_cpu();
    queue.threads = (int)(size_t)thread / 2 % 2;
    double wide = (size_t)thread % 2 ? 2.0 : -2.0;
    int expected = wide > 0 ? TILEWRIGHT_OK : TILEWRIGHT_ASSERTION_FAILED;
    for (int i = 0; i < 2000; i++)
        wrong += demo_scale(&queue, x, 0.5f, wide, 100) != expected;
    return (void *)wrong;
}

int main(void) {
    pthread_t threads[8];
    size_t wrong = 0;
    for (size_t i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 8; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (size_t)result;
    }
    printf("%zu wrong\n", wrong);
    return 0;
}
"""


def test_threads_report_their_own_assertions(tmp_path: Path) -> None:
    bundle_of("demo", [scale_spec(debug=True)], "x86-64-v3", "aarch64").write(tmp_path)
    program = compiled(tmp_path, ASSERTIONS, bundles=["demo"])
    assert run_checked([str(program)]) == "0 wrong\n"


def test_a_kernel_without_arguments(tmp_path: Path) -> None:
    bundle_of("demo", [KernelSpec(nothing, {}, grid="1")], "x86-64-v3", "aarch64").write(tmp_path)
    source = '#include "demo.h"\nint main(void) { return demo_nothing(NULL); }\n'
    program = compiled(tmp_path, source, "-pedantic", bundles=["demo"])
    assert run_checked([str(program)]) == ""


WAITS = r"""
#include "demo.h"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    static int32_t flag, out[64];
    int first = demo_turns(NULL, 4, 1, 1, &flag, out, 0);
    printf("%d %d %d\n", demo_set_threads(4), first, demo_set_threads(2000));
    flag = 0;
    int second = demo_turns(NULL, 4, 1, 1, &flag, out, 0);
    printf("%d %d\n", second, out[3]);
    flag = 0;
    printf("%d %s\n", demo_turns(NULL, 4, 1, 1, &flag, out, 1), demo_error());
    fflush(stdout);
    if (fork() == 0) { // the child has no workers, and starts new ones
        flag = out[3] = 0;
        int third = demo_turns(NULL, 4, 1, 1, &flag, out, 0);
        _exit(third + out[3]);
    }
    int status;
    wait(&status);
    printf("%d\n", WEXITSTATUS(status));
    return 0;
}
"""


def test_programs_that_wait_and_forks(tmp_path: Path) -> None:
    bundle = bundle_of("demo", turns_specs(), "x86-64-v3", "aarch64")
    bundle.write(tmp_path)
    source = tmp_path / "demo.c"
    text = source.read_text()
    assert "TW_WAIT_SECONDS = 30" in text
    source.write_text(text.replace("TW_WAIT_SECONDS = 30", "TW_WAIT_SECONDS = 1"))
    options = ("-D_DEFAULT_SOURCE",)
    lines = run_checked([str(compiled(tmp_path, WAITS, *options, bundles=["demo"]))]).splitlines()
    assert lines[0] in ("0 0 10", "0 10 10")  # the first needs a thread for each program
    assert lines[1] == "0 3" and lines[3] == "3"
    assert lines[2] == "11 turns: a program has waited for another one in vain"


def test_names_that_c_reserves(tmp_path: Path) -> None:
    bundle_of("demo", reserved_specs(), "x86-64-v3", "aarch64").write(tmp_path)
    source = r"""
#include "demo.h"
#include <stdio.h>
int main(void) {
    static float x[16] = {1, 2, 3};
    int status = demo_reserved(NULL, x, 2.0f, 10, 2);
    printf("%d %g %g\n", status, x[0], x[2]);
    return 0;
}
"""
    assert run_checked([str(compiled(tmp_path, source, bundles=["demo"]))]) == "0 14 18\n"


def test_names_of_the_bundle_itself() -> None:
    with pytest.raises(errors.InvalidBundle, match="'load' cannot .* a function of this name"):
        bundle_of("demo", [KernelSpec(load, {"x": "*fp32"})], "x86-64-v3")


def test_two_bundles_in_one_program(demo: Path) -> None:
    bundle_of("other", add_specs(), "x86-64-v3", "aarch64").write(demo)
    source = r"""
#include "demo.h"
#include "other.h"
int main(void) {
    static float a[4096], b[4096];
    return demo_add(NULL, a, a, b, 4096) | other_add(NULL, a, a, b, 4096);
}
"""
    program = compiled(demo, source, bundles=["demo", "other"])
    assert run_checked([str(program)]) == ""


def test_builds_are_equal(demo: Path) -> None:
    specs = [*add_specs(), softmax_spec(), *matmul_specs(16, 32)]
    for name, content in bundle_of("demo", specs, *LEVELS).files.items():
        assert (demo / name).read_bytes() == content


def test_a_kernel_that_prints_is_refused() -> None:
    with pytest.raises(errors.InvalidBundle, match="'printing' cannot .*: it prints"):
        bundle_of("demo", [KernelSpec(printing, {"x": "*fp32"})], "x86-64-v3")


def test_variants_must_differ_in_facts() -> None:
    with pytest.raises(errors.InvalidBundle, match="two of its variants have the same facts"):
        bundle_of("demo", [add_specs()[0], add_specs()[0]], "x86-64-v3")
