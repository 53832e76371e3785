"""The loop over programs that are batched into GEMMs: the groups, and the order in which they run.

Programs with adjacent tiles of the result share rows of A and columns of B. A window is a sequence
of consecutive programs whose tiles are in the order of three loops, whatever the kernel and the
grid compute them from:

    for each band of tiles:                     bands: a row of tiles each, the tutorials' groups,
        for each column of tiles:               or a column of all tiles
            for each row of tiles of the band

    for each window:
        query the operands of programs, one after the other, until one is out of order
        for each group of columns of tiles:
            for each group of rows of tiles:
                run their programs, row by row; the first one computes the matmul for all

So a group is wide as well as tall: its rows of A and columns of B are read from memory once, and
stay in the L2 cache during the matmul.

A queried program stores the addresses of A and B, their strides and lengths (`gemm_groups.py`). The
next one is in order if its addresses are those of the last one, of the first one in the column, or
of the first one in the band, plus one tile of rows, one of columns, or the band's rows.
"""

from __future__ import annotations

from tilewright.backends.cpu.lower.cpu_lowering import GemmGroup

_MOST_PROGRAMS = 1 << 13
"""Programs of a window, which ends before signals are handled."""

_ENOUGH_ROWS = 1 << 11
"""Rows of a window for which cached copies of B take little of the time."""

_LONG_DEPTH = 1 << 10
"""Bytes of K that are multiplied in one pass; if there are more, or on vectors, a group has all
possible columns, else half of them: see `kernels/matmul_plan.py`."""

_PLACE = """
%moves.right = xor i1 %is.down, true
%moves.under = and i1 %moves.right, %under.4
%begins.column = or i1 %moves.right, %is.first
%begins.band = or i1 %moves.under, %is.first
%i.now = select i1 %is.down, i64 %i.next, i64 0
%j.side = select i1 %moves.under, i64 0, i64 %j.next
%j.now = select i1 %is.down, i64 %j, i64 %j.side
%s.now = select i1 %moves.under, i64 %s.next, i64 %s
%r.now = select i1 %is.down, i64 %r, i64 %height
%c.now = select i1 %moves.under, i64 %width, i64 %c
%column.now = select i1 %begins.column, <8 x i64> %there, <8 x i64> %column
%first.now = select i1 %begins.band, <8 x i64> %there, <8 x i64> %first
"""
"""Position of the program."""

_COMPLETE = """
%i.done = add i64 %i.now, 1
%j.done = add i64 %j.now, 1
%s.done = add i64 %s.now, 1
%no.r.now = icmp eq i64 %r.now, 0
%no.c.now = icmp eq i64 %c.now, 0
%height.now = select i1 %no.r.now, i64 %i.done, i64 %r.now
%width.now = select i1 %no.c.now, i64 %j.done, i64 %c.now
%ends.column = icmp eq i64 %i.done, %height.now
%ends.band = icmp eq i64 %j.done, %width.now
%in.first.column = icmp eq i64 %j.now, 0
%in.first.band = icmp eq i64 %s.now, 0
%rows.end = select i1 %in.first.column, i64 %rows, i64 %rows.last
%columns.end = select i1 %in.first.band, i64 %columns, i64 %columns.last
%same.rows = icmp eq i64 %rows, %rows.end
%same.columns = icmp eq i64 %columns, %columns.end
%above.end = xor i1 %ends.column, true
%before.end = xor i1 %ends.band, true
%rows.right = or i1 %same.rows, %above.end
%columns.right = or i1 %same.columns, %before.end
%extents.right = and i1 %rows.right, %columns.right
%fits = and i1 %belongs, %extents.right
%at.end = and i1 %ends.column, %ends.band
%completes = and i1 %at.end, %fits
%band.known = select i1 %completes, i64 %height.now, i64 %band.found
%across.known = select i1 %completes, i64 %width.now, i64 %across.found
%bands.known = select i1 %completes, i64 %s.done, i64 %bands.found
%rows.known = select i1 %completes, i64 %rows, i64 %rows.found
%columns.known = select i1 %completes, i64 %columns, i64 %columns.found
"""
"""Whether the columns or bands are complete with it; its rows must be those of the first column,
its columns those of the first band."""

