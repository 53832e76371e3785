"""Compiled functions that C++ calls: a package of AOTInductor, and `cpp_wrapper`.

A program of its own, as `torch_compile_cases.py`, that prints one line of JSON. Given a path, it
writes a package there (of C++ that is not compiled, with `--sources`), or runs it where there is no
Tilewright (`--load`); without, it compares gradients by `cpp_wrapper` with eager's.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import ctypes
import importlib
import json
import sys
from collections.abc import Collection
from typing import Any

import torch
import torch._inductor.config as inductor
from torch.library import triton_op, wrap_triton

EXTERNAL: dict[str, Any] = {}
ROWS = 40
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Model(torch.nn.Module):
    """Fused rows, a gather whose indices are checked, a scan with a workspace, a user's kernel."""

    def forward(
        self, x: torch.Tensor, y: torch.Tensor, index: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        scaled = EXTERNAL["scaled"] if EXTERNAL else lambda x: x * 0.25
        rows = torch.softmax(torch.sin(x) * y + 1, -1)
        return rows.sum(0), rows[:, index] * 2, (x / 8).flatten().cumsum(0), scaled(y) + 1


def inputs(rows: int) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(rows)
    given = (torch.randn(rows, 500), torch.randn(rows, 500), torch.randint(0, 500, (20,)))
    return tuple(x.to(DEVICE) for x in given)


def largest_error(found: Any, expected: Any) -> float:
    pairs = zip(found, expected, strict=True)
    return max(float(((a - b) / b.abs().max().clamp(min=1)).detach().abs().max()) for a, b in pairs)


def register_user_kernel() -> None:
    kernels = importlib.import_module("torch_user_kernels")

    def scaled(x: torch.Tensor) -> torch.Tensor:
        out, n = torch.empty_like(x), x.numel()
        wrapped = wrap_triton(kernels.scale_kernel)
        wrapped[lambda meta: (-(-n // meta["BLOCK"]),)](x, out, n, 0.25)
        return out

    EXTERNAL["scaled"] = triton_op("tilewright_tests::scaled", scaled, mutates_args={})


def package(path: str, sources: bool) -> dict[str, Any]:
    register_user_kernel()
    # less to do for the C++ compiler, which is not what is tested
    inductor.aot_inductor.compile_wrapper_opt_level = "O0"
    inductor.cpp_cache_precompile_headers, inductor.cpp.vec_isa_ok = False, True
    inductor.aot_inductor.package_cpp_only = sources
    inductor.assert_indirect_indexing = DEVICE == "cpu"
    rows = torch.export.Dim("rows", min=2, max=4000)
    shapes = {"x": {0: rows}, "y": {0: rows}, "index": None}
    exported = torch.export.export(Model(), inputs(ROWS), dynamic_shapes=shapes)
    return {"path": torch._inductor.aoti_compile_and_package(exported, package_path=path)}


def loss(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (torch.softmax(x @ w, -1) * y).sum()


def gradients_by_cpp_wrapper() -> dict[str, Any]:
    """Their error beside eager's, of two sizes."""
    inductor.cpp_wrapper = True
    found: list[Any] = []
    expected: list[Any] = []
    compiled = torch.compile(loss, dynamic=True)
    for rows in (ROWS, ROWS + 11):
        for function, results in ((compiled, found), (loss, expected)):
            torch.manual_seed(0)
            given = [
                torch.randn(*shape, device=DEVICE) for shape in ((rows, 30), (30, 50), (rows, 50))
            ]
            given = [x.requires_grad_() for x in given]
            results += torch.autograd.grad(function(*given), given)
    return {"error": largest_error(found, expected)}


def load(path: str) -> dict[str, Any]:
    assert "tilewright" not in sys.modules  # PyTorch may import an installed Triton itself
    if sys.platform == "linux":
        # A compiler without a shared C++ library puts a second one into the package; halves of
        # both end the process, whoever made the kernels. PyTorch's for all:
        ctypes.CDLL("libstdc++.so.6", ctypes.RTLD_GLOBAL)
    compiled = torch._inductor.aoti_load_package(path)
    outcomes = [(compiled(*given), Model()(*given)) for given in map(inputs, (ROWS, ROWS + 11))]
    x, y, index = inputs(ROWS)
    if DEVICE == "cpu":  # on a GPU it would end the process
        index = index + 1000
    try:
        compiled(x, y, index)
        failure = ""
    except RuntimeError as problem:
        failure = str(problem)
    return {"error": max(largest_error(*pair) for pair in outcomes), "failure": failure}


def main(path: str = "", options: Collection[str] = ()) -> dict[str, Any]:
    if "--load" in options:
        return load(path)
    if DEVICE == "cpu":
        importlib.import_module("tilewright.triton_alias").register_with_inductor()
    inductor.cpu_backend, inductor.compile_threads = "triton", 1
    return package(path, "--sources" in options) if path else gradients_by_cpp_wrapper()


if __name__ == "__main__":
    given = {argument for argument in sys.argv[1:] if argument.startswith("--")}
    outcome = main(*(argument for argument in sys.argv[1:] if argument not in given), options=given)
    print(json.dumps({"name": "program", **outcome}))
