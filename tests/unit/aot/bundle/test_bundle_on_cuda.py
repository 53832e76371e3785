"""Bundles for GPUs, with a library in the place of the driver's that prints its calls."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.aot.bundle.bundle_kernels import (
    add_specs,
    scale_spec,
    softmax,
    softmax_spec,
    tutorial_spec,
)
from tests.unit.aot.bundle.c_programs import (
    any_compiler,
    bundle_of,
    compiled,
    compiler,
    run_checked,
)
from tilewright.aot import KernelSpec
from tilewright.support import errors

PROGRAM = r"""
#include "demo.h"
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **values) {
    static float x[8];
    tilewright_queue queue = tilewright_cuda((void *)0x10);
    if (count > 1)
        queue.device = atoi(values[1]);
    for (int n = 0; n < 3; n++) {
        int status = demo_add(&queue, x, x, x, 1025 * n);
        if (status)
            printf("%d %s\n", status, demo_error());
    }
    queue.device = 0;
    int status = demo_load(&queue);
    if (status)
        printf("%d %s\n", status, demo_error());
    else if (demo_unload(&queue) || demo_unload(&queue) || demo_load(&queue))
        printf("%s\n", demo_error());
    return 0;
}
"""

MATMUL = r"""
#include "demo.h"
#include <stdio.h>
int main(void) {
    _Alignas(4096) static char a[4096];
    tilewright_queue queue = tilewright_cuda(NULL);
    int sizes[] = {256, 256, 512, 0};
    for (int i = 0; i < 4; i++) {
        int m = sizes[i];
        int status = demo_tutorial_matmul(&queue, a, a, a, m, 512, 256, 256, 1, 512, 1, 512, 1);
        if (status)
            printf("%d %s\n", status, demo_error());
    }
    int status = demo_tutorial_matmul(&queue, a + 2, a, a, 16, 16, 16, 16, 1, 16, 1, 16, 1);
    printf("%d %s\n", status, demo_error());
    return 0;
}
"""


EMPTY = r"""
#include "demo.h"
#include <stdio.h>
int main(void) {
    _Alignas(4096) static char a[4096];
    tilewright_queue queue = tilewright_cuda(NULL);
    for (int i = 0; i < 4; i++) {
        int status = demo_tutorial_matmul(&queue, 1, 1, 1, a, a, a, 0, 512, 256, 256, 1, 512, 1,
                                          512, 1);
        if (status)
            printf("%d %s\n", status, demo_error());
        if (i % 2)
            demo_unload(&queue);
    }
    return 0;
}
"""

THREADS = r"""
#include "demo.h"
#include <pthread.h>
#include <stdio.h>

static void *work(void *unused) {
    static float x[8];
    tilewright_queue queue = tilewright_cuda(NULL);
    for (int n = 0; n < 50; n++)
        if (demo_add(&queue, x, x, x, 1024 + n))
            puts(demo_error());
    return unused;
}

int main(void) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of the library."""
    folder = tmp_path_factory.mktemp("driver")
    source = Path(__file__).with_name("fake_cuda.c")
    command = [*any_compiler(), "-shared", "-fPIC", "-o", str(folder / "libcuda.so.1")]
    run_checked([*command, str(source)])
    return str(folder)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A program with code for sm_80, sm_90 and sm_120."""
    folder = tmp_path_factory.mktemp("demo")
    bundle_of("demo", [*add_specs(), softmax_spec()], "sm_80", "sm_90", "sm_120").write(folder)
    return str(compiled(folder, PROGRAM, bundles=["demo"]))