_FOUND = """
br i1 %fits, label %further, label %found
further:
%n.next = add i64 %n, 1
%asks.on = icmp ult i64 %n.next, %limit
br i1 %asks.on, label %ask, label %found
found:
%band = phi i64 [ 1, %begin.group ], [ %band.found, %ask ], [ %band.known, %further ]
%across = phi i64 [ 1, %begin.group ], [ %across.found, %ask ], [ %across.known, %further ]
%bands = phi i64 [ 1, %begin.group ], [ %bands.found, %ask ], [ %bands.known, %further ]
%end.rows = phi i64 [ 0, %begin.group ], [ %rows.found, %ask ], [ %rows.known, %further ]
%end.columns = phi i64 [ 0, %begin.group ], [ %columns.found, %ask ], [ %columns.known, %further ]
%in.band = mul i64 %band, %across
%window = mul i64 %in.band, %bands
%depth = load i64, ptr %depth.at
store i64 0, ptr %asked.at
br label %columns.of.groups
"""
"""Extent of the window, %window programs: %band rows of tiles, %across columns, %bands times; the
sizes of the last row and column of tiles. A single program is not queried: 0 rows and columns stand
for its own."""

_STEPS_OF_A_WINDOW = (_PLACE, _COMPLETE, _FOUND)


def loop_of_windows(group: GemmGroup, call: str, at_end: list[str]) -> list[str]:
    """The loop over the programs %begin ... %end, which exits after a window if *poll is set.

    call: of the program %pid0, %pid1, %pid2; at_end: lines after the loop
    """
    asked = _at("%ask.id", "asked", call)
    run = _at("%run.id", "run", call)
    begin = f"""
%any = icmp slt i64 %begin, %end
br i1 %any, label %begin.group, label %done
begin.group:
%id = phi i64 [ %begin, %entry ], [ %next, %found.end ]
%range.left = sub i64 %end, %id
%limit = call i64 @llvm.umin.i64(i64 %range.left, i64 {_MOST_PROGRAMS})
store i64 1, ptr %asked.at
%is.alone = icmp eq i64 %limit, 1
br i1 %is.alone, label %found, label %ask
"""
    end = """
found.end:
%next = add i64 %id, %window
%more = icmp slt i64 %next, %end
; monotonic: nothing else is read on account of the flag
%polled = load atomic i32, ptr %poll monotonic, align 4
%runs = icmp eq i32 %polled, 0
%goes.on = and i1 %more, %runs
br i1 %goes.on, label %begin.group, label %done
done:
%reached = phi i64 [ %begin, %entry ], [ %next, %found.end ]
"""
    window = (_asked(group, asked), _in_order(group), *_STEPS_OF_A_WINDOW)
    parts = (begin, *window, _groups_of_window(group), _programs_of_group(group, run), end)
    lines = [line for part in parts for line in part.strip().split("\n")]
    return [*lines, *at_end, "ret i64 %reached", "}"]


def _at(number: str, name: str, call: str) -> str:
    """The call of the program with a number."""
    named = call
    for axis, letter in enumerate("xyz"):
        named = named.replace(f"i32 %pid{axis},", f"i32 %{name}.{letter},")
    return f"""
%{name}.x64 = urem i64 {number}, %wide.0
%{name}.row = udiv i64 {number}, %wide.0
%{name}.y64 = urem i64 %{name}.row, %wide.1
%{name}.z64 = udiv i64 %{name}.row, %wide.1
%{name}.x = trunc i64 %{name}.x64 to i32
%{name}.y = trunc i64 %{name}.y64 to i32
%{name}.z = trunc i64 %{name}.z64 to i32
{named}""".strip()


