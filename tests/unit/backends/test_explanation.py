"""The model of `explain`: JSON by its schema, rows in the order of the source, and text."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.figures import source_with
from tests.kernels.tutorial_matmul import tutorial_matmul
from tests.unit.backends.nvidia.explain.test_op_rows import BLOCKS, TUTORIAL
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends import (
    Bound,
    CpuResources,
    Explanation,
    GPUTarget,
    LayoutRow,
    LoopRow,
    OpRow,
    Resources,
    ScheduledOp,
    ScheduleRow,
    SharedAccessRow,
)
from tilewright.compiler import compile
from tilewright.kernels.softmax import softmax_kernel
from tilewright.support import SourceLoc

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "docs/explanation.schema.json").read_text()
)
_TYPES = {"string": str, "integer": int, "number": int | float, "array": list, "object": dict,
          "null": type(None)}  # fmt: skip


def violations(value: Any, schema: dict[str, Any], path: str = "$") -> list[str]:
    """The violations of the keywords that the schema uses."""
    if "$ref" in schema:
        return violations(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], path)
    if "anyOf" in schema:
        each = [violations(value, choice, path) for choice in schema["anyOf"]]
        return [] if [] in each else each[-1]
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{path}: {value!r}"]
    if not isinstance(value, _TYPES[schema["type"]]) or isinstance(value, bool):
        return [f"{path}: {value!r} is no {schema['type']}"]
    found: list[str] = []
    if isinstance(value, list):
        for number, item in enumerate(value):
            found += violations(item, schema["items"], f"{path}[{number}]")
    if isinstance(value, dict):
        found += [f"{path}: lacks {name}" for name in schema["required"] if name not in value]
        for name, item in value.items():
            known = schema["properties"].get(name)
            found += violations(item, known, f"{path}.{name}") if known else [f"{path}: {name}"]
    return found


SOFTMAX = "*fp32/16 *fp32/16 i32/16 i32/16 i32"
SIZES = dict.fromkeys(("M", "N", "K", "stride_am", "stride_bk", "stride_cm"), 256)


def printed(explanation: Explanation) -> dict[str, Any]:
    """The report as programs read it."""
    return json.loads(json.dumps(explanation.as_json()))


def explained(
    kernel: Any, types: str, target: GPUTarget, words: dict[str, Any], **sizes: Any
) -> Explanation:
    return compile(source_with(kernel, types, words), target, {}).explain(**sizes)


CPU = GPUTarget("cpu", "x86-64-v4", 1)


def test_json_of_a_cpu_kernel_follows_the_schema():
    made = printed(explained(softmax_kernel, SOFTMAX, CPU, {"BLOCK": 1024}))
    assert violations(made, SCHEMA) == []
    assert made["backend"] == "cpu" and len(made["loops"]) == 3
    (called,) = {row["callers"][0] for row in made["rows"] if row["op"] == "reduce"}
    assert called in {row["loc"] for row in made["rows"] if row["op"] == "store"}


@needs_ptxas
def test_json_of_a_gpu_kernel_with_a_launch_follows_the_schema():
    target = GPUTarget("cuda", 90, 32)
    made = printed(explained(tutorial_matmul, TUTORIAL, target, BLOCKS, sizes=SIZES, grid=(4,)))
    assert violations(made, SCHEMA) == []
    assert made["bound"]["product_flops"] == 2 * 256**3


def test_the_schema_has_each_field_of_the_model():
    computed = {"callers", "limit", "intensity"}
    for model, schema in (
        (Explanation, SCHEMA), (OpRow, SCHEMA["$defs"]["row"]), (Resources, SCHEMA["$defs"]["gpu"]),
        (CpuResources, SCHEMA["$defs"]["cpu"]), (LoopRow, SCHEMA["$defs"]["loop"]),
        (LayoutRow, SCHEMA["$defs"]["layout"]), (SharedAccessRow, SCHEMA["$defs"]["access"]),
        (ScheduleRow, SCHEMA["$defs"]["schedule"]), (ScheduledOp, SCHEMA["$defs"]["scheduled"]),
        (Bound, SCHEMA["$defs"]["bound"]),
    ):  # fmt: skip
        names = {field.name for field in fields(model)}
        assert names <= set(schema["properties"]) <= names | computed
        assert set(schema["required"]) == set(schema["properties"])


@pytest.mark.parametrize(
    ("change", "violation"),
    [
        ({"notes": [1]}, "$.notes[0]: 1 is no string"),
        ({"backend": "tpu"}, "$.backend: 'tpu'"),
        ({"more": 1}, "$: more"),
    ],
)
def test_planted_violations_are_found(change: dict[str, Any], violation: str):
    made = printed(explained(softmax_kernel, SOFTMAX, CPU, {"BLOCK": 64}))
    assert violations(made | change, SCHEMA) == [violation]


def test_a_missing_name_is_a_violation():
    made = printed(explained(softmax_kernel, SOFTMAX, CPU, {"BLOCK": 64}))
    del made["rows"]
    assert violations(made, SCHEMA) == ["$: lacks rows"]


RESOURCES = Resources(32, 0, 0, 4, 16, "warps", 1.0)


def test_rows_of_a_helper_name_its_line_under_the_line_that_calls_it():
    call = SourceLoc(__file__, 1, function="kernel")
    row = OpRow(
        SourceLoc(__file__, 3, function="helper", caller=call), "load", "8xf32", "ld", 4, ""
    )
    text = Explanation("kernel", "cuda", "sm_90", [row], RESOURCES).text(80).splitlines()
    assert text[1].startswith('test_explanation.py:1  """The model of')
    assert text[2] == "  in test_explanation.py:3  import json"
    assert text[3] == "  load 8xf32  ld          4"


def test_long_names_of_instructions_are_folded_at_80_columns():
    row = OpRow(None, "dot", "128x128xf32", "x" * 90, 0, "")
    text = Explanation("kernel", "cuda", "sm_90", [row], RESOURCES).text(80).splitlines()
    assert max(map(len, text)) <= 80
    assert "".join(line[2:].partition("  ")[2].strip() for line in text[2:4]) == "x" * 90


def test_conflicts_have_a_column_where_there_are_some():
    rows = [OpRow(None, "convert", "8xf32", "ld", 4, "", n) for n in (1, 8)]
    text = Explanation("kernel", "cuda", "sm_90", rows, RESOURCES).text()
    assert "bank conflicts" in text and "8-way" in text and "1-way" not in text
