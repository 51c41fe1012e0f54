// CUDA C++ on the host, for tests: what the text of a kernel may use, for g++.
//
// Only headers of C: those of C++ take g++ 0.2 seconds each.  A launch runs its threads one after the other.  Where the
// text has barriers (USES_BARRIERS) each has a stack of its own, and a barrier hands over to the next one.  A pointer
// that a kernel gets is a Span, which knows its bounds.  The first fault ends the launch, with a message that says which
// thread of which block.
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#ifdef USES_BARRIERS
#include <ucontext.h>
#endif

#define __global__
#define __device__ static
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define XARR_EMULATED 1

struct dim3 { unsigned x, y, z; };
static dim3 threadIdx, blockIdx, blockDim, gridDim;

// --- faults ------------------------------------------------------------------------------------------------------

static char *message;
static jmp_buf ends_launch;
static bool in_fiber;
static bool failed;
static void leave_fiber();

static void fault(const char *format, ...) {
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

// --- memory --------------------------------------------------------------------------------------------------------

struct Argument { void *start; long long nbytes; };
// What one launch after the other uses, whichever module it is of: a stack for each thread of a block, and what is
// known of the elements that are accessed, in this launch or in one with another number.
struct Workspace { char *stacks; void *shadows; unsigned launch; };
static const Workspace *workspace;

#ifdef FIND_RACES
// Who accessed an element: a thread, after so many barriers of its block and of its warp.
struct Access { unsigned block, thread, barriers, warp_barriers; int line; bool is_atomic, exists; };
// What is known of an element in this launch: the last write, the last read, and one by another thread.
struct Shadow { void *address; unsigned launch; Access write, read, other; };
static const unsigned SHADOWS = 1 << 20;
static_assert(sizeof(Shadow) <= 128, "module.py has 128 bytes for each");
static int line_number;
#define LINE(number) line_number = number;
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
static void note_read(void *address, const char *name, long long index) {
  Shadow &shadow = shadow_of(address);
  Access now = own_access(false);
  check_access(shadow.write, "writes", now, "reads", address, name, index);
  if (at_once(shadow.read, now, address)) shadow.other = shadow.read;
  shadow.read = now;
}
static void note_write(void *address, const char *name, long long index, bool is_atomic) {
  Shadow &shadow = shadow_of(address);
  Access now = own_access(is_atomic);
  check_access(shadow.write, "writes", now, "writes", address, name, index);
  check_access(shadow.read, "reads", now, "writes", address, name, index);
  check_access(shadow.other, "reads", now, "writes", address, name, index);
  shadow.write = now;
}
#else
#define LINE(number)
#endif

// Neighbouring elements as one: each of them is an element to look at.
template <class T, int n> struct alignas(n * sizeof(T)) vector { T at[n]; };
template <class T> struct Parts { static const int count = 1; };
template <class T, int n> struct Parts<vector<T, n>> { static const int count = n; };
template <class T, int n> struct Parts<const vector<T, n>> { static const int count = n; };

#ifdef FIND_RACES
template <class T> static void note_reads(T *at, const char *name, long long index) {
  const int count = Parts<T>::count;
  for (int k = 0; k < count; k++) note_read((char *)at + k * (sizeof(T) / count), name, index * count + k);
}
template <class T> static void note_writes(T *at, const char *name, long long index, bool is_atomic) {
  const int count = Parts<T>::count;
  for (int k = 0; k < count; k++) note_write((char *)at + k * (sizeof(T) / count), name, index * count + k, is_atomic);
}
// An element that tells reads from writes.  Its address is what atomics take.
template <class T> struct Reference {
  T *at;
  const char *name;
  long long index;
  operator T() const { note_reads(at, name, index); return *at; }
  T operator=(T value) const { note_writes(at, name, index, false); return *at = value; }
  T operator=(const Reference &other) const { return *this = (T)other; }
  template <class U> T operator+=(U value) const { return *this = (T)*this + value; }
  T *operator&() const { note_writes(at, name, index, true); return at; }
};
#endif

template <class T> struct Span {
  T *start;
  long long size;
  const char *name;
#ifdef FIND_RACES
  Reference<T> operator[](long long at) const { return {&element(at), name, at}; }
#else
  T &operator[](long long at) const { return element(at); }
#endif
  T &element(long long at) const {
    if (at < 0 || at >= size) fault("%s[%lld] is outside of its %lld elements", name, at, size);
    return start[at];
  }
  Span operator+(long long count) const { return {start + count, size - count, name}; }
};

template <class T> static Span<T> span(Argument argument, const char *name) {
  if ((unsigned long long)argument.start % sizeof(T)) fault("%s is not aligned to %d bytes", name, (int)sizeof(T));
  return {(T *)argument.start, argument.nbytes / (long long)sizeof(T), name};
}

// The elements of a span, so many at once.
template <class V, class T> static Span<V> spans(Span<T> span) {
  if ((unsigned long long)span.start % sizeof(V))
    fault("%s is not aligned to the %d bytes of a vector", span.name, (int)sizeof(V));
  return {(V *)span.start, span.size * (long long)sizeof(T) / (long long)sizeof(V), span.name};
}
template <int n, class T> static Span<vector<T, n>> vectors(Span<T> span) { return spans<vector<T, n>>(span); }
template <int n, class T> static Span<const vector<T, n>> vectors(Span<const T> span) {
  return spans<const vector<T, n>>(span);
}

// What a block shares.  No element has a value before a thread writes it.
static char shared_memory[48 << 10] __attribute__((aligned(16)));
template <class T> static Span<T> shared(int offset, int size, const char *name) {
  if (offset + size * sizeof(T) > sizeof shared_memory) fault("%s does not fit into shared memory", name);
  return {(T *)(shared_memory + offset), size, name};
}

// --- barriers --------------------------------------------------------------------------------------------------------

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
static void count_warp_barrier() { warp_barrier_counts[linear_thread()]++; }
static void count_barrier() { barrier_count++; }
static void begin_block() { memset(warp_barrier_counts, 0, sizeof warp_barrier_counts); barrier_count = 0; }
#else
static void count_warp_barrier() {}
static void count_barrier() {}
static void begin_block() {}
#endif

static void (*kernel_call)(Argument *);
static Argument *kernel_arguments;

#ifdef USES_BARRIERS
enum State { READY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, DONE };
struct Fiber { jmp_buf registers; bool has_stack; State state; int line; unsigned mask; unsigned long long slot; };
static const unsigned STACK_BYTES = 1 << 16;
static Fiber fibers[1024];
static jmp_buf scheduler;
static unsigned current;

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
static void wait_at(State state, int line, unsigned mask) {
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

template <class T> static T exchange(int line, unsigned mask, T value, unsigned source) {
  static_assert(!__is_class(T) && sizeof(T) <= 8, "CUDA shuffles numbers alone");
  memcpy(&fibers[current].slot, &value, sizeof value);
  wait_at(AT_WARP_BARRIER, line, mask);
  if (!(mask >> source % 32 & 1)) fault("line %d reads lane %u, which is not in the mask %08x", line, source % 32, mask);
  memcpy(&value, &fibers[current / 32 * 32 + source % 32].slot, sizeof value);
  wait_at(AT_WARP_BARRIER, line, mask);
  return value;
}
static unsigned lane_below(unsigned delta) { unsigned lane = current % 32; return lane + delta < 32 ? lane + delta : lane; }
static unsigned lane_above(unsigned delta) { unsigned lane = current % 32; return lane >= delta ? lane - delta : lane; }
#define __syncthreads() wait_at(AT_BLOCK_BARRIER, __LINE__, 0)
#define __syncwarp(...) (wait_at(AT_WARP_BARRIER, __LINE__, 0xffffffffu), count_warp_barrier())
#define __shfl_sync(mask, value, lane) exchange(__LINE__, mask, value, lane)
#define __shfl_down_sync(mask, value, delta) exchange(__LINE__, mask, value, lane_below(delta))
#define __shfl_up_sync(mask, value, delta) exchange(__LINE__, mask, value, lane_above(delta))
#define __shfl_xor_sync(mask, value, other) exchange(__LINE__, mask, value, current % 32 ^ (other))
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

// Grid and block are three sizes each; then the order of threads and blocks, and its seed.  1 if a message was written.
static int run_grid(
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

// --- atomics, of exactly the types that CUDA has them for ------------------------------------------------------------

#define ATOMIC(name, T, expression) \
  static inline T name(T *at, T value) { T old = *at; *at = expression; return old; }
#define ATOMIC_INTEGER(T) \
  ATOMIC(atomicMin, T, old < value ? old : value) ATOMIC(atomicMax, T, old > value ? old : value) \
  ATOMIC(atomicAnd, T, old & value) ATOMIC(atomicOr, T, old | value) ATOMIC(atomicXor, T, old ^ value)
ATOMIC_INTEGER(int)
ATOMIC_INTEGER(unsigned)
ATOMIC_INTEGER(long long)
ATOMIC_INTEGER(unsigned long long)
ATOMIC(atomicAdd, int, (int)((unsigned)old + (unsigned)value))
ATOMIC(atomicAdd, unsigned, old + value)
ATOMIC(atomicAdd, unsigned long long, old + value)
ATOMIC(atomicAdd, float, old + value)
ATOMIC(atomicAdd, double, old + value)
#define COMPARE_AND_SWAP(T) \
  static inline T atomicCAS(T *at, T wanted, T value) { T old = *at; if (old == wanted) *at = value; return old; }
COMPARE_AND_SWAP(int)
COMPARE_AND_SWAP(unsigned)
COMPARE_AND_SWAP(unsigned long long)
COMPARE_AND_SWAP(unsigned short)

// --- functions -----------------------------------------------------------------------------------------------------

#define ONE(name) extern "C" float name##f(float) noexcept; extern "C" double name(double) noexcept;
#define TWO(name) extern "C" float name##f(float, float) noexcept; extern "C" double name(double, double) noexcept;
ONE(sqrt) ONE(rint) ONE(floor) ONE(ceil) ONE(trunc) ONE(fabs)
TWO(fmod) TWO(copysign)
extern "C" float fmaf(float, float, float) noexcept;
extern "C" double fma(double, double, double) noexcept;
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
