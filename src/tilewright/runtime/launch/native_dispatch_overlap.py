"""How the machine code of `dispatch_ir` tells arguments that may overlap, as text it completes.

A line has a list of pairs of arguments that must not overlap, PAIR for each. What may overlap goes
to Python, which looks closely, and warns once (`overlap`); from then on nothing is compared.

    addresses, integers and grid are those of the latest launch that was fine     fine
    two addresses differ by at least the extent of the lower array                fine
    they are equal, and all sums of the pair are 0 in this launch                 fine: one array
    else                                                                          for Python

A launch like the latest one touches the same memory, whatever the arrays say of their lengths. The
extent of a NumPy array is read from its header, that of a tensor asked for by `numel()`, which is
its extent if it is contiguous; the first launch of a line was looked at in Python.
"""

__all__ = ["OVERLAP", "PAIR"]

PAIR = {"first": 0, "second": 8, "bytes": 16, "sums": 24, "words": 32, "": 40}
"""Offsets of: positions of the arguments; bytes of an element of either; how many sums must be 0
for one array, and the address of their words: for each the number of its terms, for each term a
factor, the number of its arguments, and their positions. The last one is the size."""

OVERLAP = """
; bytes from the first element of an array to the end of its last one; -1: not known
define internal i64 @extent(ptr %shared, ptr %object, i64 %bytes) nounwind {
  %self = alloca ptr
  store ptr %object, ptr %self
  %type = call ptr @type_of(ptr %object)
  %ndarray = get ptr %shared SHARED.ndarray
  %is_ndarray = icmp eq ptr %type, %ndarray
  br i1 %is_ndarray, label %numpy, label %tensor
numpy:
  %rank_at = getelementptr i8, ptr %object, i64 RANK_OFFSET
  %rank32 = load i32, ptr %rank_at
  %rank = zext i32 %rank32 to i64
  %shape_at = getelementptr i8, ptr %object, i64 SHAPE_OFFSET
  %shape = load ptr, ptr %shape_at
  %strides_at = getelementptr i8, ptr %object, i64 STRIDES_OFFSET
  %strides = load ptr, ptr %strides_at
  br label %test
test:
  %i = phi i64 [ 0, %numpy ], [ %next, %sized ]
  %total = phi i64 [ %bytes, %numpy ], [ %longer, %sized ]
  %more = icmp ult i64 %i, %rank
  br i1 %more, label %dim, label %known
dim:
  %size_at = getelementptr i64, ptr %shape, i64 %i
  %size = load i64, ptr %size_at
  %stride_at = getelementptr i64, ptr %strides, i64 %i
  %stride = load i64, ptr %stride_at
  %next = add i64 %i, 1
  %empty = icmp eq i64 %size, 0
  br i1 %empty, label %none, label %counted
counted:
  %backwards = icmp slt i64 %stride, 0
  br i1 %backwards, label %unknown, label %sized
sized:
  %steps = sub i64 %size, 1
  %reach = mul i64 %steps, %stride
  %longer = add i64 %total, %reach
  br label %test
known:
  ret i64 %total
none:
  ret i64 0
unknown:
  ret i64 -1
tensor:
  %name = get ptr %shared SHARED.numel
  %count_object = call ptr @PyObject_VectorcallMethod(ptr %name, ptr %self, i64 1, ptr null)
  %failed = icmp eq ptr %count_object, null
  br i1 %failed, label %error, label %answer
answer:
  %count = call i64 @PyLong_AsLongLong(ptr %count_object)
  call void @Py_DecRef(ptr %count_object)
  %length = mul i64 %count, %bytes
  ret i64 %length
error:
  call void @PyErr_Clear()
  ret i64 -1
}

; whether every sum of a pair is 0 for these arguments
define internal i1 @all_zero(i64 %sums, ptr %words, ptr %raws) nounwind {
  br label %next_sum
next_sum:
  %s = phi i64 [ 0, %0 ], [ %s_next, %zero ]
  %at = phi ptr [ %words, %0 ], [ %here, %zero ]
  %more = icmp ult i64 %s, %sums
  br i1 %more, label %sum, label %yes
sum:
  %s_next = add i64 %s, 1
  %terms = load i64, ptr %at
  %first_term = getelementptr i64, ptr %at, i64 1
  br label %next_term
next_term:
  %t = phi i64 [ 0, %sum ], [ %t_next, %term_done ]
  %total = phi i64 [ 0, %sum ], [ %grown, %term_done ]
  %here = phi ptr [ %first_term, %sum ], [ %after, %term_done ]
  %more_terms = icmp ult i64 %t, %terms
  br i1 %more_terms, label %term, label %summed
term:
  %t_next = add i64 %t, 1
  %factor = load i64, ptr %here
  %count_at = getelementptr i64, ptr %here, i64 1
  %count = load i64, ptr %count_at
  %places = getelementptr i64, ptr %here, i64 2
  %after = getelementptr i64, ptr %places, i64 %count
  br label %next_place
next_place:
  %p = phi i64 [ 0, %term ], [ %p_next, %place ]
  %product = phi i64 [ %factor, %term ], [ %multiplied, %place ]
  %more_places = icmp ult i64 %p, %count
  br i1 %more_places, label %place, label %term_done
place:
  %p_next = add i64 %p, 1
  %place_at = getelementptr i64, ptr %places, i64 %p
  %position = load i64, ptr %place_at
  %number_at = getelementptr i64, ptr %raws, i64 %position
  %number = load i64, ptr %number_at
  %multiplied = mul i64 %product, %number
  br label %next_place
term_done:
  %grown = add i64 %total, %product
  br label %next_term
summed:
  %is_zero = icmp eq i64 %total, 0
  br i1 %is_zero, label %zero, label %no
zero:
  br label %next_sum
yes:
  ret i1 true
no:
  ret i1 false
}

; whether arguments may overlap that must not; raws: numbers and addresses; grid: three integers
define internal i1 @may_overlap(ptr %record, ptr %line, ptr %args, i64 %total, ptr %raws, ptr %grid)
    nounwind {
  %watching = get ptr %record RECORD.watching
  %on = load i64, ptr %watching
  %off = icmp eq i64 %on, 0
  br i1 %off, label %no, label %begin
begin:
  %fine_words = get ptr %line LINE.fine
  br label %sizes
sizes:
  %i = phi i64 [ 0, %begin ], [ %i_next, %sizes ]
  %differ = phi i64 [ 0, %begin ], [ %differ_more, %sizes ]
  %extent_at = getelementptr ptr, ptr %grid, i64 %i
  %extent_object = load ptr, ptr %extent_at
  %size = call i64 @PyLong_AsLongLong(ptr %extent_object)
  %size_at = getelementptr i64, ptr %fine_words, i64 %i
  %size_before = load i64, ptr %size_at
  %size_differs = xor i64 %size, %size_before
  %differ_more = or i64 %differ, %size_differs
  store i64 %size, ptr %size_at
  %i_next = add i64 %i, 1
  %more_sizes = icmp ult i64 %i_next, 3
  br i1 %more_sizes, label %sizes, label %numbers
numbers:
  %fine_raws = getelementptr i64, ptr %fine_words, i64 3
  br label %number
number:
  %n = phi i64 [ 0, %numbers ], [ %n_next, %compare ]
  %changed = phi i64 [ %differ_more, %numbers ], [ %changed_more, %compare ]
  %more_numbers = icmp ult i64 %n, %total
  br i1 %more_numbers, label %compare, label %compared
compare:
  %raw_at = getelementptr i64, ptr %raws, i64 %n
  %raw = load i64, ptr %raw_at
  %raw_before_at = getelementptr i64, ptr %fine_raws, i64 %n
  %raw_before = load i64, ptr %raw_before_at
  %raw_differs = xor i64 %raw, %raw_before
  %changed_more = or i64 %changed, %raw_differs
  store i64 %raw, ptr %raw_before_at
  %n_next = add i64 %n, 1
  br label %number
compared:
  %is_known = icmp eq i64 %changed, 0
  br i1 %is_known, label %no, label %start
start:
  %shared = get ptr %record RECORD.shared
  %count = get i64 %line LINE.pairs
  %list = get ptr %line LINE.pair_list
  br label %test
test:
  %k = phi i64 [ 0, %start ], [ %k_next, %fine ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %pair, label %no
pair:
  %k_next = add i64 %k, 1
  %offset = mul i64 %k, PAIR_SIZE
  %pair_at = getelementptr i8, ptr %list, i64 %offset
  %first = get i64 %pair_at PAIR.first
  %second = get i64 %pair_at PAIR.second
  %first_at = getelementptr i64, ptr %raws, i64 %first
  %a = load i64, ptr %first_at
  %second_at = getelementptr i64, ptr %raws, i64 %second
  %b = load i64, ptr %second_at
  %same = icmp eq i64 %a, %b
  br i1 %same, label %equal, label %different
equal:
  %sums = get i64 %pair_at PAIR.sums
  %never = icmp eq i64 %sums, 0
  br i1 %never, label %yes, label %sum
sum:
  %words = get ptr %pair_at PAIR.words
  %one_array = call i1 @all_zero(i64 %sums, ptr %words, ptr %raws)
  br i1 %one_array, label %fine, label %yes
different:
  %bytes = get i64 %pair_at PAIR.bytes
  %first_lower = icmp ult i64 %a, %b
  %low = select i1 %first_lower, i64 %first, i64 %second
  %high = select i1 %first_lower, i64 %second, i64 %first
  %forwards = sub i64 %b, %a
  %backwards = sub i64 %a, %b
  %distance = select i1 %first_lower, i64 %forwards, i64 %backwards
  %low_place = add i64 %low, 1
  %low_at = getelementptr ptr, ptr %args, i64 %low_place
  %low_array = load ptr, ptr %low_at
  %extent = call i64 @extent(ptr %shared, ptr %low_array, i64 %bytes)
  %meets = icmp ult i64 %distance, %extent
  br i1 %meets, label %yes, label %look_back
look_back:
  %high_place = add i64 %high, 1
  %high_at = getelementptr ptr, ptr %args, i64 %high_place
  %high_array = load ptr, ptr %high_at
  %high_type = call ptr @type_of(ptr %high_array)
  %ndarray = get ptr %shared SHARED.ndarray
  %is_ndarray = icmp eq ptr %high_type, %ndarray
  br i1 %is_ndarray, label %turned, label %fine
turned:
  %high_extent = call i64 @extent(ptr %shared, ptr %high_array, i64 %bytes)
  %is_turned = icmp eq i64 %high_extent, -1
  br i1 %is_turned, label %yes, label %fine
fine:
  br label %test
yes:
  store i64 0, ptr %fine_words
  ret i1 true
no:
  ret i1 false
}
"""
