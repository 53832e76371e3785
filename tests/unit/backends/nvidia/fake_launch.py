"""Stands in for the two functions of the CUDA driver that a launch calls: it writes down what it
got, and answers as told."""

import ctypes
import functools
import struct
from dataclasses import dataclass, field

from tilewright.backends.nvidia.driver.launch_entry import (
    Entry,
    Handlers,
    LaunchLog,
    LaunchShape,
    PageTable,
    make_entry,
)
from tilewright.llvm import LoadedObject, compile_ir, host_target, load_object

MAX_PARAMETERS = 16
FIRST_DEVICE_ADDRESS = 1 << 44
FOREIGN_ADDRESS = 1 << 45
FUNCTION = 0xF00D
DEVICE = 3
INVALID_VALUE = 1

_IR = f"""
@config = global [56 x i8] zeroinitializer
@attributes = global [288 x i8] zeroinitializer
@function = global ptr null
@slots = global [{MAX_PARAMETERS} x i64] zeroinitializer
@expected = global i64 0
@calls = global i64 0
@queries = global i64 0
@status = global i32 0
@once = global i32 0
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define i32 @fake_launch(ptr %config, ptr %function, ptr %params, ptr %extra) {{
  %calls = load i64, ptr @calls
  %called = add i64 %calls, 1
  store i64 %called, ptr @calls
  call void @llvm.memcpy.p0.p0.i64(ptr @config, ptr %config, i64 56, i1 false)
  %list_at = getelementptr i8, ptr %config, i64 40
  %list = load ptr, ptr %list_at
  %count_at = getelementptr i8, ptr %config, i64 48
  %count = load i32, ptr %count_at
  %count64 = zext i32 %count to i64
  %bytes = mul i64 %count64, 72
  call void @llvm.memcpy.p0.p0.i64(ptr @attributes, ptr %list, i64 %bytes, i1 false)
  store ptr %function, ptr @function
  %expected = load i64, ptr @expected
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %body ]
  %more = icmp ult i64 %i, %expected
  br i1 %more, label %body, label %out
body:
  %param_at = getelementptr ptr, ptr %params, i64 %i
  %param = load ptr, ptr %param_at
  %value = load i64, ptr %param
  %slot = getelementptr i64, ptr @slots, i64 %i
  store i64 %value, ptr %slot
  %next = add i64 %i, 1
  br label %loop
out:
  %once = load i32, ptr @once
  store i32 0, ptr @once
  %first = icmp ne i32 %once, 0
  %status = load i32, ptr @status
  %answer = select i1 %first, i32 %once, i32 %status
  ret i32 %answer
}}

define i32 @fake_attribute(ptr %out, i32 %attribute, i64 %address) {{
  %queries = load i64, ptr @queries
  %queried = add i64 %queries, 1
  store i64 %queried, ptr @queries
  %ordinal = icmp eq i32 %attribute, 9
  %here = icmp uge i64 %address, {FIRST_DEVICE_ADDRESS}
  %known = and i1 %ordinal, %here
  br i1 %known, label %found, label %invalid
found:
  %foreign = icmp uge i64 %address, {FOREIGN_ADDRESS}
  %device = select i1 %foreign, i32 {DEVICE + 1}, i32 {DEVICE}
  store i32 %device, ptr %out
  ret i32 0
invalid:
  ret i32 {INVALID_VALUE}
}}
"""
_SYMBOLS = (
    "fake_launch", "fake_attribute", "config", "attributes", "function", "slots", "expected",
    "calls", "queries", "status", "once",
)  # fmt: skip


@functools.cache
def _code() -> LoadedObject:
    return load_object(compile_ir(_IR, host_target(0), 0).obj, _SYMBOLS)


