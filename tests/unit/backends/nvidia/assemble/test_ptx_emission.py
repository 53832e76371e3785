"""What LLVM dies of is an exception; what is listed compiles on every architecture."""

import multiprocessing
import os
import pickle
import re
import threading
import time
from pathlib import Path

import pytest

from tests.forking import needs_fork
from tests.stop_points import count_points, is_stopped_at
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends.nvidia.arch import ARCHITECTURES, Arch, row_for
from tilewright.backends.nvidia.assemble import ptx_emission, ptxas
from tilewright.backends.nvidia.assemble.nvptx_legality import (
    GENERIC,
    INTRINSICS,
    Intrinsic,
    unlisted,
)
from tilewright.backends.nvidia.assemble.ptx_emission import emit_ptx, emit_ptx_isolated
from tilewright.backends.nvidia.assemble.ptxas import assemble
from tilewright.llvm import LlvmError
from tilewright.llvm.code_generation import LONG_FUNCTION
from tilewright.support import errors

ROWS = list(ARCHITECTURES.values())
H100 = row_for(90)
PARAMETERS = "ptr addrspace(1) %p, float %f, double %d, i32 %r, i64 %l, half %x, i128 %q"


def kernel(body: str, declarations: str = "") -> str:
    return f"{declarations}\ndefine ptx_kernel void @k({PARAMETERS}) {{\n{body}\n  ret void\n}}\n"


FINE = kernel("  store float %f, ptr addrspace(1) %p")
DEADLY = {
    "library call": kernel(
        "%a = call float @llvm.exp.f32(float %f)\nstore float %a, ptr addrspace(1) %p",
        "declare float @llvm.exp.f32(float)",
    ),
    "no instruction": kernel(
        "%a = call float @llvm.nvvm.redux.sync.fmin(float %f, i32 -1)\n"
        "store float %a, ptr addrspace(1) %p",
        "declare float @llvm.nvvm.redux.sync.fmin(float, i32)",
    ),
    "constraint": kernel(
        '%a = call i32 asm "mov.b32 $0, $1;", "=r,z"(i32 %r)\nstore i32 %a, ptr addrspace(1) %p'
    ),
    "register": kernel(
        '%a = call i32 asm "mov.b32 $0, $1;", "=r,{foo}"(i32 %r)\nstore i32 %a, ptr addrspace(1) %p'
    ),
    "operand": kernel(
        '%a = call i32 asm sideeffect "mov.b32 $0, $9;", "=r,r"(i32 %r)\n'
        "store i32 %a, ptr addrspace(1) %p"
    ),
    "wide integer": kernel("%a = sitofp i128 %q to float\nstore float %a, ptr addrspace(1) %p"),
}


# --- the child ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DEADLY)
def test_end_of_llvm_is_an_exception(name: str) -> None:
    text = DEADLY[name]
    with pytest.raises(errors.InternalCompilerError) as caught:
        emit_ptx(text, H100, "softmax")
    message = str(caught.value)
    assert "kernel 'softmax'" in message
    assert re.search(r"error:|LLVM ERROR:", message)
    assert re.search(r"\((SIGABRT|exit status 1)\)", message)
    assert caught.value.reproducer is not None
    saved = Path(caught.value.reproducer)
    assert saved.read_text() == text
    saved.unlink()


def test_child_compiles_as_this_process_does() -> None:
    assert emit_ptx_isolated(FINE, H100.target, "k") == emit_ptx(FINE, H100, "k")


def test_child_is_kept_and_replaced_after_its_end() -> None:
    emit_ptx_isolated(FINE, H100.target, "k")
    first = ptx_emission._child()  # pyright: ignore[reportPrivateUsage]
    emit_ptx_isolated(FINE, H100.target, "k")
    assert ptx_emission._child() is first  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(errors.InternalCompilerError) as caught:
        emit_ptx_isolated(DEADLY["constraint"], H100.target, "k")
    Path(caught.value.reproducer or "").unlink()
    assert "st.global" in emit_ptx_isolated(FINE, H100.target, "k")
    assert ptx_emission._child() is not first  # pyright: ignore[reportPrivateUsage]


def test_invalid_text_is_the_same_error_as_in_this_process() -> None:
    for compile_ in (
        lambda: emit_ptx("define nonsense", H100, "k"),
        lambda: emit_ptx_isolated("define nonsense", H100.target, "k"),
    ):
        with pytest.raises(LlvmError) as caught:
            compile_()
        assert "expected" in caught.value.detail
        assert caught.value.ir == "define nonsense"


