"""Which backend a machine gets, and what finding out costs."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilewright.backends import default_backend, manifest
from tilewright.backends.nvidia.driver import driver_library
from tilewright.backends.nvidia.driver.driver_library import has_driver

PROGRAM = """
import sys
import numpy as np
import tilewright
import tilewright.language as tl
from tilewright.backends import default_backend
sys.path.insert(0, {folder!r})
from cpu_launch import fill
out = np.zeros(4, "f")
fill[(1,)](out)
assert out[0] == 1
print([m for m in sys.modules if "nvidia" in m or m.split(".")[0] in ("cuda", "torch")])
"""
KERNEL = """
import tilewright
import tilewright.language as tl

@tilewright.jit
def fill(out):
    tl.store(out, 1.0)
"""


def test_a_launch_on_the_cpu_loads_nothing_of_nvidia(tmp_path: Path) -> None:
    (tmp_path / "cpu_launch.py").write_text(KERNEL)
    program = PROGRAM.format(folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_without_a_driver_the_gpu_backend_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    named = manifest.backend_named
    monkeypatch.setattr(driver_library, "has_driver", lambda: False)
    monkeypatch.setattr(manifest, "backend_named", lambda name: asked.append(name) or named(name))
    assert default_backend() is named("cpu")
    assert asked == ["cpu"]


def test_a_driver_without_a_gpu_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    class Absent:
        def available(self) -> bool:
            return False

    named = manifest.backend_named
    monkeypatch.setattr(driver_library, "has_driver", lambda: True)
    monkeypatch.setattr(
        manifest, "backend_named", lambda name: Absent() if name == "cuda" else named(name)
    )
    assert default_backend() is named("cpu")


def test_there_is_a_driver_if_its_library_can_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> object:
        raise OSError(name)

    monkeypatch.setattr(driver_library, "ctypes", SimpleNamespace(CDLL=refuse))
    assert not has_driver()
    monkeypatch.setattr(driver_library, "ctypes", SimpleNamespace(CDLL=lambda name: name))
    assert has_driver()


def test_a_backend_is_in_use_once_it_is_loaded() -> None:
    manifest.backend_named("cpu")
    assert manifest.backend_in_use("cpu") is manifest.backend_named("cpu")
    assert manifest.backend_in_use("nobody's") is None
