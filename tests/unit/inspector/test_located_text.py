"""Lines of each stage, and the source lines that they come from."""

import pytest

from tilewright.inspector.located_text import LocatedLine, located_lines

LLVM = """define void @k() !dbg !5 {
  %a = add i32 1, 2, !dbg !6
  %b = add i32 %a, 2, !dbg !8
  ret void
}
!llvm.dbg.cu = !{!1}
!2 = !DIFile(filename: "/u/k.py", directory: "")
!3 = !DIFile(filename: "/u/h.py", directory: "")
!5 = distinct !DISubprogram(name: "k", scope: !2, file: !2, line: 4, unit: !1)
!6 = distinct !DILocation(line: 7, column: 1, scope: !5)
!7 = distinct !DISubprogram(name: "h", scope: !3, file: !3, line: 2, unit: !1)
!8 = distinct !DILocation(line: 3, column: 2, scope: !7, inlinedAt: !6)
"""
CALLED = (("/u/h.py", 3), ("/u/k.py", 7))


def test_tile_ir_has_locations_in_its_text():
    text = '%a = arith.add %x, %y : i32 @ "/u/h.py":3:1:4 in "h" from "/u/k.py":7:2:9\n  cf.return'
    assert located_lines("ttir", text, "") == [
        LocatedLine("%a = arith.add %x, %y : i32", CALLED), LocatedLine("  cf.return"),
    ]  # fmt: skip


def test_a_location_before_a_region_is_cut_out():
    (line,) = located_lines("ttir", '%r = cf.for %a @ "/u/k.py":7:1:4 (%k: i32) {', "")
    assert line == LocatedLine("%r = cf.for %a (%k: i32) {", (("/u/k.py", 7),))


def test_llvm_ir_has_numbered_metadata():
    lines = located_lines("llir", LLVM, LLVM)
    assert [line.chain for line in lines] == [(("/u/k.py", 4),), (("/u/k.py", 7),), CALLED, (), ()]
    assert not any("!dbg" in line.text or "DI" in line.text for line in lines)


@pytest.mark.parametrize("stage", ["ptx", "asm"])
def test_columns_of_loc_directives_name_chains(stage: str):
    head = '\t.file\t1 "/u/h.py"\n\t.loc\t1 3 2\n'
    text = head + "\tadd.s32 \t%r1, %r2;\n$L__tmp3:\n\t.loc\t1 9 0\n\tret;"
    assert located_lines(stage, text, LLVM) == [
        LocatedLine("  add.s32 %r1, %r2;", CALLED),
        LocatedLine("  ret;", (("/u/h.py", 9),)),
    ]


def test_ptx_has_its_files_at_the_end():
    text = '\t.loc\t1 9 0\n\tret;\n\t.file\t1 "/u" "h.py"\n'
    assert located_lines("ptx", text, "")[0].chain == (("/u/h.py", 9),)


def test_line_0_has_no_place():
    assert located_lines("asm", "\t.loc\t1 0 0\n\tretq", LLVM)[0].chain == ()


def test_tables_after_the_code_are_left_out():
    lines = located_lines("asm", '\tretq\n\t.section\t.debug_info,"",@progbits\n\t.byte 1', "")
    assert [line.text for line in lines] == ["  retq"]


def test_comments_of_a_disassembly_name_calls():
    text = """
\t//## File "/u/h.py", line 3 inlined at "/u/k.py", line 7
\t//## File "/u/k.py", line 7
        /*0000*/                   LDC R1, c[0x0][0x28] ;
\t//## File "/u/k.py", line 8
        /*0010*/                   EXIT ;
"""
    chains = [line.chain for line in located_lines("sass_lines", text, "")]
    assert chains == [CALLED, (("/u/k.py", 8),)]
