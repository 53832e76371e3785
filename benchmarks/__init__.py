"""Benchmarks, a folder for each area; run from the root of the repository.

    python -m benchmarks.cpu [--help]             kernels versus torch and the machine's limits
    python -m benchmarks.gpu [SUITE] [--help]     kernels versus Triton and torch
    python -m benchmarks.torch.inductor           torch.compile versus Inductor
    python -m benchmarks.torch.liger              Liger-Kernel versus Triton
    python -m benchmarks.compile_time             compilation versus Triton
    python -m benchmarks.keep_results             a run as one CSV row per case, in `results/`

`harness.py` measures for all of them; `kernels/` holds kernels as users write them.
"""
