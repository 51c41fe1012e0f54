"""What a call does between its checks and its results, as LLVM IR: memory, the lock, the steps of the program.

Sources: CPython, "Memory Management" and "Releasing the GIL" of the C-API.
"""

from __future__ import annotations

from typing import Final

from xarr_numpy.compiled import builtin

#: Words that describe one step: its function, its turns, how many buffers it has, where these are listed, and how
#: threads share it: the least range, the parts, whom to wake; all 0 if they do not.
STEP: Final = 7
#: Nanoseconds after which a shared step would not go on.
NEVER: Final = 2**62
DECLARATIONS: Final = """
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
declare ptr @PyErr_NoMemory()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
"""

_WRITEABLE: Final = 0x400


def text() -> str:
    """From `%work` to `%result`, or to `%undo` with an error."""
    return "\n".join([_outputs(), _BUFFERS, _LOCK, _steps(), _UNLOCK])


def _outputs() -> str:
    """New arrays, into `%arrays`, `%k` of them."""
    return f"""
work:
  br label %output
output:
  %k = phi i64 [ 0, %work ], [ %k.next, %output.put ]
  %outputs.done = icmp eq i64 %k, %outputs
  br i1 %outputs.done, label %fixed.next, label %output.new
output.new:
  %row = mul i64 %k, 3
  %description.slot = getelementptr i64, ptr %made, i64 %row
  %description = load ptr, ptr %description.slot, align 8
  %rank.slot = getelementptr i64, ptr %description.slot, i64 1
  %rank = load i64, ptr %rank.slot, align 8
  %rank.short = trunc i64 %rank to i32
  %sizes.slot = getelementptr i64, ptr %description.slot, i64 2
  %sizes = load ptr, ptr %sizes.slot, align 8
  call void @Py_IncRef(ptr %description)
  %output.made = call ptr %new(
    ptr %ndarray, ptr %description, i32 %rank.short, ptr %sizes, ptr null, ptr null, i32 0, ptr null)
  %output.failed = icmp eq ptr %output.made, null
  br i1 %output.failed, label %undo, label %output.put
output.put:
  %output.slot = getelementptr ptr, ptr %arrays, i64 %k
  store ptr %output.made, ptr %output.slot, align 8
  %output.flags.slot = getelementptr i8, ptr %output.made, i64 {builtin.FLAGS}
  %output.flags = load i32, ptr %output.flags.slot, align 4
  %output.sealed = and i32 %output.flags, {~_WRITEABLE}
  store i32 %output.sealed, ptr %output.flags.slot, align 4
  %output.data.slot = getelementptr i8, ptr %output.made, i64 {builtin.DATA}
  %output.data = load ptr, ptr %output.data.slot, align 8
  %output.number = add i64 %sources, %k
  %output.place = getelementptr ptr, ptr %data, i64 %output.number
  store ptr %output.data, ptr %output.place, align 8
  %k.next = add i64 %k, 1
  br label %output"""


#: The addresses of constants, and of the parts of a new block, behind those of arrays.
_BUFFERS: Final = """\
fixed.next:
  %f = phi i64 [ 0, %output ], [ %f.next, %fixed.put ]
  %fixed.done = icmp eq i64 %f, %constants
  br i1 %fixed.done, label %block, label %fixed.put
fixed.put:
  %fixed.from = getelementptr ptr, ptr %fixed, i64 %f
  %fixed.data = load ptr, ptr %fixed.from, align 8
  %before.fixed = add i64 %sources, %outputs
  %fixed.number = add i64 %before.fixed, %f
  %fixed.place = getelementptr ptr, ptr %data, i64 %fixed.number
  store ptr %fixed.data, ptr %fixed.place, align 8
  %f.next = add i64 %f, 1
  br label %fixed.next
block:
  %has.parts = icmp ne i64 %parts, 0
  br i1 %has.parts, label %block.new, label %lock
block.new:
  %block.made = call ptr @PyMem_RawMalloc(i64 %bytes)
  %block.failed = icmp eq ptr %block.made, null
  br i1 %block.failed, label %block.none, label %part
block.none:
  %no.memory = call ptr @PyErr_NoMemory()
  br label %undo
part:
  %p = phi i64 [ 0, %block.new ], [ %p.next, %part.put ]
  %parts.done = icmp eq i64 %p, %parts
  br i1 %parts.done, label %lock, label %part.put
part.put:
  %offset.slot = getelementptr i64, ptr %offsets, i64 %p
  %offset = load i64, ptr %offset.slot, align 8
  %part.data = getelementptr i8, ptr %block.made, i64 %offset
  %before.outputs = add i64 %sources, %outputs
  %before.parts = add i64 %before.outputs, %constants
  %part.number = add i64 %before.parts, %p
  %part.place = getelementptr ptr, ptr %data, i64 %part.number
  store ptr %part.data, ptr %part.place, align 8
  %p.next = add i64 %p, 1
  br label %part"""

