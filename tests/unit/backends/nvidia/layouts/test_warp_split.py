"""How warps share products: squarely alone, along what is reduced or multiplied again otherwise.

Those of mma.sync, as on sm_80; warpgroups share rows first.
"""

import re
from dataclasses import replace

import pytest

import tilewright.language as tl
from tests.corpus.figures import source_of
from tests.corpus.variants import CORPUS, HERE
from tests.unit.backends.nvidia.compiled import bodies_of_loops, compiled, ops
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import compile, jit
from tilewright.backends import GPUTarget
from tilewright.kernels.attention_plan import gpu_launch_options
from tilewright.layout import REGISTER, WARP, LinearLayout

pytestmark = needs_ptxas

TYPES = "*fp16/16 *fp16/16 *fp32/16 i32"


def shares(text: str) -> list[tuple[int, int]]:
    """Of each product in textual tile IR: warps along the rows and the columns of its result."""
    found: list[tuple[int, int]] = []
    before = None
    for match in re.finditer(
        r"(%\w+) = tile\.dot .*?, .*?, (%\w+).* : tile<[\dx]+xf32, (.*)>", text
    ):
        bases = LinearLayout.parse(match[3]).bases(WARP)
        # Steps of one product along K follow each other.
        if match[2] != before:
            found.append((2 ** sum(b[0] > 0 for b in bases), 2 ** sum(b[1] > 0 for b in bases)))
        before = match[1]
    return found


@jit
def plain(x, y, out, K, M: tl.constexpr, N: tl.constexpr):
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, 32)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, 32):
        a = tl.load(x + i * K + start + k[None, :])
        acc = tl.dot(a, tl.load(y + (start + k[:, None]) * N + j), acc)
    tl.store(out + i * N + j, tl.maximum(acc, 0.0) * 2)


SQUARE = [(64, 64, (2, 2)), (128, 64, (4, 1)), (128, 128, (2, 2)), (64, 256, (1, 4)),
          (16, 128, (1, 4))]  # fmt: skip


@pytest.mark.parametrize(("m", "n", "share"), SQUARE)
def test_a_product_alone_is_shared_squarely(m: int, n: int, share: tuple[int, int]) -> None:
    assert shares(str(compiled(plain, TYPES, 80, M=m, N=n).asm["ttgir"])) == [share]


WARPGROUPS = [(64, 64, 4, (64, 1)), (128, 128, 4, (128, 1)), (64, 256, 4, (256, 1)),
              (128, 64, 8, (64, 2)), (64, 256, 8, (128, 1)), (128, 256, 8, (256, 2))]  # fmt: skip


@pytest.mark.parametrize(("m", "n", "warps", "share"), WARPGROUPS)
def test_warpgroups_share_rows_before_columns(
    m: int, n: int, warps: int, share: tuple[int, int]
) -> None:
    """share: columns of an instruction, warpgroups along the rows."""
    text = str(compiled(plain, TYPES, M=m, N=n, num_warps=warps).asm["ttgir"])
    found = re.findall(r"= nvidia\.wgmma .*\{columns = (\d+), rows = (\d+)", text)
    assert [(int(columns), int(rows)) for columns, rows in found] == [share]


@jit
def reduced_in_the_loop(x, y, out, K, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    """The largest of each row or column of several products."""
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, 32)
    best = tl.zeros((N if AXIS == 0 else M,), tl.float32)
    for start in range(0, K, 32):
        a = tl.load(x + i * K + start + k[None, :])
        scores = tl.dot(a, tl.load(y + (start + k[:, None]) * N + j)) * 2
        best = tl.maximum(best, tl.max(scores, AXIS))
    tl.store(out + tl.arange(0, N if AXIS == 0 else M), best)


@pytest.mark.parametrize(("axis", "share"), [(1, (4, 1)), (0, (1, 4))])
def test_a_reduced_product_is_shared_along_what_stays(axis: int, share: tuple[int, int]) -> None:
    text = str(compiled(reduced_in_the_loop, TYPES, 80, M=64, N=64, AXIS=axis).asm["ttgir"])
    assert shares(text) == [share]


@jit
def reduced_at_the_end(x, y, out, K, M: tl.constexpr, N: tl.constexpr):
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, 32)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, 32):
        a = tl.load(x + i * K + start + k[None, :])
        acc = tl.dot(a, tl.load(y + (start + k[:, None]) * N + j), acc)
    tl.store(out + tl.arange(0, M), tl.max(acc, 1))


def test_one_reduction_after_a_loop_does_not_outweigh_the_reads_within() -> None:
    text = str(compiled(reduced_at_the_end, TYPES, 80, M=128, N=128, num_warps=8).asm["ttgir"])
    assert shares(text) == [(4, 2)]


