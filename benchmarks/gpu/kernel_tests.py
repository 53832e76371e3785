"""Runs the kernel test suite on a GPU, one process a file, and writes what passed as JSON.

    python -m benchmarks.gpu kernel-tests results.json [--jobs 12]

A file's process is its own, since a kernel that goes wrong takes the CUDA context with it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

FOLDER = Path(__file__).parents[2] / "tests" / "kernels"
TIMEOUT_SECONDS = 160


def run_file(path: Path, folder: Path) -> dict[str, object]:
    """Counts, seconds and failures of one test file."""
    report = folder / f"{path.stem}.xml"
    command = [
        sys.executable, "-m", "pytest", "-q", "-m", "gpu", "--tb=short", "-p", "no:cacheprovider",
        f"--junitxml={report}", str(path),
    ]  # fmt: skip
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, cwd=FOLDER.parents[2]
        )
        output = done.stdout[-20_000:] + done.stderr[-2_000:]
    except subprocess.TimeoutExpired as stopped:
        output = f"no end after {TIMEOUT_SECONDS} s\n{stopped.stdout or ''}"
    found: dict[str, object] = {"file": path.name, "seconds": round(time.perf_counter() - start, 1)}
    if not report.exists():
        return {**found, "error": output[-2_000:]}
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = {
        f"{case.get('name')}": (problem.get("message") or "")[:600]
        for case in cases
        for problem in (*case.findall("failure"), *case.findall("error"))
    }
    skipped = sum(case.find("skipped") is not None for case in cases)
    passed = len(cases) - len(failed) - skipped
    return {**found, "passed": passed, "skipped": skipped, "failed": failed, "output": output}


def device() -> dict[str, str]:
    """Name and driver of the GPU, as nvidia-smi has them."""
    fields = "name,driver_version"
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
    try:
        line = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    return dict(zip(fields.split(","), line.splitlines()[0].split(", "), strict=True))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all files; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--jobs", type=int, default=min(12, os.cpu_count() or 1))
    parser.add_argument("--log", type=Path, help="write the output of files that failed")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        files = sorted(FOLDER.glob("test_*.py"))
        found = list(pool.map(lambda path: run_file(path, Path(folder)), files))
    log = "\n".join(str(f.pop("output", "")) for f in found if f.get("failed", True))
    if options.log is not None:
        options.log.write_text(log)
    total = {
        "device": device(),
        "seconds": round(time.perf_counter() - start, 1),
        "passed": sum(int(str(f.get("passed", 0))) for f in found),
        "failed": sum(len(f["failed"]) if isinstance(f.get("failed"), dict) else 1 for f in found),
        "files": [{k: v for k, v in f.items() if k != "output"} for f in found],
    }
    options.output.write_text(json.dumps(total, indent=1) + "\n")
    for f in found:
        failed = f.get("failed", {"no report": f.get("error")})
        print(f["file"], f["seconds"], f.get("passed"))
        for name, message in failed.items() if isinstance(failed, dict) else ():
            print(f"    {name}: {' '.join(str(message)[:160].split())}")
    print(f"{total['passed']} passed, {total['failed']} failed in {total['seconds']} s")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