@dataclass(frozen=True)
class Launched:
    """What the driver got."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    stream: int
    attributes: list[bytes]
    function: int
    slots: list[int]


class FakeDriver:
    """One at a time: its state is global."""

    def __init__(self) -> None:
        self._code = _code()
        self.launch = self._code["fake_launch"]
        self.pointer_attribute = self._code["fake_attribute"]
        for name in ("calls", "queries", "status", "once"):
            self._set(name, 0)

    def _set(self, name: str, value: int) -> None:
        kind = ctypes.c_int32 if name in ("status", "once") else ctypes.c_int64
        kind.from_address(self._code[name]).value = value

    def _bytes(self, name: str, size: int) -> bytes:
        return ctypes.string_at(self._code[name], size)

    @property
    def calls(self) -> int:
        return struct.unpack("<q", self._bytes("calls", 8))[0]

    @property
    def queries(self) -> int:
        """How often it was asked about an address."""
        return struct.unpack("<q", self._bytes("queries", 8))[0]

    def expect(self, parameters: int) -> None:
        """How many slots to write down."""
        assert parameters <= MAX_PARAMETERS
        self._set("expected", parameters)

    def answer(self, status: int) -> None:
        """Every launch from now on."""
        self._set("status", status)

    def answer_once(self, status: int) -> None:
        """The next launch only."""
        self._set("once", status)

    def launched(self) -> Launched:
        """The latest launch."""
        words = struct.unpack("<7I4xQQI4x", self._bytes("config", 56))
        count = words[9]
        attributes = self._bytes("attributes", 72 * count)
        expected = struct.unpack("<q", self._bytes("expected", 8))[0]
        return Launched(
            words[0:3],
            words[3:6],
            words[6],
            words[7],
            [attributes[i * 72 : i * 72 + 72] for i in range(count)],
            struct.unpack("<Q", self._bytes("function", 8))[0],
            list(struct.unpack(f"<{expected}Q", self._bytes("slots", 8 * expected))),
        )


class Refused(Exception):
    """Raised by the recording handlers."""


@dataclass
class RecordingHandlers:
    """Handlers that write down their calls and raise Refused, or answer as told."""

    converted: dict[int, int] = field(default_factory=dict[int, int])
    allowed: set[int] = field(default_factory=set[int])
    retries: int = 0
    seen: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])

    def convert(self, index: int, value: object) -> int:
        self.seen.append(("convert", index, value))
        if index not in self.converted:
            raise Refused(f"argument {index}")
        return self.converted[index]

    def refuse(self, index: int, address: int) -> None:
        self.seen.append(("refuse", index, address))
        if address not in self.allowed:
            raise Refused(f"address {address:#x}")

    def regrid(self, x: object, y: object, z: object) -> None:
        self.seen.append(("regrid", x, y, z))
        raise Refused("grid")

    def failed(self, status: int, attempt: int, x: int, y: int, z: int, stream: int) -> None:
        self.seen.append(("failed", status, attempt, x, y, z, stream))
        if attempt >= self.retries:
            raise Refused(f"status {status}")

    def after(self, x: int, y: int, z: int, stream: int) -> None:
        self.seen.append(("after", x, y, z, stream))

    def handlers(self, blocking: bool = False) -> Handlers:
        after = self.after if blocking else None
        return Handlers(self.convert, self.refuse, self.regrid, self.failed, after)


def entry_for(
    driver: FakeDriver,
    kinds: list[str],
    recording: RecordingHandlers | None = None,
    shape: LaunchShape | None = None,
    *,
    blocking: bool = False,
    pages: PageTable | None = None,
    log: LaunchLog | None = None,
) -> Entry:
    """An entry that launches through the fake driver."""
    driver.expect(sum(kind != "constexpr" for kind in kinds))
    return make_entry(
        "kernel",
        kinds,
        shape or LaunchShape(128),
        (recording or RecordingHandlers()).handlers(blocking),
        function=FUNCTION,
        device=DEVICE,
        launch=driver.launch,
        pointer_attribute=driver.pointer_attribute,
        pages=pages or PageTable(),
        log=log or LaunchLog(),
    )
