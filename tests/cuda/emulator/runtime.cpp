// What kernels of device.h share: launches, barriers, and who accessed what.
#include "device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#ifdef USES_BARRIERS
#include <ucontext.h>
#endif

dim3 threadIdx, blockIdx, blockDim, gridDim;
char shared_memory[SHARED_BYTES] __attribute__((aligned(16)));
static const Workspace *workspace;

// --- faults ------------------------------------------------------------------------------------------------------

static char *message;
static jmp_buf ends_launch;
static bool in_fiber;
static bool failed;
static void leave_fiber();

void fault(const char *format, ...) {
  char text[200];
  __builtin_va_list arguments;
  __builtin_va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  __builtin_va_end(arguments);
  snprintf(message, 400, "%s, block (%u, %u, %u), thread (%u, %u, %u)", text, blockIdx.x, blockIdx.y, blockIdx.z,
           threadIdx.x, threadIdx.y, threadIdx.z);
  failed = true;
  if (in_fiber) leave_fiber();
  longjmp(ends_launch, 1);
}

// --- races -------------------------------------------------------------------------------------------------------

#ifdef FIND_RACES
int line_number;

// Who accessed an element: a thread, after so many barriers of its block and of its warp.
struct Access { unsigned block, thread, barriers, warp_barriers; int line; bool is_atomic, exists; };
// What is known of an element in this launch: the last write, the last read, and one by another thread.
struct Shadow { void *address; unsigned launch; Access write, read, other; };
static const unsigned SHADOWS = 1 << 20;
static_assert(sizeof(Shadow) <= 128, "module.py has 128 bytes for each");
static Access own_access(bool is_atomic);
static bool is_shared(void *address);

static Shadow &shadow_of(void *address) {
  Shadow *shadows = (Shadow *)workspace->shadows;
  unsigned at = (unsigned)((unsigned long long)address * 0x9e3779b97f4a7c15ull >> 44);
  for (unsigned tried = 0; tried < SHADOWS; tried++, at = (at + 1) % SHADOWS) {
    if (shadows[at].launch != workspace->launch) shadows[at] = {address, workspace->launch};
    if (shadows[at].address == address) return shadows[at];
  }
  fault("more than %u elements, too many to look for races", SHADOWS);
  return shadows[0];
}
// Whether nothing says which of two accesses comes first.  A block begins with shared memory of its own.
static bool at_once(const Access &before, const Access &now, void *address) {
  if (!before.exists || (before.block == now.block && before.thread == now.thread)) return false;
  if (before.is_atomic && now.is_atomic) return false;
  if (before.block != now.block) return !is_shared(address);
  if (before.thread / 32 == now.thread / 32 && before.warp_barriers != now.warp_barriers) return false;
  return before.barriers == now.barriers;
}
static void check_access(const Access &before, const char *did, const Access &now, const char *does, void *address,
                         const char *name, long long index) {
  if (at_once(before, now, address))
    fault("race: line %d %s %s[%lld], which thread %u of block %u %s in line %d, with no barrier between", now.line, does,
          name, index, before.thread, before.block, did, before.line);
}
void note_read(void *address, const char *name, long long index) {
  Shadow &shadow = shadow_of(address);
  Access now = own_access(false);
  check_access(shadow.write, "writes", now, "reads", address, name, index);
  if (at_once(shadow.read, now, address)) shadow.other = shadow.read;
  shadow.read = now;
}
void note_write(void *address, const char *name, long long index, bool is_atomic) {
  Shadow &shadow = shadow_of(address);
  Access now = own_access(is_atomic);
  check_access(shadow.write, "writes", now, "writes", address, name, index);
  check_access(shadow.read, "reads", now, "writes", address, name, index);
  check_access(shadow.other, "reads", now, "writes", address, name, index);
  shadow.write = now;
}
#endif

// --- barriers ----------------------------------------------------------------------------------------------------

static unsigned linear_thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
static void enter_thread(unsigned number) {
  threadIdx = {number % blockDim.x, number / blockDim.x % blockDim.y, number / (blockDim.x * blockDim.y)};
}

static unsigned order_seed;
static unsigned random_number(unsigned below) {
  order_seed = order_seed * 1664525u + 1013904223u;
  return (unsigned)((unsigned long long)order_seed * below >> 32);
}
// The numbers below `count` in order 0, forward; 1, backward; or 2, at random.
static void fill_order(unsigned *order, unsigned count, int kind) {
  for (unsigned k = 0; k < count; k++) order[k] = kind == 1 ? count - 1 - k : k;
  for (unsigned k = count; kind == 2 && k > 1; k--) {
    unsigned other = random_number(k), kept = order[k - 1];
    order[k - 1] = order[other];
    order[other] = kept;
  }
}

#ifdef FIND_RACES
static unsigned barrier_count, warp_barrier_counts[1024];
static bool is_shared(void *address) {
  return (char *)address >= shared_memory && (char *)address < shared_memory + sizeof shared_memory;
}
static Access own_access(bool is_atomic) {
  unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z), thread = linear_thread();
  return {block, thread, barrier_count, warp_barrier_counts[thread], line_number, is_atomic, true};
}
void count_warp_barrier() { warp_barrier_counts[linear_thread()]++; }
static void count_barrier() { barrier_count++; }
static void begin_block() { memset(warp_barrier_counts, 0, sizeof warp_barrier_counts); barrier_count = 0; }
#else
static void count_barrier() {}
static void begin_block() {}
#endif

static void (*kernel_call)(Argument *);
static Argument *kernel_arguments;