def _asked(group: GemmGroup, asked: str) -> str:
    """Query the next program, and compare it with all before.

    i, j, s: the position of the program before in its column, band and window; r, c: how many rows
    and columns of tiles a band has, 0 while unknown
    """
    return f"""
ask:
%n = phi i64 [ 0, %begin.group ], [ %n.next, %further ]
%i = phi i64 [ -1, %begin.group ], [ %i.now, %further ]
%j = phi i64 [ 0, %begin.group ], [ %j.now, %further ]
%s = phi i64 [ 0, %begin.group ], [ %s.now, %further ]
%r = phi i64 [ 0, %begin.group ], [ %r.now, %further ]
%c = phi i64 [ 0, %begin.group ], [ %c.now, %further ]
%own = phi <8 x i64> [ zeroinitializer, %begin.group ], [ %there, %further ]
%column = phi <8 x i64> [ zeroinitializer, %begin.group ], [ %column.now, %further ]
%first = phi <8 x i64> [ zeroinitializer, %begin.group ], [ %first.now, %further ]
%rows.before = phi i64 [ {group.rows}, %begin.group ], [ %rows, %further ]
%columns.before = phi i64 [ 0, %begin.group ], [ %columns, %further ]
%rows.last = phi i64 [ 0, %begin.group ], [ %rows.end, %further ]
%columns.last = phi i64 [ 0, %begin.group ], [ %columns.end, %further ]
%band.found = phi i64 [ 1, %begin.group ], [ %band.known, %further ]
%across.found = phi i64 [ 1, %begin.group ], [ %across.known, %further ]
%bands.found = phi i64 [ 1, %begin.group ], [ %bands.known, %further ]
%rows.found = phi i64 [ 0, %begin.group ], [ %rows.known, %further ]
%columns.found = phi i64 [ 0, %begin.group ], [ %columns.known, %further ]
%ask.id = add i64 %id, %n
{asked}
%rows = load i64, ptr %rows.at
%there = load <8 x i64>, ptr %a.at, align 8
%a_row = extractelement <8 x i64> %there, i64 1
%b_row = extractelement <8 x i64> %there, i64 3
%columns = extractelement <8 x i64> %there, i64 5
%down = mul i64 {group.a_row_bytes or "%a_row"}, {group.rows}
%right = mul i64 {group.b_column_bytes or "%b_row"}, {group.columns}
"""


