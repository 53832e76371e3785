"""Figures of machine code, read off a small kernel's disassembly."""

from tests.corpus.machine_code import figures_of_text, hot_loop, loops, parse

KERNEL = """
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   LDG.E.128 R4, [R2.64] ;
        /*0020*/                   LDG.E.64 R8, [R2.64+0x10] ;
        /*0030*/                   FADD R12, R4, R8 ;
.L_x_0:
        /*0040*/              @!P1 BRA `(.L_x_0) ;
.L_x_1:
        /*0050*/                   LDG.E R10, [R2.64] ;
        /*0060*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0070*/                   STS [R0], R10 ;
        /*0080*/                   STG.E.64 [R6.64], R12 ;
        /*0090*/                   NOP ;
        /*00a0*/               @P0 BRA `(.L_x_1) ;
        /*00b0*/                   EXIT ;
.L_x_2:
        /*00c0*/                   BRA `(.L_x_2) ;
"""
"""A loop that waits, one that works, and the endless one behind the exit."""


def test_a_loop_is_from_a_target_to_the_branch_back_and_works() -> None:
    (loop,) = loops(parse(KERNEL))
    assert [one.name for one in loop][:2] == ["LDG.E", "BAR.SYNC.DEFER_BLOCKING"]


def test_a_loop_that_waits_within_another_is_a_part_of_it() -> None:
    waits = KERNEL.replace("NOP ;", "NOP ;\n.L_x_8:\n/*0091*/  @!P2 BRA `(.L_x_8) ;")
    hot = hot_loop(parse(waits))
    assert hot is not None
    assert len(hot) == 6


def test_a_slow_path_behind_the_code_belongs_to_the_loop_that_it_returns_to() -> None:
    cold = KERNEL.replace("NOP ;", "NOP ;\n/*0091*/  @!P2 BRA `(.L_x_7) ;\n.L_x_6:").replace(
        ".L_x_2:", ".L_x_7:\n/*00b1*/  NANOSLEEP 0x10 ;\n/*00b2*/  BRA `(.L_x_6) ;\n.L_x_2:"
    )
    (loop,) = loops(parse(cold))
    assert [one.name for one in loop][-3:] == ["BRA", "NANOSLEEP", "BRA"]


def test_figures_of_the_kernel_and_its_loop() -> None:
    figures = figures_of_text(KERNEL)
    assert (figures.instructions, figures.loop) == (12, 5)
    assert (figures.load, figures.store, figures.flight) == (16, 8, 2)
    assert (figures.barriers, figures.loop_barriers, figures.loop_shared) == (1, 1, 1)
    assert figures.per_unit == 2.5, "five instructions for two words stored"


def test_a_loop_with_a_small_part_of_the_work_is_not_hot() -> None:
    more = KERNEL.replace("EXIT", "STG.E.128 [R6.64], R12 ;\n/*00b1*/ EXIT")
    figures = figures_of_text(more)
    assert (figures.loop, figures.per_unit) == (0, round(13 / 6, 2))


def test_work_of_a_kernel_without_loops() -> None:
    straight = KERNEL.split(".L_x_0:")[0]
    assert figures_of_text(straight).per_unit == round(4 / 6, 2), "six words loaded"


def test_a_loop_of_mmas_is_hotter_than_one_of_more_stores() -> None:
    text = (
        KERNEL.replace("BRA `(.L_x_0)", "BRA `(.L_x_9)")
        + """
.L_x_3:
        /*00d0*/                   HMMA.16816.F32 R4, R8, R10, R4 ;
        /*00e0*/                   LDL R4, [R1] ;
        /*00f0*/               @P0 BRA `(.L_x_3) ;
"""
    )
    figures = figures_of_text(text)
    assert (figures.loop, figures.loop_mma, figures.loop_spills) == (3, 1, 1)
    assert figures.per_unit == 3
