"""What the language promises, sentence by sentence, where no other test of this folder shows it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.unit.frontend.c.harness import lower, run, text
from tilewright import language as tl
from tilewright.c import kernel
from tilewright.frontend.c.lower.calls import NOT_IN_C
from tilewright.language import is_builtin
from tilewright.support import errors

Array = np.ndarray[Any, Any]

TYPES = {
    "bool": "i1", "char": "i8", "short": "i16", "int": "i32", "long": "i64",
    "unsigned char": "u8", "unsigned short": "u16", "unsigned int": "u32", "unsigned": "u32",
    "unsigned long": "u64", "signed char": "i8", "long long": "i64", "short int": "i16",
    "half": "f16", "bfloat16": "bf16", "float": "f32", "double": "f64",
    "fp8e4m3": "f8e4m3", "fp8e4nv": "f8e4m3", "float8e4nv": "f8e4m3",
    "fp8e5m2": "f8e5m2", "fp8e5": "f8e5m2", "float8e5": "f8e5m2",
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_every_type_as_parameter_variable_and_tile(name: str) -> None:
    source = f"""
        void k({name} *p, {name} x) {{
            {name} *q[16] = p + 0 ... 16;
            {name} y[16] = x;
            *q = y;
        }}
    """
    printed = text(source)
    assert f"%p: ptr<{TYPES[name]}>" in printed and f"%x: {TYPES[name]}" in printed
    assert f"tile<16xptr<{TYPES[name]}>>" in printed and f"tile<16x{TYPES[name]}>" in printed


@pytest.mark.parametrize(
    ("name", "dtype", "bits"),
    [
        ("bfloat16", ml_dtypes.bfloat16, np.uint16),
        ("fp8e4m3", ml_dtypes.float8_e4m3fn, np.uint8),
        ("fp8e5m2", ml_dtypes.float8_e5m2, np.uint8),
    ],
)
def test_small_floats_convert_as_in_numpy(name: str, dtype: Any, bits: Any) -> None:
    x = np.linspace(-4, 4, 16, dtype=np.float32)
    out, back = np.zeros(16, bits), np.zeros(16, np.float32)
    body = f"""
        int i[16] = 0 ... 16;
        {name} y[16] = ({name}) *(a + i);
        *(({name} *) b + i) = y;
        *(c + i) = y;
    """
    run(body, x, out, back)
    np.testing.assert_array_equal(out.view(dtype), x.astype(dtype))
    np.testing.assert_array_equal(back, x.astype(dtype).astype(np.float32))


def test_scalars_fill_tiles_where_they_are_declared() -> None:
    out = np.zeros((16, 8), np.float32)
    rows = "(a + (0 ... 16)[:, newaxis] * 8 + (0 ... 8)[newaxis, :])"
    run(f"float x[16, 8] = 3.5; *{rows} = x;", out)
    assert (out == 3.5).all()
    run(f"float one = 2; float x[16, 8] = one; x = 0 ... 8; *{rows} = x;", out)
    np.testing.assert_array_equal(out, np.broadcast_to(np.arange(8), (16, 8)))
    assert "tile<16x8xptr<f32>>" in text(
        f"#define TYPE float\nvoid k(TYPE *a) {{ TYPE* p[16, 8] = {rows}; *p = 0; }}"
    )


@pytest.mark.parametrize(
    ("axis", "index"),
    [(0, "[+, :, :]"), (1, "[:, +, :]"), (2, "[:, :, +]"), ((0, 2), "[+, :, +]")],
)
def test_reductions_along_any_axis_of_three(axis: Any, index: str) -> None:
    x = np.arange(4 * 8 * 2, dtype=np.int32).reshape(4, 8, 2)
    expected = x.sum(axis=axis)
    out = np.zeros(expected.size, np.int32)
    subscripts = ["", "[:, newaxis]"]
    places = " + ".join(
        f"(0 ... {n}){subscripts[i < expected.ndim - 1]} * {int(np.prod(expected.shape[i + 1 :]))}"
        for i, n in enumerate(expected.shape)
    )
    body = f"""
        int i[4] = 0 ... 4, j[8] = 0 ... 8, k[2] = 0 ... 2;
        int x[4, 8, 2] = *(a + i[:, newaxis, newaxis] * 16 + j[newaxis, :, newaxis] * 2
                           + k[newaxis, newaxis, :]);
        *(b + {places}) = x{index};
    """
    run(body, x, out)
    np.testing.assert_array_equal(out.reshape(expected.shape), expected)


def test_selection_compound_assignment_and_steps_of_tiles() -> None:
    out = np.zeros((2, 16), np.int32)
    body = """
        int i[16] = 0 ... 16;
        int x[16] = i > 7 ? i : -i;
        x += 2; x *= i; x++; --x; x <<= 1; x ^= 3;
        *(a + i) = x;
        *(a + 16 + i) = i % 3 == 0 || i == 1 ? 1 : 0;
    """
    run(body, out)
    i = np.arange(16)
    x = np.where(i > 7, i, -i)
    np.testing.assert_array_equal(out[0], ((x + 2) * i << 1) ^ 3)
    np.testing.assert_array_equal(out[1], (i % 3 == 0) | (i == 1))


def test_casts_of_tiles_and_scalars() -> None:
    x = np.array([1.75, -1.75, 100.5, 0.1] * 4, np.float32)
    half, whole, byte = np.zeros(16, np.float16), np.zeros(16, np.int32), np.zeros(16, np.uint8)
    body = """
        int i[16] = 0 ... 16; float x[16] = *(a + i);
        *(b + i) = (half) x; *(c + i) = (int) x; *(d + i) = (unsigned char) ((int) x & 255);
    """
    run(body, x, half, whole, byte)
    np.testing.assert_array_equal(half, x.astype(np.float16))
    np.testing.assert_array_equal(whole, np.trunc(x).astype(np.int32))
    np.testing.assert_array_equal(byte, (np.trunc(x).astype(np.int32) & 255).astype(np.uint8))


@pytest.mark.parametrize("keep", [0, 1])
def test_a_scalar_condition_masks_a_load_and_its_mask_is_obeyed(keep: int) -> None:
    x, out = np.arange(8, dtype=np.float32), np.full(16, 7, np.float32)
    body = """
        int i[16] = 0 ... 16; bool go = c > 0;
        *?(i < 12) (b + i) = go && i < 8 ? *(a + i) : -1;
    """
    run(body, x, out, keep)
    expected = np.full(16, -1, np.float32)
    expected[12:] = 7
    if keep:
        expected[:8] = x
    np.testing.assert_array_equal(out, expected)
    source = "void k(float *p, int n) { *(p + 0 ... 16) = n > 3 ? *(p + 16 + 0 ... 16) : 0; }"
    assert text(source).count("mem.load") == 1


@pytest.mark.parametrize("jump", ["break", "continue", "return"])
@pytest.mark.parametrize("loop", ["for (int i = 0; i < n; i++)", "while (i++ < n)", "do"])
def test_jumps_under_conditions_of_run_time(loop: str, jump: str) -> None:
    """Tiles carried through, loads and stores in the loop, a break that data decides."""
    before = "int i = 0;" if "for" not in loop else ""
    after = "while (i++ < n);" if loop == "do" else ""
    body = f"""
        int n = b; {before} float s[16] = 0;
        {loop} {{
            float x[16] = *(a + 0 ... 16) + s;
            if (x[max] > 9) {{ *(a + 16) += 1; {jump}; }}
            s += x;
            *(a + 17) += 1;
        }} {after}
        *(a + 0 ... 16) = s;
    """

    def reference(n: int) -> Array:
        a = np.zeros(18, np.float32)
        a[:16] = np.arange(16) / 16
        s, i = np.zeros(16, np.float32), 0
        first = loop == "do"
        while first or i < n:
            first, skip = False, False
            x = a[:16] + s
            if x.max() > 9:
                a[16] += 1
                if jump == "return":
                    return a
                if jump == "break":
                    break
                skip = True
            if not skip:
                s = s + x
                a[17] += 1
            if loop == "do":
                go, i = i < n, i + 1
                if not go:
                    break
                first = True
            else:
                i += 1
        a[:16] = s
        return a

    for n in (0, 1, 3, 8):
        a = np.zeros(18, np.float32)
        a[:16] = np.arange(16) / 16
        run(body, a, n)
        np.testing.assert_array_equal(a, reference(n))


QUALIFIED = """
__global__ void k(const float *restrict a, float *__noalias b, float *c __readonly __aligned(32),
                  float *d __writeonly, int n __multipleof(24)) {
    *(b + 0 ... 16) = *(a + 0 ... 16) + *(c + 0 ... 16); *d = n;
}
"""


def test_qualifiers_become_the_facts_that_specialization_finds() -> None:
    head = text(QUALIFIED).splitlines()[0]
    assert head == (
        "func @k(%a: ptr<f32, const>, %b: ptr<f32>, %c: ptr<f32, const> {aligned = 32}, "
        "%d: ptr<f32>, %n: i32 {multiple_of = 24}) {"
    )


BUILT_INS = {
    "exp(x)": np.exp, "log(x)": np.log, "sqrt(x)": np.sqrt, "cos(x)": np.cos, "sin(x)": np.sin,
    "abs(-x)": np.abs, "max(x, 1.5f)": lambda x: np.maximum(x, 1.5),
    "min(x, 1.5f)": lambda x: np.minimum(x, 1.5), "select(x > 1, x, -x)":
    lambda x: np.where(x > 1, x, -x), "exp2(x)": np.exp2, "rsqrt(x)": lambda x: x**-0.5,
    "floor(x)": np.floor, "sigmoid(x)": lambda x: 1 / (1 + np.exp(-x)), "tanh(x)": np.tanh,
    "cumsum(x)": np.cumsum, "x - sum(x)": lambda x: x - x.sum(), "clamp(x, 1.0f, 2.0f)":
    lambda x: np.clip(x, 1, 2), "flip(x)": lambda x: x[::-1], "max(x) + x": lambda x: x.max() + x,
    "softmax(x)": lambda x: np.exp(x) / np.exp(x).sum(),
    "x * get_num_programs(0) + get_program_id(1)": lambda x: x,
}  # fmt: skip


@pytest.mark.parametrize("expression", BUILT_INS)
def test_built_ins(expression: str) -> None:
    x, out = np.linspace(0.25, 3, 16, dtype=np.float32), np.zeros(16, np.float32)
    source = f"""
        __global__ void k(float *a, float *b) {{
            float x[16] = *(a + 0 ... 16); *(b + 0 ... 16) = {expression};
        }}
    """
    for interpret in (True, False):
        out[:] = np.nan
        kernel(source, interpret=interpret)[(1,)](x, out)
        expected = BUILT_INS[expression](x.astype(np.float64))
        np.testing.assert_allclose(out, expected, rtol=2e-6, atol=1e-6)


def test_dot_and_trans_are_what_the_operators_are() -> None:
    source = """
        void k(float *p) {
            int i[16] = 0 ... 16;
            float *q[16, 16] = p + i[:, newaxis] * 16 + i[newaxis, :];
            float x[16, 16] = *q, acc[16, 16] = 1;
            *q = EXPRESSION;
        }
    """
    assert text(source, EXPRESSION="dot(x, trans(x))") == text(source, EXPRESSION="x @ ^x")
    assert text(source, EXPRESSION="dot(x, x, acc)") == text(source, EXPRESSION="acc + x @ x")


def test_atomics_of_tiles_with_masks() -> None:
    sums, places = np.zeros(4, np.int32), np.arange(16, dtype=np.int32) % 4
    best = np.array([3, 3], np.int32)
    body = """
        int i[16] = 0 ... 16; int to[16] = *(b + i);
        atomic_add(a + to, i, i < 8);
        atomic_max(c + (i & 1), i); atomic_min(c + 1, 2);
    """
    run(body, sums, places, best)
    assert list(sums) == [0 + 4, 1 + 5, 2 + 6, 3 + 7] and list(best) == [14, 2]


def test_every_function_of_the_language_has_its_name_in_c() -> None:
    names = [name for name in tl.__all__ if is_builtin(getattr(tl, name)) and name not in NOT_IN_C]
    assert len(names) > 80
    for name in names:
        try:
            lower(f"void k(int *p) {{ {name}(); }}")
        except errors.UndefinedName:
            pytest.fail(f"{name} is not known in C")
        except errors.TilewrightError as problem:
            assert problem.loc is not None and "Traceback" not in str(problem)


def test_interpreting_by_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_INTERPRET", "1")
    k = kernel("__global__ void k(float *p) { *(p + 0 ... 16) = 1; }")
    with pytest.raises(errors.InterpreterError, match="out-of-bounds"):
        k[(1,)](np.zeros(8, np.float32))


def test_artifacts_are_those_of_python_kernels() -> None:
    k = kernel("__global__ void k(float *p) { *(p + 0 ... 16) = 1; }")
    compiled = k[(1,)](np.zeros(16, np.float32))
    assert {"source", "ttir", "llir", "asm"} <= set(compiled.asm)
    assert "mem.store" in compiled.asm["source"] and "mem.store" in compiled.asm["ttir"]
    assert k.base_fn.src.startswith("__global__ void k")


def test_tuples_in_braces_for_functions_that_take_them() -> None:
    x, out = np.arange(24, dtype=np.float32), np.zeros((8, 4), np.float32)
    body = """
        float t[4, 8] = load(make_block_ptr(a, {3, 8}, {8, 1}, {0, 0}, {4, 8}, order = {1, 0}),
                             boundary_check = {0}, padding_option = "zero");
        float u[8, 4] = permute(t + zeros({4, 8}, float), {1, 0});
        store(b + (0 ... 8)[:, newaxis] * 4 + 0 ... 4, u, eviction_policy = "evict_last");
    """
    run(body, x, out)
    np.testing.assert_array_equal(out[:, :3], x.reshape(3, 8).T)
    assert (out[:, 3] == 0).all()


def test_load_by_name_keeps_the_promises_of_declarations() -> None:
    with pytest.raises(errors.ProtectedPointer, match="__writeonly"):
        lower("void k(float *p __writeonly) { float x = load(p); }")
    with pytest.raises(errors.TilewrightError, match="const"):
        lower("void k(const float *p) { store(p, 1.0f); }")
    with pytest.raises(errors.InvalidOperation, match="load under this condition"):
        lower("void k(float *p) { int i[8] = 0 ... 8; *(p + i) = i < 3 ? load(p + i) : 0; }")
