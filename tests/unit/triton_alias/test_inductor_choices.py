"""Inductor measures configurations once that are one on a CPU."""

from __future__ import annotations

from types import SimpleNamespace

from tilewright.triton_alias.inductor_choices import distinct


class TritonTemplateCaller:
    """What is looked at of Inductor's class."""

    def __init__(self, name: str, description: str, device: str = "cpu") -> None:
        self.name = name
        self.description = description
        self.layout = SimpleNamespace(device=SimpleNamespace(type=device))


def test_configurations_that_are_one_on_a_cpu_are_measured_once() -> None:
    text = "BLOCK_M=64, BLOCK_N={}, num_stages={}, num_warps={}"
    given = [
        SimpleNamespace(name="addmm"),
        TritonTemplateCaller("triton_mm_0", text.format(32, 3, 4)),
        TritonTemplateCaller("triton_mm_1", text.format(32, 4, 8)),
        TritonTemplateCaller("triton_mm_2", text.format(16, 4, 8)),
        TritonTemplateCaller("triton_mm_persistent_3", text.format(32, 4, 8)),
        TritonTemplateCaller("triton_mm_4", text.format(16, 4, 8), "cuda"),
        TritonTemplateCaller("triton_mm_5", text.format(16, 4, 2), "cuda"),
        SimpleNamespace(name="addmm"),
    ]
    left = distinct(given)
    assert [each.name for each in left] == [
        "addmm", "triton_mm_0", "triton_mm_2", "triton_mm_persistent_3", "triton_mm_4",
        "triton_mm_5", "addmm",
    ]  # fmt: skip