#ifdef USES_BARRIERS
struct Fiber { jmp_buf registers; bool has_stack; State state; int line; unsigned mask; };
static const unsigned STACK_BYTES = 1 << 16;
static Fiber fibers[1024];
static jmp_buf scheduler;
unsigned current;
unsigned long long slots[1024];

static void leave_fiber() { _longjmp(scheduler, 1); }
static void yield_to_scheduler(Fiber &own) {
  if (!_setjmp(own.registers)) _longjmp(scheduler, 1);
}
// A thread of one block after the other: its stack is made once in a launch.
static void run_fiber() {
  for (;;) {
    kernel_call(kernel_arguments);
    fibers[current].state = DONE;
    yield_to_scheduler(fibers[current]);
  }
}
// Runs the current thread until it waits or is done.  Jumps, unlike swapcontext, call no system.
static void __attribute__((noinline)) run_current() {
  Fiber &own = fibers[current];
  if (_setjmp(scheduler)) return;
  if (own.has_stack) _longjmp(own.registers, 1);
  own.has_stack = true;
  static ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = workspace->stacks + (size_t)current * STACK_BYTES;
  context.uc_stack.ss_size = STACK_BYTES;
  context.uc_link = 0;
  makecontext(&context, run_fiber, 0);
  setcontext(&context);
}
static void begin_launch() {
  for (Fiber &each : fibers) each.has_stack = false;
}
void wait_at(State state, int line, unsigned mask) {
  Fiber &own = fibers[current];
  if (state == AT_WARP_BARRIER && !(mask >> current % 32 & 1))
    fault("lane %u is not in the mask %08x of line %d", current % 32, mask, line);
  own.state = state;
  own.line = line;
  own.mask = mask;
  yield_to_scheduler(own);
}

static bool release_warps(unsigned count) {
  bool released = false;
  for (unsigned k = 0; k < count; k++) {
    if (fibers[k].state != AT_WARP_BARRIER) continue;
    unsigned first = k / 32 * 32, mask = fibers[k].mask;
    bool complete = true;
    for (unsigned lane = 0; lane < 32 && first + lane < count; lane++) {
      Fiber &other = fibers[first + lane];
      if (!(mask >> lane & 1)) continue;
      if (other.state == DONE) { enter_thread(k); fault("line %d waits for lane %u, which has returned", fibers[k].line, lane); }
      complete = complete && other.state == AT_WARP_BARRIER && other.mask == mask && other.line == fibers[k].line;
    }
    if (!complete) continue;
    for (unsigned lane = 0; lane < 32 && first + lane < count; lane++)
      if (mask >> lane & 1) fibers[first + lane].state = READY;
    released = true;
  }
  return released;
}

static void release_block(unsigned count) {
  unsigned waiting = 0, first = 0;
  for (unsigned k = 0; k < count; k++) {
    if (fibers[k].state != AT_BLOCK_BARRIER) continue;
    if (!waiting++) first = k;
    else if (fibers[k].line != fibers[first].line) {
      enter_thread(k);
      fault("divergent barrier: a thread waits at line %d, another at line %d", fibers[k].line, fibers[first].line);
    }
  }
  enter_thread(first);
  if (waiting != count) fault("the barrier of line %d is reached by %u of %u threads", fibers[first].line, waiting, count);
  for (unsigned k = 0; k < count; k++) fibers[k].state = READY;
  count_barrier();
}

static void run_block(unsigned count, int kind) {
  static unsigned order[1024];
  unsigned live = count;
  for (unsigned k = 0; k < count; k++) fibers[k].state = READY;
  while (live) {
    fill_order(order, count, kind);
    for (unsigned k = 0; k < count; k++) {
      current = order[k];
      if (fibers[current].state != READY) continue;
      enter_thread(current);
      in_fiber = true;
      run_current();
      in_fiber = false;
      if (failed) longjmp(ends_launch, 1);
      live -= fibers[current].state == DONE;
    }
    if (live && !release_warps(count)) release_block(count);
  }
}

#else
static void leave_fiber() {}
static void begin_launch() {}
static void run_block(unsigned count, int kind) {
  static unsigned order[1024];
  fill_order(order, count, kind);
  for (unsigned k = 0; k < count; k++) {
    enter_thread(order[k]);
    kernel_call(kernel_arguments);
  }
}
#endif

int run_grid(
    void (*call)(Argument *), const unsigned *sizes, Argument *arguments, const Workspace *memory, char *text) {
  workspace = memory;
  message = text;
  failed = false;
  in_fiber = false;
  kernel_call = call;
  kernel_arguments = arguments;
  gridDim = {sizes[0], sizes[1], sizes[2]};
  blockDim = {sizes[3], sizes[4], sizes[5]};
  blockIdx = threadIdx = {0, 0, 0};
  order_seed = sizes[7];
  begin_launch();
  if (setjmp(ends_launch)) return 1;
  unsigned count = blockDim.x * blockDim.y * blockDim.z, blocks = gridDim.x * gridDim.y * gridDim.z;
  if (count > 1024) fault("a block of %u threads", count);
  static unsigned order[1 << 16];
  if (blocks > 1 << 16) fault("a grid of %u blocks", blocks);
  fill_order(order, blocks, (int)sizes[6]);
  for (unsigned k = 0; k < blocks; k++) {
    unsigned block = order[k];
    blockIdx = {block % gridDim.x, block / gridDim.x % gridDim.y, block / (gridDim.x * gridDim.y)};
    memset(shared_memory, 0xff, sizeof shared_memory);
    begin_block();
    run_block(count, (int)sizes[6]);
  }
  return 0;
}
