"""AMX on CPUs that lack it: functions in LLVM IR that do what its instructions do.

    text = without_amx(text)      of a module whose kernels use tiles; one thread may run them

Registers are 8 x 1 KiB of memory. ldtilecfg fills them with numbers that no product has, and what
reads them unloaded, or without a configuration, shows in the result.
"""

import re

_PRODUCTS = {
    # name: elements of 4 bytes, type of an element and of a sum, how a and b are extended
    "tdpbf16ps": (2, "bfloat", "float", "fpext", "fpext"),
    "tdpbssd": (4, "i8", "i32", "sext", "sext"),
    "tdpbusd": (4, "i8", "i32", "zext", "sext"),
}

_REGISTERS = """
@amx.registers = internal global [8 x [16 x [16 x i32]]] zeroinitializer, align 64
@amx.configured = internal global i1 false
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)
declare void @llvm.trap()
define internal ptr @amx.row(i8 %tile, i64 %row) {
  %on = load i1, ptr @amx.configured
  br i1 %on, label %is, label %none
none:
  call void @llvm.trap()
  unreachable
is:
  %t = zext i8 %tile to i64
  %p = getelementptr [16 x [16 x i32]], ptr @amx.registers, i64 %t, i64 %row
  ret ptr %p
}
define internal void @amx.ldtilecfg(ptr %config) {
  %palette = load i8, ptr %config
  %on = icmp eq i8 %palette, 1
  store i1 %on, ptr @amx.configured
  call void @llvm.memset.p0.i64(ptr @amx.registers, i8 127, i64 8192, i1 false)
  ret void
}
define internal void @amx.tilerelease() {
  store i1 false, ptr @amx.configured
  ret void
}
define internal void @amx.tilezero(i8 %tile) {
  %p = call ptr @amx.row(i8 %tile, i64 0)
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 1024, i1 false)
  ret void
}
"""

_LOOP = """
define internal void @amx.{name}({parameters}) {{
entry:
  br label %step
step:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  {body}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {turns}
  br i1 %more, label %step, label %done
done:
  ret void
}}
"""


def _copy(source: str, target: str) -> str:
    return f"""%memory = mul i64 %i, %stride
  %m = getelementptr i8, ptr %p, i64 %memory
  %r = call ptr @amx.row(i8 %tile, i64 %i)
  %x = load <16 x i32>, ptr {source}, align 1
  store <16 x i32> %x, ptr {target}, align 1"""


def _product(name: str) -> str:
    """Of one row of sums and one group of it: turns are 16 rows x 16 groups."""
    count, element, summed, extend_a, extend_b = _PRODUCTS[name]
    float_ = summed == "float"
    operand, sums, row = f"<{16 * count} x {element}>", f"<16 x {summed}>", f"[{count} x {element}]"
    lines = [
        "%line = lshr i64 %i, 4", "%group = and i64 %i, 15",
        "%c = call ptr @amx.row(i8 %sum, i64 %line)",
        "%a = call ptr @amx.row(i8 %left, i64 %line)",
        "%b = call ptr @amx.row(i8 %right, i64 %group)",
        f"%ag = getelementptr {row}, ptr %a, i64 %group",
        f"%bs = load {operand}, ptr %b", f"%s0 = load {sums}, ptr %c",
    ]  # fmt: skip
    for n in range(count):
        lanes = ", ".join(f"i32 {count * lane + n}" for lane in range(16))
        lines += [
            f"%ap{n} = getelementptr {element}, ptr %ag, i64 {n}",
            f"%an{n} = load {element}, ptr %ap{n}",
            f"%aw{n} = {extend_a} {element} %an{n} to {summed}",
            f"%ai{n} = insertelement {sums} poison, {summed} %aw{n}, i32 0",
            f"%av{n} = shufflevector {sums} %ai{n}, {sums} poison, <16 x i32> zeroinitializer",
            f"%bn{n} = shufflevector {operand} %bs, {operand} poison, <16 x i32> <{lanes}>",
            f"%bw{n} = {extend_b} <16 x {element}> %bn{n} to {sums}",
            f"%p{n} = {'fmul' if float_ else 'mul'} {sums} %av{n}, %bw{n}",
            f"%s{n + 1} = {'fadd' if float_ else 'add'} {sums} %s{n}, %p{n}",
        ]
    return "\n  ".join([*lines, f"store {sums} %s{count}, ptr %c"])


def without_amx(text: str) -> str:
    """The module with functions in place of the instructions."""
    memory = "i8 %tile, ptr %p, i64 %stride"
    functions = [
        _REGISTERS,
        *(
            _LOOP.format(name=name, parameters=memory, body=_copy("%m", "%r"), turns=16)
            for name in ("tileloadd64", "tileloaddt164")
        ),
        _LOOP.format(name="tilestored64", parameters=memory, body=_copy("%r", "%m"), turns=16),
    ]
    functions += [
        _LOOP.format(name=name, parameters="i8 %sum, i8 %left, i8 %right", body=_product(name),
                     turns=256)
        for name in _PRODUCTS
    ]  # fmt: skip
    names = "|".join(
        ["ldtilecfg", "tilerelease", "tilezero", "tile(?:load|store)d(?:t1)?64", *_PRODUCTS]
    )
    text = re.sub(rf"declare void @llvm\.x86\.(?:{names})\(.*\n", "", text)
    return re.sub(rf"@llvm\.x86\.({names})\(", r"@amx.\1(", text) + "\n".join(functions)
