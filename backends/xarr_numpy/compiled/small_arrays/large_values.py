"""LLVM IR of arrays that are too large to be held without a node: elements and parts are read and written in theirs.

The rules are those of `xarr.indexing.at_once`.
"""

from __future__ import annotations

from typing import Final

LARGE: Final = """
; The node of an Array that shows a large value on a device of this backend; null else.
define internal ptr @large_node(ptr %self) {
  %node = call ptr @word(ptr %self, i64 $AT_SHOWN)
  %shows = call i1 @is_there(ptr %node)
  unless %shows return null, class:
  %own = call ptr @class_of(ptr %node)
  %leaf = call ptr @state_word(i64 $LEAF)
  %general = call ptr @state_word(i64 $NODE)
  %is.leaf = icmp eq ptr %own, %leaf
  %is.general = icmp eq ptr %own, %general
  %is.node = or i1 %is.leaf, %is.general
  unless %is.node return null, open:
  %value = call ptr @word(ptr %node, i64 $ATNODE_VALUE)
  %device = call ptr @word(ptr %node, i64 $ATNODE_DEVICE)
  %has.value = call i1 @is_there(ptr %value)
  %has.device = call i1 @is_there(ptr %device)
  %has.both = and i1 %has.value, %has.device
  unless %has.both return null, look:
  %is.ndarray = call i1 @is_ndarray(ptr %value)
  %backend = call ptr @word(ptr %device, i64 $ATDEVICE_BACKEND)
  %wanted = call ptr @state_word(i64 $BACKEND)
  %is.ours = call i1 @is_of(ptr %backend, ptr %wanted)
  %known = and i1 %is.ndarray, %is.ours
  unless %known return null, measure:
  %kind = call i64 @kind_of(ptr %value)
  %itemsize = call i64 @bytes_of(i64 %kind)
  %size = call i64 @size(ptr %value)
  %bytes = mul i64 %itemsize, %size
  %is.large = icmp sgt i64 %bytes, $MOSTPLAIN
  unless %is.large return null, yes:
  ret ptr %node
}
; Count a reader of the memory of a node, if there is one, and hold it, or undo that: while NumPy copies much other
; threads run, which may be given the memory to write to.
define internal void @count_reader(ptr %node, i64 %more) {
  %is.none = icmp eq ptr %node, null
  if %is.none goto done, count:
  hold %node
  %before = call ptr @word(ptr %node, i64 $ATNODE_HANDLES)
  %number = call i64 @integer(ptr %before)
  %changed = add i64 %number, %more
  %now = call ptr @PyLong_FromLongLong(i64 %changed)
  %old = call ptr @exchange(ptr %node, i64 $ATNODE_HANDLES, ptr %now)
  release %old
  %begins = icmp sgt i64 %more, 0
  if %begins goto done, let.go:
  release %node, %node
  then done:
  ret void
}
; Whether a node's value is this buffer still, of which nothing else sees the memory, made here: it may be written to.
define internal i1 @is_own(ptr %node, ptr %buffer) {
  %value = call ptr @word(ptr %node, i64 $ATNODE_VALUE)
  %exposed = call ptr @word(ptr %node, i64 $ATNODE_EXPOSED)
  %op = call ptr @word(ptr %node, i64 $ATNODE_OP)
  %handles = call ptr @word(ptr %node, i64 $ATNODE_HANDLES)
  %same = icmp eq ptr %value, %buffer
  %unseen = icmp eq ptr %exposed, @_Py_FalseStruct
  %data = call ptr @state_word(i64 $DATAOP)
  %is.data = call i1 @is_of(ptr %op, ptr %data)
  %number = call i64 @integer(ptr %handles)
  %alone = icmp eq i64 %number, 1
  %a = and i1 %same, %unseen
  %b = and i1 %is.data, %alone
  %both = and i1 %a, %b
  unless %both return false, memory:
  %base = call ptr @word(ptr %buffer, i64 $BASE)
  %is.whole = icmp eq ptr %base, null
  %seen = select i1 %is.whole, ptr %buffer, ptr %base
  %is.array = call i1 @is_ndarray(ptr %seen)
  br i1 %is.array, label %whole, label %return.false
; An array that may be written to, or was before it was shown, of memory of its own or of a block of the pool's.
whole:
  %flags = call i32 @flags(ptr %seen)
  %writeable = and i32 %flags, 1024
  %is.writeable = icmp ne i32 %writeable, 0
  %open = or i1 %is.writeable, %is.whole
  %own = and i32 %flags, 4
  %owns = icmp ne i32 %own, 0
  %owner = call ptr @word(ptr %seen, i64 $BASE)
  %leased = icmp ne ptr %owner, null
  unless %open return false, look:
  unless %leased goto give, lender:
  %lease = call ptr @state_word(i64 $LEASE)
  %is.lease = call i1 @is_of(ptr %owner, ptr %lease)
  ret i1 %is.lease
give:
  ret i1 %owns
}
; Let memory be written to, or no more.
define internal void @open_memory(ptr %buffer, i1 %opens) {
  %slot = getelementptr i8, ptr %buffer, i64 $FLAGS
  %flags = load i32, ptr %slot, align 4
  %closed = and i32 %flags, -1025
  %bit = select i1 %opens, i32 1024, i32 0
  %new = or i32 %closed, %bit
  store i32 %new, ptr %slot, align 4
  ret void
}
"""