@jit
def chained(x, y, out, n, M: tl.constexpr, N: tl.constexpr):
    """A product is a factor of the next one."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    first = tl.load(x + i * N + j[None, :])
    for k in range(n):
        square = tl.load(y + k * N * N + j[:, None] * N + j[None, :])
        acc = tl.dot(tl.dot(first, square).to(tl.float16), square, acc)
    tl.store(out + i * N + j[None, :], acc)


def test_a_product_that_is_a_factor_of_the_next_stays_with_its_warp() -> None:
    text = str(compiled(chained, TYPES, 80, M=64, N=64).asm["ttgir"])
    assert shares(text) == [(4, 1), (4, 1)]
    assert ops(bodies_of_loops(text))["nvidia.write"] == 0


def attention(label: str, stage: str = "ptx", capability: int = 80) -> str:
    variant = next(v for v in CORPUS["attention"] if v.capability == HERE and v.label == label)
    if capability != HERE:
        tiles = gpu_launch_options(variant.constants["HEAD"], 4 if "fp32" in label else 2)
        variant = replace(variant, words=tuple((dict(variant.words) | tiles).items()))
    options = {**variant.options, "bulk_loads": "descriptors"}
    made = compile(source_of(variant), GPUTarget("cuda", capability, 32), options)
    return str(made.asm[stage])


def in_the_loop(ptx: str, instruction: str) -> int:
    """How often an instruction stands in the loop over the keys."""
    loop = re.compile(r"\n(\$L__BB\w+):(.*?)\bbra(?:\.uni)?\s+\1;", re.DOTALL)
    products = ("mma.sync", "wgmma.mma_async")
    (body,) = [m[2] for m in loop.finditer(ptx) if any(name in m[2] for name in products)]
    return body.count(instruction)


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("label", ["fp16 64 causal", "fp16 128 causal"])
def test_attention_waits_only_for_its_copies(label: str, capability: int) -> None:
    ptx = attention(label, capability=capability)
    assert in_the_loop(ptx, "bar.sync") == 1
    assert in_the_loop(ptx, "st.shared") == 0


def of_user(case: str, stage: str = "ptx") -> str:
    """A stage of a user's kernel on sm_80."""
    family, _, label = case.partition("/")
    found = (v for v in CORPUS[f"users/{family}"] if v.capability == 80 and v.label == label)
    variant = next(found)
    made = compile(source_of(variant), GPUTarget("cuda", 80, 32), variant.options)
    return str(made.asm[stage])


@pytest.mark.parametrize("label", ["full 128", "alibi"])
def test_a_loop_without_exchanges_is_worth_less_than_a_tenth(label: str) -> None:
    """Tiles of 128 x 128 on 8 warps: rows that are reduced belong to one warp."""
    ptx = of_user(f"attention/{label}")
    assert in_the_loop(ptx, "bar.sync") == 1
    assert in_the_loop(ptx, "st.shared") == 0


def test_weights_that_four_warps_read_are_unpacked_once() -> None:
    """64 x 128 weights are 32 elements of each of 256 threads, and 128 of a fragment's."""
    loop = bodies_of_loops(of_user("fused_matmuls/int4 in int32, 128 rows", "ttgir"))
    (unpacked,) = re.findall(r"%w\w* = arith\.and .*?<64x128xi32, (.*)>", loop)
    assert LinearLayout.parse(unpacked).in_size(REGISTER) == 32
    assert "ldmatrix" in of_user("fused_matmuls/int4 in int32, 128 rows")


@pytest.mark.parametrize(
    ("label", "groups", "products"), [("fp16 64 causal", 1, 2), ("fp16 128 causal", 2, 4)]
)
def test_attention_shares_queries_among_warpgroups(label: str, groups: int, products: int) -> None:
    """Each has 64 rows or more, whose keys and values it reads where the copies put them."""
    text, ptx = attention(label, "ttgir", 90), attention(label, capability=90)
    rows = re.findall(r"= nvidia\.wgmma .*rows = (\d+)", text)
    # Of scores, and with values: in straight iterations, in others, and the last behind the loop.
    # Of three programs on a multiprocessor none begins a product an iteration early.
    assert [int(row) for row in rows] == [groups] * products
    assert in_the_loop(ptx, "ld.shared") == in_the_loop(ptx, "ldmatrix") == 0
    assert ops(bodies_of_loops(text))["nvidia.write"] == 0


KEPT = [
    ("fp16 256 causal", 80, [(4, 2), (2, 4)]),
    # Scores are computed by warpgroups.
    ("fp32 64 causal", 90, [(2, 2)]),
    ("fp32 128 causal", 90, [(2, 2)]),
]


@pytest.mark.parametrize(("label", "capability", "square"), KEPT)
def test_attention_that_would_save_little_keeps_square_shares(
    label: str, capability: int, square: list[tuple[int, int]]
) -> None:
    """It was slower on an H200 with fewer barriers: each warp read more values."""
    assert shares(attention(label, "ttgir", capability)) == square
