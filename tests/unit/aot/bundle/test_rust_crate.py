"""The Rust crate of a bundle, and a Rust program that uses it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.aot.bundle.bundle_kernels import add_specs, reserved_specs, softmax_spec
from tests.unit.aot.bundle.c_programs import any_compiler, bundle_of, compiler, run_checked
from tilewright.aot.bundle.bundle_library import build_library

PROGRAM = r"""
use demo::{Bundle, Queue};

fn main() {
    let bundle = Bundle::new().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let bundle = &bundle;
            scope.spawn(move || {
                let x: Vec<f32> = (0..5000).map(|i| i as f32).collect();
                let mut out = vec![0f32; 5000];
                let mut queue = Queue::cpu();
                queue.threads = thread % 2;
                for _ in 0..20 {
                    let (from, to) = (x.as_ptr(), out.as_mut_ptr());
                    unsafe { bundle.add(&queue, from, from, to, 4999) }.unwrap();
                }
                assert!((0..4999).all(|i| out[i] == 2.0 * i as f32) && out[4999] == 0.0);
            });
        }
    });
    let mut x = vec![0f32; 8];
    let odd = (x.as_mut_ptr() as usize + 1) as *mut f32;
    let failure = unsafe { bundle.add(&Queue::cpu(), odd, odd, odd, 1) }.unwrap_err();
    println!("{} {}", failure.code, failure.text.contains("not a multiple of 4 bytes"));
    let failure = bundle.load(&Queue::cuda(std::ptr::null_mut())).unwrap_err();
    println!("{failure}");
}
"""


@pytest.fixture(scope="module")
def crate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler("rustc")
    any_compiler()
    folder = tmp_path_factory.mktemp("crate")
    bundle = bundle_of(
        "demo", [*add_specs(), softmax_spec(), *reserved_specs()], "x86-64-v3", "aarch64", "sm_90"
    )
    bundle.write(folder)
    bundle.write_crate(folder, build_library(folder, "demo", "so"))
    return folder / "rust"


def test_program_with_the_crate(crate: Path, tmp_path: Path) -> None:
    rustc = [*compiler("rustc"), "--edition", "2021", "-D", "warnings", "-O"]
    library = str(crate / "src/lib.rs")
    run_checked(
        [
            *rustc,
            "--crate-type",
            "rlib",
            "--crate-name",
            "demo",
            library,
            "--out-dir",
            str(tmp_path),
        ]
    )
    (tmp_path / "main.rs").write_text(PROGRAM)
    program = str(tmp_path / "main")
    used = f"demo={tmp_path / 'libdemo.rlib'}"
    run_checked([*rustc, str(tmp_path / "main.rs"), "--extern", used, "-o", program])
    lines = run_checked([program], LD_LIBRARY_PATH=str(tmp_path)).splitlines()
    assert lines == ["4 true", "CUDA's driver (libcuda.so.1) is not installed (code 6)"]


def test_tests_of_the_crate(crate: Path, tmp_path: Path) -> None:
    command = [
        *compiler("cargo"),
        "test",
        "--offline",
        "--manifest-path",
        str(crate / "Cargo.toml"),
    ]
    done = subprocess.run(
        [*command, "--target-dir", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "2 passed; 0 failed" in done.stdout and "warning" not in done.stderr