def test_untested_text_goes_to_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    def isolated(*positional: object, **named: object) -> str:
        return "from the child"

    monkeypatch.setattr(ptx_emission, "emit_ptx_isolated", isolated)
    assert emit_ptx(DEADLY["constraint"], H100, "k") == "from the child"
    assert emit_ptx(FINE, H100, "k") != "from the child"


def strided_stores(count: int) -> str:
    """Stores to addresses of one form each, which strength reduction compares with one another."""
    return kernel(
        "\n".join(
            f"%i{n} = mul i32 %r, {n + 3}\n%o{n} = sext i32 %i{n} to i64\n"
            f"%a{n} = getelementptr float, ptr addrspace(1) %p, i64 %o{n}\n"
            f"store float %f, ptr addrspace(1) %a{n}"
            for n in range(count)
        )
    )


def test_long_functions_go_to_the_child(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = strided_stores(LONG_FUNCTION // 4 + 1)
    assert emit_ptx(long, H100, "k").count("st.global") == LONG_FUNCTION // 4 + 1
    asked: list[str] = []
    monkeypatch.setattr(ptx_emission, "emit_ptx_isolated", lambda text, *_: asked.append(text))
    dead = "\n".join(f"%i{n} = mul i32 %r, {n}" for n in range(LONG_FUNCTION // 2))
    for text in (long, kernel(dead)):
        emit_ptx(text, H100, "k")
    assert asked == [long]


def test_child_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    emit_ptx_isolated(FINE, H100.target, "k")
    monkeypatch.setattr(ptx_emission, "TIMEOUT_SECONDS", 0.0)
    with pytest.raises(errors.InternalCompilerError, match="killed") as caught:
        emit_ptx_isolated(big_module(), H100.target, "k")
    Path(caught.value.reproducer or "").unlink()


def big_module() -> str:
    lines = "\n".join(
        f"  %a{i} = fadd float %f, {float(i)}\n  store volatile float %a{i}, ptr addrspace(1) %p"
        for i in range(20_000)
    )
    return f"define ptx_kernel void @big({PARAMETERS}) {{\n{lines}\n  ret void\n}}\n"


def test_threads_share_the_child() -> None:
    got: list[str] = []
    threads = [
        threading.Thread(target=lambda: got.append(emit_ptx_isolated(FINE, H100.target, "k")))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 6 and len(set(got)) == 1


def _emit_in_fork(queue: "multiprocessing.SimpleQueue[str]") -> None:
    queue.put(emit_ptx_isolated(FINE, H100.target, "k"))


@needs_fork
def test_fork_gets_a_child_of_its_own() -> None:
    here = emit_ptx_isolated(FINE, H100.target, "k")
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=_emit_in_fork, args=(queue,))
    process.start()
    assert queue.get() == here
    process.join()
    assert emit_ptx_isolated(FINE, H100.target, "k") == here


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_the_compiling_process_ends_though_a_forked_one_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patience = 60.0  # longer than any busy machine needs: only a process that hangs is killed
    monkeypatch.setattr(ptx_emission, "_END_SECONDS", patience)
    emit_ptx_isolated(FINE, H100.target, "k")
    compiling = ptx_emission._child()  # pyright: ignore[reportPrivateUsage]
    end, write_end = os.pipe()
    forked = os.fork()
    if not forked:
        os.read(end, 1)
        os._exit(0)
    start = time.monotonic()
    compiling.close()
    seconds = time.monotonic() - start
    os.write(write_end, b".")
    assert os.waitpid(forked, 0)[1] == 0
    assert seconds < patience


def test_llvm_errors_travel() -> None:
    error = pickle.loads(pickle.dumps(LlvmError("detail", "text")))
    assert (error.detail, error.ir) == ("detail", "text")


# --- the list -------------------------------------------------------------------------------------


def call_of(intrinsic: Intrinsic, number: int) -> str:
    """A kernel that calls it with arguments from memory and stores the result."""
    lines: list[str] = []
    arguments: list[str] = []
    for i, argument in enumerate(intrinsic.arguments):
        if re.search(r" (?:\d+|false)$", argument) and not argument.endswith(">"):
            arguments.append(argument)
            continue
        lines.append(f"  %a{i} = load volatile {argument}, ptr addrspace(1) %p")
        arguments.append(f"{argument} %a{i}")
    call = f"call {intrinsic.result} @{intrinsic.name}({', '.join(arguments)})"
    if intrinsic.result == "void":
        lines.append(f"  {call}")
    else:
        lines.append(f"  %v = {call}\n  store {intrinsic.result} %v, ptr addrspace(1) %p")
    body = "\n".join(lines)
    return f"define ptx_kernel void @k{number}(ptr addrspace(1) %p) {{\n{body}\n  ret void\n}}\n"


def declaration(intrinsic: Intrinsic) -> str:
    types = [re.sub(r" (?:\d+|false)$", "", a) for a in intrinsic.arguments]
    return f"declare {intrinsic.result} @{intrinsic.name}({', '.join(types)})\n"


def widened(intrinsic: Intrinsic, width: int) -> Intrinsic:
    """The same on vectors."""
    scalars = "half bfloat float double i8 i16 i32 i64".split()

    def vector(type_: str) -> str:
        return f"<{width} x {type_}>" if type_ in scalars else type_

    name = re.sub(r"\.((?:b?f|i)\d+)(?=\.|$)", rf".v{width}\1", intrinsic.name)
    return Intrinsic(name, vector(intrinsic.result), tuple(map(vector, intrinsic.arguments)))


def module_of(intrinsics: list[Intrinsic]) -> str:
    calls = [call_of(intrinsic, i) for i, intrinsic in enumerate(intrinsics)]
    return "".join([*map(declaration, intrinsics), *calls])


@pytest.fixture
def unoptimized(monkeypatch: pytest.MonkeyPatch) -> None:
    """ptxas says soon whether it takes a text."""
    monkeypatch.setattr(ptxas, "is_long", lambda ptx: True)
    monkeypatch.setattr(ptxas, "LESS_OPTIMIZED", 0)


def available(row: Arch) -> list[Intrinsic]:
    return [i for i in INTRINSICS.values() if not i.needs or getattr(row, i.needs)]


@needs_ptxas
@pytest.mark.usefixtures("unoptimized")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_listed_intrinsics_compile_and_assemble(row: Arch) -> None:
    intrinsics = available(row)
    text = module_of(intrinsics)
    assert unlisted(text, row) == []
    assemble(emit_ptx_isolated(text, row.target, "listed"), row.cpu, "k0")


@needs_ptxas
@pytest.mark.usefixtures("unoptimized")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("width", [2, 3, 8])
def test_generic_intrinsics_take_vectors(row: Arch, width: int) -> None:
    intrinsics = [widened(i, width) for i in GENERIC.values()]
    assert len(intrinsics) > 80
    text = module_of(intrinsics)
    assert unlisted(text, row) == []
    assemble(emit_ptx_isolated(text, row.target, "vectors"), row.cpu, "k0")


FLOATS, INTEGERS = ("half", "bfloat", "float", "double"), ("i8", "i16", "i32", "i64")


def plain_instructions(width: int) -> list[str]:
    """Every instruction that computes, on every type of element."""

    def of(element: str) -> str:
        return element if width == 1 else f"<{width} x {element}>"

    lines = [f"fneg {of(t)} %a" for t in FLOATS]
    lines += [
        f"{name} {of(t)} %a, %b"
        for name in ("fadd", "fadd contract", "fsub", "fmul", "fmul contract", "fdiv", "fdiv afn",
                     "frem", "fcmp olt", "fcmp une", "fcmp uno")
        for t in FLOATS
    ]  # fmt: skip
    lines += [
        f"{name} {of(t)} %a, %b"
        for name in "add sub mul sdiv udiv srem urem shl lshr ashr and or xor".split()
        + ["icmp eq", "icmp slt", "icmp ult"]
        for t in INTEGERS
    ]
    casts = [("sext", a, b) for a in INTEGERS for b in INTEGERS if int(a[1:]) < int(b[1:])]
    casts += [("zext", a, b) for _, a, b in casts] + [("trunc", b, a) for _, a, b in casts]
    casts += [("sext", "i1", t) for t in INTEGERS] + [("zext", "i1", t) for t in INTEGERS]
    casts += [(n, i, f) for n in ("sitofp", "uitofp") for i in (*INTEGERS, "i1") for f in FLOATS]
    casts += [(n, f, i) for n in ("fptosi", "fptoui") for i in INTEGERS for f in FLOATS]
    wider = [(a, b) for a in FLOATS[:2] for b in FLOATS[2:]] + [("float", "double")]
    casts += [("fpext", a, b) for a, b in wider] + [("fptrunc", b, a) for a, b in wider]
    casts += [("bitcast", "half", "i16"), ("bitcast", "bfloat", "i16"), ("bitcast", "float", "i32")]
    lines += [f"{name} {of(a)} %a to {of(b)}" for name, a, b in casts]
    lines += [f"select i1 %c, {of(t)} %a, {of(t)} %b" for t in FLOATS + INTEGERS]
    lines += [f"select {of('i1')} %d, {of(t)} %a, {of(t)} %b" for t in FLOATS + INTEGERS]
    return lines


def result_type(line: str) -> str:
    operand = re.search(r"(<\d+ x \w+>|\bi\d+\b|half|bfloat|float|double) %[ab]", line)
    assert operand
    if " to " in line:
        return line.rpartition(" to ")[2]
    if "cmp" in line:
        return re.sub(r"\w+(?=>?$)", "i1", operand[1])
    return operand[1]


def kernel_of(line: str, number: int, width: int) -> str:
    """A kernel that runs one instruction on operands from memory."""
    mask = "i1" if width == 1 else f"<{width} x i1>"
    operand = re.search(r"(<\d+ x \w+>|\bi\d+\b|half|bfloat|float|double) %[ab]", line)
    assert operand
    loads = [("a", operand[1]), ("b", operand[1]), ("c", "i1"), ("d", mask)]
    body = "".join(f"  %{n} = load volatile {t}, ptr addrspace(1) %p\n" for n, t in loads)
    body += f"  %v = {line}\n  store {result_type(line)} %v, ptr addrspace(1) %p\n"
    return f"define ptx_kernel void @k{number}(ptr addrspace(1) %p) {{\n{body}  ret void\n}}\n"


@needs_ptxas
@pytest.mark.usefixtures("unoptimized")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("width", [1, 2, 4])
def test_plain_instructions_compile_and_assemble(row: Arch, width: int) -> None:
    lines = plain_instructions(width)
    text = "".join(kernel_of(line, i, width) for i, line in enumerate(lines))
    assert unlisted(text, row) == []
    assemble(emit_ptx_isolated(text, row.target, "plain"), row.cpu, "k0")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_intrinsics_of_other_architectures_are_not_listed(row: Arch) -> None:
    missing = [i for i in INTRINSICS.values() if i.needs and not getattr(row, i.needs)]
    for intrinsic in missing:
        assert unlisted(declaration(intrinsic), row) == [intrinsic.name]


def test_needs_are_fields_of_the_rows() -> None:
    assert all(isinstance(getattr(H100, i.needs), bool) for i in INTRINSICS.values() if i.needs)


@pytest.mark.parametrize("name", DEADLY)
def test_what_is_deadly_is_not_listed(name: str) -> None:
    assert unlisted(DEADLY[name], H100)


@pytest.mark.parametrize(
    "text",
    [
        FINE,
        kernel('call void asm sideeffect "bar.sync 0;", "~{memory}"()'),
        kernel('%a = call i32 asm "mov.b32 $0, $1;", "=&r,0"(i32 %r)'),
        kernel('call void asm sideeffect "@$2 st.b32 [$0], $1; // $$5", "l,r,b"'
               "(i64 %l, i32 %r, i1 true)"),
        kernel("%a = zext i64 %l to i128\n%b = mul i128 %a, %q\n%c = lshr i128 %b, 64\n"
               "%e = trunc i128 %c to i64"),
        "declare void @llvm.dbg.value(metadata, metadata, metadata)",
    ],
)  # fmt: skip
def test_what_is_fine_is_listed(text: str) -> None:
    assert unlisted(text, H100) == []


@pytest.mark.parametrize(
    "text",
    [
        "declare float @llvm.nvvm.no.such(float)",
        "declare float @llvm.pow.f32(float, float)",
        "declare <2 x float> @llvm.exp.v2f32(<2 x float>)",
        "%a = atomicrmw xchg ptr %p, i128 %q monotonic",
        "%a = fpext double %d to fp128",
        "%a = udiv i96 %q, 3",
    ],
)
def test_what_is_not_known_is_not_listed(text: str) -> None:
    assert len(unlisted(text, H100)) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # unclosed pipes
def test_an_exception_of_a_signal_handler_leaves_no_answer_for_the_next_request() -> None:
    """At any point of a request: the next one, of another text, gets its own answer."""
    other = FINE.replace("@k(", "@other(")
    emit_ptx_isolated(FINE, H100.target, "k")
    points = count_points(lambda: emit_ptx_isolated(FINE, H100.target, "k"))
    assert points > 20
    for nth in range(0, points, 3):
        is_stopped_at(nth, lambda: emit_ptx_isolated(FINE, H100.target, "k"))
        assert ".entry other(" in emit_ptx_isolated(other, H100.target, "other"), nth