@pytest.mark.parametrize(
    ("capability", "images"),
    [("80", "cubin"), ("86", "cubin"), ("90", "cubin"), ("120", "cubin"), ("121", "cubin"),
     ("130", "PTX")],
)  # fmt: skip
def test_code_is_picked_by_capability(
    program: str, driver: str, capability: str, images: str
) -> None:
    lines = run_checked([program], LD_LIBRARY_PATH=driver, FAKE_CAPABILITY=capability).splitlines()
    assert lines == [
        f"load {images}",  # a multiple of 16: 0
        f"load {images}",
        "launch add (2, 1, 1) of 128 threads, 0 bytes, stream 0x10: 1025 (nil)",
        "launch add (3, 1, 1) of 128 threads, 0 bytes, stream 0x10: 2050 (nil)",
        f"load {images}",  # softmax, by demo_load
        *["unload"] * 3,
        *[f"load {images}"] * 3,
    ]


def test_wrong_device(program: str, driver: str) -> None:
    found = run_checked([program], LD_LIBRARY_PATH=driver, FAKE_CAPABILITY="75").splitlines()
    sentence = "the device has compute capability 7.5, and the bundle has code for sm_80"
    assert found[0] == f"2 add: {sentence} sm_90 sm_120 sm_120 and later"


def test_wrong_current_device(program: str, driver: str) -> None:
    lines = run_checked([program, "1"], LD_LIBRARY_PATH=driver).splitlines()
    assert lines[-1] == "2 add: the queue is of device 0, the current context of device 1"
    absent = run_checked([program, "5"], LD_LIBRARY_PATH=driver).splitlines()[0]
    assert absent == "7 add: cuDeviceGet returned 101, CUDA_ERROR_OTHER: another error"


def test_no_driver(program: str, tmp_path: Path) -> None:
    lines = run_checked([program], LD_LIBRARY_PATH=str(tmp_path)).splitlines()
    assert set(lines) == {"6 CUDA's driver (libcuda.so.1) is not installed"}
    # one that lacks functions
    source = tmp_path / "empty.c"
    source.write_text("int cuInit(unsigned flags) { return (int)flags; }\n")
    command = [*any_compiler(), "-shared", "-fPIC", "-o", str(tmp_path / "libcuda.so.1")]
    run_checked([*command, str(source)])
    lines = run_checked([program], LD_LIBRARY_PATH=str(tmp_path)).splitlines()
    assert set(lines) == {"6 CUDA's driver (libcuda.so.1) has no function cuGetErrorName"}


@pytest.mark.parametrize("name", ["cuInit", "cuModuleLoadData", "cuLaunchKernel"])
def test_errors_of_the_driver(program: str, driver: str, name: str) -> None:
    lines = run_checked([program], LD_LIBRARY_PATH=driver, FAKE_FAIL=name).splitlines()
    failures = [line for line in lines if line.startswith("7 ")]
    subject = "demo" if name == "cuInit" else "add"
    text = f"7 {subject}: {name} returned 999, CUDA_ERROR_UNKNOWN: unknown error"
    assert failures and set(failures) <= {text, text.replace("add", "softmax")}


def test_tensor_maps_are_encoded_once(driver: str, tmp_path: Path) -> None:
    bundle_of("demo", [tutorial_spec()], "sm_90").write(tmp_path)
    path = compiled(tmp_path, MATMUL, bundles=["demo"])
    lines = run_checked([str(path)], LD_LIBRARY_PATH=driver).splitlines()
    launches = [line for line in lines if line.startswith("launch")]
    maps = [line for line in lines if line.startswith("map")]
    # 4 multiprocessors run one block each, whose blocks take the tiles in turn
    assert {line.partition(",")[0] for line in launches} == {"launch tutorial_matmul (4"}
    assert len(launches) == 3
    # that of a for two sizes; that of b once
    assert [re.sub(r"map \S+ element 6, 2 dims ", "", line) for line in maps] == [
        "2147483647 256, stride 512, box 64 128, swizzle 3",
        "512 2147483647, stride 1024, box 64 64, swizzle 3",
        "2147483647 512, stride 512, box 64 128, swizzle 3",
    ]
    assert re.match(
        r"4 tutorial_matmul: the pointer 'a_ptr' \(0x\w+\) is not a multiple", lines[-1]
    )


