"""Compiling LLVM IR text: passes, targets, artifacts, and text that LLVM refuses."""

import subprocess
import sys

import pytest

from tilewright.llvm import (
    CPU_NAMES,
    LlvmError,
    TargetCpu,
    TargetSpec,
    compile_ir,
    cpu_named,
    cpu_target,
    emit_assembly,
    host_cpu,
    host_target,
    target_machine,
)
from tilewright.llvm.code_generation import optimised

ADD = """
define i64 @add_and_double(i64 %a, i64 %b) {
  %slot = alloca i64
  store i64 %a, ptr %slot
  %x = load i64, ptr %slot
  %sum = add i64 %x, %b
  %double = mul i64 %sum, 2
  ret i64 %double
}
"""

WIDE_ADD = """
define void @wide(ptr %p) ATTRIBUTES {
  %x = load <16 x float>, ptr %p
  %y = fadd <16 x float> %x, %x
  store <16 x float> %y, ptr %p
  ret void
}
"""


@pytest.mark.parametrize("optimise", [False, True])
def test_passes_run_on_request(optimise: bool) -> None:
    assert len(compile_ir(ADD, host_target(), optimise=optimise)) > 100
    assert "add_and_double" in emit_assembly(ADD, host_target(), optimise=optimise)
    assert ("alloca" in str(optimised(ADD, host_target(), optimise))) != optimise


def test_module_gets_the_layout_of_its_target() -> None:
    llir = str(optimised(ADD, host_target()))
    assert f'target triple = "{host_target().triple}"' in llir
    assert "target datalayout" in llir


def test_syntax_error_carries_message_and_text() -> None:
    with pytest.raises(LlvmError, match="expected type") as caught:
        compile_ir("define nonsense @f() {}", host_target())
    assert caught.value.ir == "define nonsense @f() {}"


def test_type_error_of_the_parser() -> None:
    with pytest.raises(LlvmError, match="i64"):
        compile_ir("define i32 @f(i64 %x) { ret i32 %x }", host_target())


def test_verifier_error() -> None:
    unterminated = """
    define i32 @f(i1 %c) {
    entry:
      br i1 %c, label %a, label %b
    a:
      %x = add i32 1, 2
      br label %b
    b:
      ret i32 %x
    }
    """
    with pytest.raises(LlvmError, match="does not dominate"):
        compile_ir(unterminated, host_target())


def test_ptx_for_an_nvidia_target() -> None:
    kernel = """
    declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
    define ptx_kernel void @k(ptr addrspace(1) %p) {
      %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
      %q = getelementptr i32, ptr addrspace(1) %p, i32 %t
      store i32 %t, ptr addrspace(1) %q
      ret void
    }
    """
    ptx = emit_assembly(kernel, TargetSpec("nvptx64-nvidia-cuda", "sm_90a", "+ptx83"))
    assert ".target sm_90a" in ptx
    assert "st.global" in ptx


def test_target_machines_are_shared() -> None:
    assert target_machine(host_target()) is target_machine(host_target())


@pytest.mark.parametrize(("bits", "whole"), [(256, False), (512, True)])
def test_function_attributes_decide_the_register_width(bits: int, whole: bool) -> None:
    skylake = TargetSpec("x86_64-unknown-linux-gnu", "skylake-avx512")
    cpu = TargetCpu("skylake-avx512", "x86_64", "", bits)
    asm = emit_assembly(WIDE_ADD.replace("ATTRIBUTES", cpu.function_attributes), skylake)
    assert ("zmm" in asm) == whole


def test_host_cpu_is_consistent() -> None:
    host = host_cpu()
    assert host.vector_bits in (128, 256, 512)
    assert f'"prefer-vector-width"="{host.vector_bits}"' in host.function_attributes
    has_avx512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= host.enabled
    assert has_avx512 == (host.vector_bits == 512)
    assert not host.is_x86 or "sse2" in host.enabled


SUM = """
define i64 @sum(ptr %p, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %sum = phi i64 [ 0, %entry ], [ %more, %head ]
  %scaled = mul i64 %i, 24
  %at = getelementptr i8, ptr %p, i64 %scaled
  %x = load i64, ptr %at
  %more = add i64 %sum, %x
  %next = add i64 %i, 1
  %goes = icmp slt i64 %next, %n
  br i1 %goes, label %head, label %done
done:
  ret i64 %more
}
"""


def test_code_does_not_depend_on_what_was_compiled_for_other_targets() -> None:
    x86, arm = (cpu_named(name) for name in ("x86-64-v3", "aarch64"))
    assert x86 is not None and arm is not None
    targets = [cpu_target(x86), cpu_target(arm)]
    first = [emit_assembly(SUM, target) for target in targets]
    assert [emit_assembly(SUM, target) for target in reversed(targets)] == first[::-1]
    assert "madd" not in first[1] and "mul" not in first[1], "strength is reduced for ARM"


def test_named_cpus_are_what_they_are_called() -> None:
    assert cpu_named("") is cpu_named(host_cpu().name) is host_cpu()
    assert cpu_named("z80") is None
    for name in CPU_NAMES:
        cpu = cpu_named(name)
        assert cpu is not None and cpu_target(cpu).triple.startswith(cpu.arch)
        assert emit_assembly("define void @f() {\n  ret void\n}", cpu_target(cpu))


def test_code_runs_where_the_processor_has_its_features() -> None:
    host, v3, arm = host_cpu(), cpu_named("x86-64-v3"), cpu_named("aarch64")
    assert host.runs_here and v3 is not None and arm is not None
    on_linux = sys.platform == "linux"
    assert v3.runs_here == (on_linux and host.is_x86 and {"avx2", "fma", "bmi2"} <= host.enabled)
    assert arm.runs_here == (on_linux and host.is_arm64)


def test_importing_tilewright_leaves_llvmlite_alone() -> None:
    script = "import sys, tilewright; sys.exit('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_products_reach_the_code_generator_as_written():
    body = "{ %y = add i64 %x, 0\n ret i64 %y }"
    text = f"define i64 @product(i64 %x) noinline {body}\ndefine i64 @other(i64 %x) {body}"
    cpu = cpu_named("x86-64-v3")
    assert cpu is not None
    product, other = str(optimised(text, cpu_target(cpu))).split("define i64 @other")
    assert "add i64 %x, 0" in product
    assert "add i64" not in other
