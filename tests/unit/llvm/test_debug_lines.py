"""Line tables: the debug metadata of a kernel, and what LLVM makes of it."""

import subprocess
from pathlib import Path
from shutil import which

import pytest

from tilewright.llvm import LINE_TABLES, Code, DebugLines, ModuleText, compile_ir, host_target
from tilewright.llvm.debug_lines import metadata_string
from tilewright.support import SourceLoc

KERNEL = SourceLoc("kernels.py", 10, 0, 5, "kernel")
CALL = KERNEL._replace(line=12)
HELPER = SourceLoc("helpers.py", 30, 4, 9, "scale", CALL)


def lines() -> DebugLines:
    return DebugLines("kernel", KERNEL, LINE_TABLES)


def nodes(of: DebugLines, kind: str) -> list[str]:
    return [node for node in of.footer() if kind in node]


def test_equal_places_are_one_node_whatever_their_columns() -> None:
    of = lines()
    first = of.attachment(CALL)
    assert first.startswith(", !dbg !")
    assert of.attachment(CALL._replace(col=7, end_col=8)) == first
    assert of.attachment(CALL._replace(line=13)) != first


def test_what_has_no_place_is_at_the_definition() -> None:
    of = lines()
    assert of.attachment(None) == of.attachment(KERNEL)


def test_a_line_of_a_helper_names_the_call_in_the_kernel() -> None:
    of = lines()
    call = of.attachment(CALL).rpartition("!")[2]
    of.attachment(HELPER)
    (place,) = nodes(of, "DILocation(line: 30,")
    assert place.endswith(f"inlinedAt: !{call})")
    assert len(nodes(of, 'DISubprogram(name: "scale"')) == 1


def test_a_helper_that_is_called_twice_has_two_places_in_one_function() -> None:
    of = lines()
    of.attachment(HELPER)
    of.attachment(HELPER._replace(caller=CALL._replace(line=14)))
    assert len(nodes(of, "DILocation(line: 30,")) == 2
    assert len(nodes(of, 'DISubprogram(name: "scale"')) == 1


def test_each_chain_has_a_column_of_its_own() -> None:
    of = lines()
    for line in range(20, 25):
        of.attachment(KERNEL._replace(line=line))
    columns = [node.split("column: ")[1].split(",")[0] for node in nodes(of, "DILocation")]
    assert len(set(columns)) == len(columns)


def test_text_of_another_file_in_the_kernel_itself_is_in_its_scope() -> None:
    of = lines()
    of.attachment(KERNEL._replace(file="<macro>"))
    (block,) = nodes(of, "DILexicalBlockFile")
    assert f"scope: !{of.function}," in block
    assert len(nodes(of, 'filename: "<macro>"')) == 1


@pytest.mark.parametrize(
    ("name", "text"), [('a"b', "a?b"), ("a\\b", "a?b"), ("Gr\u00f6\u00dfe.py", "Gr??e.py")]
)
def test_names_keep_only_characters_that_assemblers_take(name: str, text: str) -> None:
    assert metadata_string(name) == text


def object_of(place: SourceLoc) -> bytes:
    """A function with two additions, the second at `place`."""
    of = DebugLines("kernel", KERNEL, LINE_TABLES)
    code = Code(ModuleText(), lines=of)
    code.line("%x = add i64 %a, %b")
    code.locate(place)
    code.line("%y = mul i64 %x, %b")
    code.line("ret i64 %y")
    body = "\n".join(code.sections[0])
    head = f"define i64 @kernel(i64 %a, i64 %b) !dbg !{of.function} {{"
    text = "\n".join([head, body, "}", *of.footer(), ""])
    return compile_ir(text, host_target())


@pytest.mark.skipif(which("objdump") is None, reason="objdump is not installed")
@pytest.mark.parametrize("place", [CALL, HELPER, CALL._replace(file="other.py")])
def test_objects_hold_the_lines(place: SourceLoc, tmp_path: Path) -> None:
    path = tmp_path / "kernel.o"
    path.write_bytes(object_of(place))
    command = ["objdump", "-dl", str(path)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"{Path('kernels.py').absolute()}:{KERNEL.line}" in shown
    assert f"{Path(place.file).absolute()}:{place.line}" in shown


def test_a_function_of_its_own_is_all_at_one_line() -> None:
    of = lines()
    text = of.placed("define void @dot0(ptr %p) nounwind {\nentry:\n  ret void\n}", CALL)
    head, entry, ret, end = text.split("\n")
    assert head.startswith("define void @dot0(ptr %p) nounwind !dbg !")
    assert (entry, end) == ("entry:", "}")
    assert ret.startswith("  ret void, !dbg !")
    assert len(nodes(of, 'DISubprogram(name: "dot0"')) == 1


def test_code_without_lines_has_no_attachments() -> None:
    code = Code(ModuleText())
    code.locate(CALL)
    code.line("ret void")
    assert code.sections == [["ret void"]]


def test_labels_have_no_attachments() -> None:
    code = Code(ModuleText(), lines=lines())
    code.line("head:")
    assert code.sections == [["head:"]]