#: Hold the operands and let go of the lock, if the steps take a while.
_LOCK: Final = """\
lock:
  %memory = phi ptr [ null, %block ], [ %block.made, %part ]
  %is.long = icmp ne i64 %long, 0
  br i1 %is.long, label %hold, label %run
hold:
  %h = phi i64 [ 0, %lock ], [ %h.next, %hold.one ]
  %holds.done = icmp eq i64 %h, %sources
  br i1 %holds.done, label %unlock, label %hold.one
hold.one:
  %hold.slot = getelementptr ptr, ptr %held, i64 %h
  %hold.value = load ptr, ptr %hold.slot, align 8
  call void @Py_IncRef(ptr %hold.value)
  %h.next = add i64 %h, 1
  br label %hold
unlock:
  %unlocked = call ptr @PyEval_SaveThread()
  br label %run
run:
  %thread = phi ptr [ null, %lock ], [ %unlocked, %unlock ]
  br label %step.next"""

_UNLOCK: Final = """\
ran:
  call void @PyMem_RawFree(ptr %memory)
  br i1 %is.long, label %relock, label %result
relock:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %let.go
let.go:
  %g = phi i64 [ 0, %relock ], [ %g.next, %let.go.one ]
  %gone = icmp eq i64 %g, %sources
  br i1 %gone, label %result, label %let.go.one
let.go.one:
  %let.slot = getelementptr ptr, ptr %held, i64 %g
  %let.value = load ptr, ptr %let.slot, align 8
  call void @Py_DecRef(ptr %let.value)
  %g.next = add i64 %g, 1
  br label %let.go"""


def _steps() -> str:
    """Each step's function with its buffers."""
    return f"""\
step.next:
  %s = phi i64 [ 0, %run ], [ %s.next, %step.over ]
  %steps.done = icmp eq i64 %s, %steps
  br i1 %steps.done, label %ran, label %step.read
step.read:
  %step.row = mul i64 %s, {STEP}
  %phase.slot = getelementptr i64, ptr %step, i64 %step.row
  %phase = load ptr, ptr %phase.slot, align 8
  %extent.slot = getelementptr i64, ptr %phase.slot, i64 1
  %extent = load i64, ptr %extent.slot, align 8
  %count.slot = getelementptr i64, ptr %phase.slot, i64 2
  %buffers.count = load i64, ptr %count.slot, align 8
  %names.slot = getelementptr i64, ptr %phase.slot, i64 3
  %names = load ptr, ptr %names.slot, align 8
  br label %buffer
buffer:
  %b = phi i64 [ 0, %step.read ], [ %b.next, %buffer.put ]
  %buffers.done = icmp eq i64 %b, %buffers.count
  br i1 %buffers.done, label %step.run, label %buffer.put
buffer.put:
  %name.slot = getelementptr i64, ptr %names, i64 %b
  %name = load i64, ptr %name.slot, align 8
  %from.slot = getelementptr ptr, ptr %data, i64 %name
  %from = load ptr, ptr %from.slot, align 8
  %to.slot = getelementptr ptr, ptr %buffers, i64 %b
  store ptr %from, ptr %to.slot, align 8
  %b.next = add i64 %b, 1
  br label %buffer
step.run:
  %least.slot = getelementptr i64, ptr %phase.slot, i64 4
  %least = load i64, ptr %least.slot, align 8
  %is.alone = icmp eq i64 %least, 0
  br i1 %is.alone, label %step.alone, label %step.share
step.alone:
  call void %phase(ptr %buffers, i64 0, i64 %extent)
  br label %step.over
step.share:
  %cuts.slot = getelementptr i64, ptr %phase.slot, i64 5
  %cuts = load i64, ptr %cuts.slot, align 8
  %wake.slot = getelementptr i64, ptr %phase.slot, i64 6
  %wake = load i64, ptr %wake.slot, align 8
  %reached = call i64 %share(ptr %threads, ptr %phase, ptr %buffers, i64 0, i64 %extent, i64 %least, i64 %cuts,
    i64 %wake, i64 {NEVER})
  br label %step.over
step.over:
  %s.next = add i64 %s, 1
  br label %step.next"""