def test_arrays_without_elements(driver: str, tmp_path: Path) -> None:
    bundle_of("demo", [tutorial_spec(grid=None)], "sm_90").write(tmp_path)
    path = str(compiled(tmp_path, EMPTY, bundles=["demo"]))
    lines = run_checked([path], LD_LIBRARY_PATH=driver).splitlines()
    assert sum(line.startswith("launch") for line in lines) == 4
    # memory of its own per loaded module
    memory = [line for line in lines if line in ("load cubin", "allocate", "free", "unload")]
    assert memory == ["load cubin", "allocate", "free", "unload"] * 2
    shapes = {line.partition("dims ")[2] for line in lines if "dims 1 1" in line}
    assert shapes == {"1 1, stride 16, box 64 128, swizzle 3"}  # a
    # memory that could not be cleared is not taken by the next launch
    lines = run_checked([path], LD_LIBRARY_PATH=driver, FAKE_FAIL="cuMemsetD8_v2").splitlines()
    assert not any(line.startswith("launch") for line in lines)
    assert lines.count("allocate") == lines.count("free") == 4


def test_a_module_without_its_function_is_unloaded(program: str, driver: str) -> None:
    variables = {"LD_LIBRARY_PATH": driver, "FAKE_FAIL": "cuModuleGetFunction"}
    lines = run_checked([program], **variables).splitlines()
    assert lines.count("load cubin") == lines.count("unload") == 4
    assert lines[2].startswith("7 add: cuModuleGetFunction returned 999")


def test_drivers_before_cuda_12(tmp_path: Path) -> None:
    source = Path(__file__).with_name("fake_cuda.c")
    command = [*any_compiler(), "-shared", "-fPIC", "-DOLD_DRIVER", str(source)]
    run_checked([*command, "-o", str(tmp_path / "libcuda.so.1")])
    arguments = {"x": "*fp16", "out": "*fp16", "columns": "i32:>=0"}
    dependent = KernelSpec(softmax, arguments, {"BLOCK": 1024}, {"launch_pdl": True}, "1")
    bundle_of("demo", [dependent, tutorial_spec()], "sm_90").write(tmp_path)
    text = r"""
#include "demo.h"
#include <stdio.h>
int main(void) {
    _Alignas(16) static char a[16];
    tilewright_queue queue = tilewright_cuda(NULL);
    printf("%d %s\n", demo_softmax(&queue, a, a, 1), demo_error());
    printf("%d %s\n", demo_tutorial_matmul(&queue, a, a, a, 16, 16, 16, 16, 1, 16, 1, 16, 1),
           demo_error());
    return 0;
}
"""
    path = compiled(tmp_path, text, bundles=["demo"])
    lines = run_checked([str(path)], LD_LIBRARY_PATH=str(tmp_path)).splitlines()
    sentence = "6 CUDA's driver (libcuda.so.1) has no function "
    failures = [line for line in lines if line.startswith("6")]
    assert failures == [f"{sentence}cuLaunchKernelEx", f"{sentence}cuTensorMapEncodeTiled"]


def test_threads_load_a_module_once(driver: str, tmp_path: Path) -> None:
    bundle_of("demo", add_specs(), "sm_90").write(tmp_path)
    options = ("-fsanitize=thread", "-g")
    path = compiled(tmp_path, THREADS, *options, bundles=["demo"], command=compiler("gcc"))
    lines = run_checked([str(path)], LD_LIBRARY_PATH=driver).splitlines()
    assert lines.count("load cubin") == 2  # of the variants
    assert sum(line.startswith("launch add (") for line in lines) == len(lines) - 2 == 400


def test_assertions_on_a_gpu_are_refused() -> None:
    with pytest.raises(errors.InvalidBundle, match="it has assertions"):
        bundle_of("demo", [scale_spec(debug=True)], "sm_90")
