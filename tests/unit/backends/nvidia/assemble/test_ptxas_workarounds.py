"""What ptxas assembles wrongly does not come to it; and whether it still does."""

import re

import pytest

import tilewright.language as tl
from tests.unit.backends.nvidia.compiled import compiled
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import jit
from tilewright.backends.nvidia.assemble.ptxas import assemble, sass
from tilewright.backends.nvidia.assemble.ptxas_workarounds import work_around_ptxas
from tilewright.support import errors

WRAPPED = re.compile(r"PRMT R\d+, R\d+, 0x9910, RZ")
"""A register's low 16 bits with their sign, in machine code."""


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("\tneg.s16 \t%rs3, %rs1;\n", "\tmul.lo.s16 \t%rs3, %rs1, -1;\n"),
        ("\tsub.s16 \t%rs3, 0, %rs1;\n", "\tmad.lo.s16 \t%rs3, %rs1, -1, 0;\n"),
        ("\tsub.s16 \t%rs3, %rs1, %rs2;\n", "\tmad.lo.s16 \t%rs3, %rs2, -1, %rs1;\n"),
        (
            "\tabs.s16 \t%rs3, %rs1;\n",
            "\t{ .reg .b16 %negated; mul.lo.s16 %negated, %rs1, -1; "
            "max.s16 \t%rs3, %rs1, %negated; }\n",
        ),
    ],
)
def test_negations_of_16_bits_become_products(wrong: str, right: str) -> None:
    assert work_around_ptxas(wrong) == right


@pytest.mark.parametrize(
    "text", ["\tneg.s32 \t%r3, %r1;\n", "\tsub.s16 \t%rs3, 1, %rs1;\n", "\tneg.f16 \t%h3, %h1;\n"]
)
def test_what_is_assembled_right_stays(text: str) -> None:
    assert work_around_ptxas(text) == text


@jit
def negating_kernel(x, out):
    value = tl.load(x)
    tl.store(out, (-value).to(tl.int32))
    tl.store(out + 1, tl.abs(value).to(tl.int32))
    tl.store(out + 2, (tl.load(x + 1) - value).to(tl.int32))
    tl.store(out + 3, (value * -2).to(tl.int32))


@needs_ptxas
@pytest.mark.parametrize("capability", [75, 80, 90, 120])
def test_kernels_reach_ptxas_without_a_negation_of_16_bits(capability: int) -> None:
    ptx = str(compiled(negating_kernel, "*i16 *i32", capability).asm["ptx"])
    assert not re.search(r"(?:neg|sub|abs)\.s16", ptx)
    assert ptx.count("mul.lo.s16") == 3 and ptx.count("mad.lo.s16") == 1


def _negated(instruction: str) -> str:
    """The machine code that widens what one instruction makes of a 16-bit number."""
    ptx = f"""
.version 7.8
.target sm_80
.address_size 64
.visible .entry negated(.param .u64 pointer)
{{
  .reg .b64 %rd1; .reg .b32 %r1; .reg .b16 %rs<4>;
  ld.param.u64 %rd1, [pointer];
  ld.global.b16 %rs1, [%rd1];
  {instruction}
  cvt.s32.s16 %r1, %rs3;
  st.global.b32 [%rd1+8], %r1;
  ret;
}}
"""
    try:
        return sass(assemble(ptx, "sm_80", "negated").cubin)
    except errors.ToolMissing:
        pytest.skip("nvdisasm is not installed")


@needs_ptxas
@pytest.mark.parametrize("instruction", ["neg.s16 %rs3, %rs1;", "abs.s16 %rs3, %rs1;"])
def test_ptxas_still_needs_the_workaround(instruction: str) -> None:
    """Fails once NVIDIA has repaired it: the module can go when no older ptxas is supported."""
    wrong, right = _negated(instruction), _negated(work_around_ptxas(instruction))
    assert len(WRAPPED.findall(wrong)) == 1, "the result is not brought to 16 bits"
    assert len(WRAPPED.findall(right)) >= 2
