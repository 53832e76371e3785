"""`triton.tools.disasm`: instructions, control codes and labels, from what cuobjdump shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.triton_alias import disassembly

SHOWN = """
Fatbin elf code:
arch = sm_90

	code for sm_90
		Function : copy
	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90"
        /*0000*/                   LDC.64 R2, c[0x0][0x210] ;      /* 0x00008400ff027b82 */
                                                                  /* 0x000e220000000a00 */
        /*0010*/                   LDG.E R4, desc[UR4][R2.64] ;    /* 0x0000000402047981 */
                                                                  /* 0x001ea2000c1e1900 */
        /*fff0*/              @!P0 BRA 0x10010 ;                   /* 0x0000000000047947 */
                                                                  /* 0x000fea0003800000 */
        /*10000*/                  STG.E desc[UR4][R2.64], R4 ;    /* 0x0000000402007986 */
                                                                  /* 0x004fe2000c101904 */
        /*10010*/                  BRA 0x10010;                    /* 0xfffffffc00fc7947 */
                                                                  /* 0x000fc0000383ffff */
		..........

		Function : empty
	.headerflags	@"EF_CUDA_SM90"
        /*0000*/                   EXIT ;                          /* 0x000000000000794d */
                                                                  /* 0x000fea0003800000 */
"""

COPY = """\
Function:copy
--:-:0:-:1	LDC.64 R2, c[0x0][0x210];
01:-:2:-:1	LDG.E R4, desc[UR4][R2.64];
--:-:-:-:5	@!P0 BRA LBB0;
04:-:-:-:1	STG.E desc[UR4][R2.64], R4;
LBB0:
--:-:-:Y:0	BRA LBB0;

"""
EMPTY = "Function:empty\n--:-:-:-:5\tEXIT;\n\n"


@pytest.fixture
def cuobjdump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that shows SHOWN, and writes down how it was called."""
    (tmp_path / "shown").write_text(SHOWN)
    tool = tmp_path / "cuobjdump"
    tool.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo "release 13.0, V13.0.85"; exit; fi\n'
        f'echo "$@" > {tmp_path}/arguments; cat {tmp_path}/shown\n'
    )
    tool.chmod(0o700)
    monkeypatch.setenv("TRITON_CUOBJDUMP_PATH", str(tool))
    return tmp_path


def test_instructions_have_control_codes_and_labels(cuobjdump: Path) -> None:
    assert disassembly.extract("kernel.cubin", None) == COPY + EMPTY
    assert (cuobjdump / "arguments").read_text() == "-sass kernel.cubin\n"
    assert disassembly.path_to_cuobjdump() == str(cuobjdump / "cuobjdump")


def test_one_function_may_be_named(cuobjdump: Path) -> None:
    assert disassembly.get_sass(b"a cubin", "copy") == COPY + EMPTY
    arguments = (cuobjdump / "arguments").read_text().split()
    assert arguments[:3] == ["-fun", "copy", "-sass"]
    # the file is gone, and the second time nothing is called
    assert not Path(arguments[3]).exists()
    (cuobjdump / "arguments").unlink()
    assert disassembly.get_sass(b"a cubin", "copy") == COPY + EMPTY
    assert not (cuobjdump / "arguments").exists()


def test_a_control_code_is_fields_of_the_upper_half() -> None:
    # stall 5, yield, write barrier 3, read barrier 1, waits for 2 and 4
    code = 5 | 0 << 4 | 3 << 5 | 1 << 8 | 0b010100 << 11
    assert disassembly.parseCtrl(f"  /* 0x{code << 41:016x} */") == "20:1:3:Y:5"
    with pytest.raises(ValueError, match="no encoding of an instruction"):
        disassembly.parseCtrl("EXIT")