def _in_order(group: GemmGroup) -> str:
    """Whether a program is the next one (%is.one): %is.down in its column, %under.4 in the next
    band, or in the next column."""
    tall = -(-_ENOUGH_ROWS // group.rows)
    return f"""
%i.next = add i64 %i, 1
%j.next = add i64 %j, 1
%s.next = add i64 %s, 1
%no.r = icmp eq i64 %r, 0
%no.c = icmp eq i64 %c, 0
%height = select i1 %no.r, i64 %i.next, i64 %r
%width = select i1 %no.c, i64 %j.next, i64 %c
%down.band = mul i64 %down, %height
%down.all = insertelement <8 x i64> zeroinitializer, i64 %down, i64 0
%right.all = insertelement <8 x i64> zeroinitializer, i64 %right, i64 2
%band.all = insertelement <8 x i64> zeroinitializer, i64 %down.band, i64 0
%below = add <8 x i64> %own, %down.all
%beside = add <8 x i64> %column, %right.all
%under = add <8 x i64> %first, %band.all
%below.not = icmp ne <8 x i64> %there, %below
%beside.not = icmp ne <8 x i64> %there, %beside
%under.not = icmp ne <8 x i64> %there, %under
%below.bits = bitcast <8 x i1> %below.not to i8
%beside.bits = bitcast <8 x i1> %beside.not to i8
%under.bits = bitcast <8 x i1> %under.not to i8
%beside.others = and i8 %beside.bits, -33
%under.others = and i8 %under.bits, -33
%below.is = icmp eq i8 %below.bits, 0
%beside.is = icmp eq i8 %beside.others, 0
%under.is = icmp eq i8 %under.others, 0
%rows.whole = icmp eq i64 %rows.before, {group.rows}
%columns.whole = icmp eq i64 %columns.before, {group.columns}
%at.bottom = icmp eq i64 %i.next, %height
%at.right = icmp eq i64 %j.next, %width
%above.bottom = icmp ult i64 %i.next, %r
%goes.down = or i1 %no.r, %above.bottom
%left.of.end = icmp ult i64 %j.next, %c
%is.low = icmp ult i64 %height, {tall}
%is.narrow = icmp ult i64 %j.next, {group.most_columns}
%may.widen = or i1 %is.low, %is.narrow
%widens = and i1 %no.c, %may.widen
%goes.right = or i1 %left.of.end, %widens
%rows.so.far = mul i64 %height, %s.next
%goes.under = icmp ult i64 %rows.so.far, {tall}
%down.1 = and i1 %below.is, %goes.down
%down.2 = and i1 %down.1, %rows.whole
%right.1 = and i1 %beside.is, %at.bottom
%right.2 = and i1 %right.1, %goes.right
%right.3 = and i1 %right.2, %columns.whole
%under.1 = and i1 %under.is, %at.bottom
%under.2 = and i1 %under.1, %at.right
%under.3 = and i1 %under.2, %goes.under
%under.4 = and i1 %under.3, %rows.whole
%is.first = icmp eq i64 %n, 0
%is.down = or i1 %down.2, %is.first
%is.side = or i1 %right.3, %under.4
%is.one = or i1 %is.down, %is.side
%some.rows = icmp ne i64 %rows, 0
%belongs = and i1 %is.one, %some.rows
"""


def _groups_of_window(group: GemmGroup) -> str:
    """The rows and columns of each group."""
    long = _LONG_DEPTH // group.operand_bytes if group.by_tiles else 0
    half = max(1, group.most_columns // 2)
    return f"""
columns.of.groups:
%all.rows = mul i64 %band, %bands
%past.band = sub i64 %in.band, %band
%long = icmp ugt i64 %depth, {long}
%wide = select i1 %long, i64 {group.most_columns}, i64 {half}
br label %group.column
group.column:
%left = phi i64 [ 0, %columns.of.groups ], [ %left.next, %group.column.end ]
%columns.left = sub i64 %across, %left
%w = call i64 @llvm.umin.i64(i64 %columns.left, i64 %wide)
%left.next = add i64 %left, %w
%right.most = icmp eq i64 %left.next, %across
%last.columns = select i1 %right.most, i64 %end.columns, i64 {group.columns}
%w.last = sub i64 %w, 1
%w.whole = mul i64 %w.last, {group.columns}
%group.columns = add i64 %w.whole, %last.columns
store i64 %group.columns, ptr %all_columns.at
br label %group.row
group.row:
%top = phi i64 [ 0, %group.column ], [ %top.next, %group.row.end ]
%rows.left = sub i64 %all.rows, %top
%h = call i64 @llvm.umin.i64(i64 %rows.left, i64 {group.most_rows})
%top.next = add i64 %top, %h
%lowest = icmp eq i64 %top.next, %all.rows
%last.rows = select i1 %lowest, i64 %end.rows, i64 {group.rows}
%h.last = sub i64 %h, 1
%h.whole = mul i64 %h.last, {group.rows}
%group.rows = add i64 %h.whole, %last.rows
store i64 %group.rows, ptr %all_rows.at
%keeps = xor i1 %lowest, true
%keep = zext i1 %keeps to i64
store i64 %keep, ptr %keep.at
store i64 0, ptr %place.at
store i64 0, ptr %wrong.at
br label %run
"""


def _programs_of_group(group: GemmGroup, run: str) -> str:
    """Run the programs of a group."""
    return f"""
run:
%gi = phi i64 [ 0, %group.row ], [ %gi.next, %run ]
%gj = phi i64 [ 0, %group.row ], [ %gj.next, %run ]
%row = add i64 %top, %gi
%row.band = udiv i64 %row, %band
%past.bands = mul i64 %row.band, %past.band
%tile.column = add i64 %left, %gj
%past.columns = mul i64 %tile.column, %band
%in.window = add i64 %past.columns, %row
%number = add i64 %in.window, %past.bands
%run.id = add i64 %id, %number
%acc.down = mul i64 %gi, {group.down_bytes}
%acc.across = mul i64 %gj, {group.across_bytes}
%acc.there = add i64 %acc.down, %acc.across
store i64 %acc.there, ptr %acc.at
{run}
store i64 1, ptr %place.at
%gj.after = add i64 %gj, 1
%gj.ends = icmp eq i64 %gj.after, %w
%gj.next = select i1 %gj.ends, i64 0, i64 %gj.after
%gi.more = zext i1 %gj.ends to i64
%gi.next = add i64 %gi, %gi.more
%group.ends = icmp eq i64 %gi.next, %h
br i1 %group.ends, label %group.row.end, label %run
group.row.end:
br i1 %lowest, label %group.column.end, label %group.row
group.column.end:
br i1 %right.most, label %found.end, label %group.column
"""
