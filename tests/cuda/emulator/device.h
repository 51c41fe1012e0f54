// CUDA C++ on the host, for tests: what the text of a kernel may use, for g++.
//
// What is the same for all kernels is in runtime.cpp, which g++ compiles once; and there are only headers of C here: those
// of C++ take g++ 0.2 seconds each.  A launch runs its threads one after the other.  Where the text has barriers
// (USES_BARRIERS) each has a stack of its own, and a barrier hands over to the next one.  A pointer that a kernel gets is
// a Span, which knows its bounds.  The first fault ends the launch, with a message that says which thread of which block.
#include <string.h>

#define __global__
#define __device__ static
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define XARR_EMULATED 1

// What runtime.cpp defines, for kernels too.
#define RUNTIME extern __attribute__((visibility("default")))

struct dim3 { unsigned x, y, z; };
RUNTIME dim3 threadIdx, blockIdx, blockDim, gridDim;
// Ends the launch with a message.
RUNTIME void fault(const char *format, ...);

// --- memory --------------------------------------------------------------------------------------------------------

struct Argument { void *start; long long nbytes; };
// What one launch after the other uses, whichever module it is of: a stack for each thread of a block, and what is
// known of the elements that are accessed, in this launch or in one with another number.
struct Workspace { char *stacks; void *shadows; unsigned launch; };

#ifdef FIND_RACES
RUNTIME int line_number;
#define LINE(number) line_number = number;
RUNTIME void note_read(void *address, const char *name, long long index);
RUNTIME void note_write(void *address, const char *name, long long index, bool is_atomic);
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
static const unsigned SHARED_BYTES = 48 << 10;
RUNTIME char shared_memory[SHARED_BYTES] __attribute__((aligned(16)));
template <class T> static Span<T> shared(int offset, int size, const char *name) {
  if (offset + size * sizeof(T) > SHARED_BYTES) fault("%s does not fit into shared memory", name);
  return {(T *)(shared_memory + offset), size, name};
}

// --- barriers --------------------------------------------------------------------------------------------------------

#ifdef FIND_RACES
RUNTIME void count_warp_barrier();
#else
static void count_warp_barrier() {}
#endif

#ifdef USES_BARRIERS
enum State { READY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, DONE };
// The thread that runs, and what each hands to others.
RUNTIME unsigned current;
RUNTIME unsigned long long slots[1024];
RUNTIME void wait_at(State state, int line, unsigned mask);
template <class T> static T exchange(int line, unsigned mask, T value, unsigned source) {
  static_assert(!__is_class(T) && sizeof(T) <= 8, "CUDA shuffles numbers alone");
  memcpy(&slots[current], &value, sizeof value);
  wait_at(AT_WARP_BARRIER, line, mask);
  if (!(mask >> source % 32 & 1)) fault("line %d reads lane %u, which is not in the mask %08x", line, source % 32, mask);
  memcpy(&value, &slots[current / 32 * 32 + source % 32], sizeof value);
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
#endif

// Grid and block are three sizes each; then the order of threads and blocks, and its seed.  1 if a message was written.
RUNTIME int run_grid(
    void (*call)(Argument *), const unsigned *sizes, Argument *arguments, const Workspace *memory, char *text);

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
