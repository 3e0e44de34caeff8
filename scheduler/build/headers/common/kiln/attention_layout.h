// How tiles of keys and values lie in LDS for attention, and how threads move them there.
//
// Both lie with what a product sums over contiguous: keys as [key][depth], values turned, as
// [depth][key]. Lines have no padding; their chunks of 16 bytes change places, in each line other
// ones, so that what is read or written at once lies in different banks.
#pragma once

#include <hip/hip_runtime.h>
#include <kiln/types.h>
#include <kiln/vector.h>
#include <kiln/wave.h>

namespace kiln::attention {

// All threads of the block, and what they wrote to LDS. Loads from memory stay on their way.
KILN_DEVICE void barrier() {
#if defined(__AMDGCN__)
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
#else
  __syncthreads();
#endif
}

constexpr int kChunkBytes = 16;  // a lane reads at once

// What the number of a chunk is xor'ed with in line `n`, for lines of `chunks` chunks (a multiple of
// 4). In one turn LDS serves 128-bit reads of eight lanes (gfx942: lanes 0-3 with 20-23 and so on;
// gfx950: 16 lanes; scheduler/cycles/banks.py has the groups), which are in lines that differ in
// their lowest bits or, by the order of lines in `Cores`, in bit 3. Values are written from lines
// that are eight apart: their higher bits must count as well.
constexpr int swizzle(int n, [[maybe_unused]] int chunks) {
#if defined(__gfx950__)
  if (chunks % 16 == 0) return (n & 15) ^ (n >> 1 & 4) ^ (n >> 4 & 3);
  if (chunks % 8 == 0) return (n >> 1 & 7) ^ (n >> 4 & 3);
  return (n & 1) ^ (n >> 5 & 1) ^ (n >> 3 & 2);
#elif defined(__CUDA__)
  if (chunks % 8 == 0) return (n & 1) * 4 ^ (n >> 3 & 7);  // a turn: two lines, four chunks of each
  return n >> 3 & 3;
#elif defined(__GFX9__)
  if (chunks % 8 == 0) return (n & 7) ^ (n >> 1 & 4) ^ (n >> 4 & 3);
  return (n & 3) ^ (n >> 4 & 3);
#else
  if (chunks % 8 == 0) return (n & 7) ^ (n >> 1 & 4) ^ (n >> 4 & 3);
  return (n >> 1 & 3) ^ (n >> 2 & 2) ^ (n >> 4 & 3);
#endif
}

// Where line `n` lies. Two lines of four chunks share the banks: of those that are written at once,
// eight apart, half must be of either kind. CDNA: bits 0 and 3 change places. RDNA, some of which read
// eight lines in a row: bit 0 counts where bit 3 does not.
constexpr int line_place(int n, [[maybe_unused]] int chunks) {
#if defined(__CUDA__)
  return n;
#elif defined(__GFX9__)
  if (chunks % 8 != 0) return (n & ~9) | (n & 1) << 3 | (n >> 3 & 1);
  return n;
#else
  return chunks % 8 != 0 ? n ^ (n >> 3 & 1) : n;
#endif
}

// The place of an element of line `n` in a tile of lines of Length elements.
template <typename T, int Length>
struct Swizzled {
  static constexpr int kChunk = kChunkBytes / sizeof(T), kChunks = Length / kChunk;
  static_assert(Length % (4 * kChunk) == 0, "lines of whole groups of chunks");
  static constexpr int kLine = Length;

  KILN_INLINE static constexpr int place(int n, int at) {
    return line_place(n, kChunks) * Length + ((at / kChunk) ^ swizzle(n, kChunks)) * kChunk + at % kChunk;
  }
};

// Lines that are 16 bytes longer than they need be: for tiles that are read element by element.
template <typename T, int Length>
struct Padded {
  static constexpr int kLine = Length + kChunkBytes / sizeof(T);
  KILN_INLINE static constexpr int place(int n, int at) { return n * kLine + at; }
};

// Of so few keys a tile takes the place of the tile of values, which come after them: heads so deep
// that LDS has no room for both.
constexpr bool one_tile(int keys) { return keys < 32; }
constexpr int of_both(int keys, int of_keys, int of_values) {
  return !one_tile(keys) ? of_keys + of_values : of_keys > of_values ? of_keys : of_values;
}

constexpr int divisor_up_to(int most, int of) {  // a power of two
  int found = 1;
  while (found * 2 <= most && of % (found * 2) == 0) found *= 2;
  return found;
}

// A block's queries or keys from memory to LDS as they lie: `read(row, depth)` gives W neighbouring
// elements, of which only Depth are real; the others are 0. Rows from `end` on repeat the last one, so
// that nothing depends on how many there are.
template <typename T, typename Place, int Rows, int Padded, int Depth, int W, int Threads>
struct Lines {
  static constexpr int kParts = Padded / W, kTotal = Rows * kParts;
  static constexpr int kCount = (kTotal + Threads - 1) / Threads;
  Pack<T, W> held[kCount];

  template <typename Index, typename Read>
  KILN_DEVICE void fetch(Index first, Index end, Read read) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) held[i] = fetched(i, first, end, read);
  }
  KILN_DEVICE void put(T* tile) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) put(tile, i, held[i]);
  }
  // Both, where registers cannot hold a whole tile: so many packs at once.
  template <int AtOnce = 2, typename Index, typename Read>
  KILN_DEVICE static void move(T* tile, Index first, Index end, Read read) {
#pragma unroll AtOnce
    for (int i = 0; i < kCount; ++i) put(tile, i, fetched(i, first, end, read));
  }

 private:
  KILN_DEVICE static int part(int i) { return int(threadIdx.x) + i * Threads; }
  KILN_DEVICE static int depth(int i) { return part(i) % kParts * W; }
  template <typename Index, typename Read>
  KILN_DEVICE static Pack<T, W> fetched(int i, Index first, Index end, Read read) {
    const Index row = first + part(i) / kParts;
    return read(row < end ? row : end - 1, Index(Padded == Depth || depth(i) < Depth ? depth(i) : 0));
  }
  KILN_DEVICE static void put(T* tile, int i, const Pack<T, W>& what) {
    if (kTotal % Threads != 0 && part(i) >= kTotal) return;
    const bool real = Padded == Depth || depth(i) < Depth;
    store_pack(tile + Place::place(part(i) / kParts, depth(i)), real ? what : Pack<T, W>{});
  }
};

// A block's values, turned on the way: a thread takes neighbouring keys and writes 8 bytes at once.
// Neighbouring threads take 128 bytes of a key's values, then the next keys. Those of keys from `end`
// on become 0 where they are put, since their weight is 0 and the last key's value may be infinite.
template <typename T, typename Place, int Rows, int Padded, int Depth, int W, int Threads>
struct TurnedLines {
  static constexpr int kKeys = sizeof(T) == 8 ? 2 : 8 / sizeof(T);
  static constexpr int kParts = Padded / W, kGroups = Rows / kKeys, kTotal = kGroups * kParts;
  static constexpr int kCount = (kTotal + Threads - 1) / Threads;
  static constexpr int kAcross = divisor_up_to(128 / (W * int(sizeof(T))), kParts);
  Pack<T, W> held[kCount][kKeys];

  template <typename Index, typename Read>
  KILN_DEVICE void fetch(Index first, Index end, Read read) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) fetch(held[i], i, first, end, read);
  }
  // `keys` of the tile's are there.
  KILN_DEVICE void put(T* tile, int keys) {
    if (keys < Rows) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) clear(held[i], i, keys);
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) put(tile, i, held[i]);
  }
  template <typename Index, typename Read>
  KILN_DEVICE static void move(T* tile, Index first, Index end, Read read) {
#pragma unroll 1
    for (int i = 0; i < kCount; ++i) {
      Pack<T, W> moved[kKeys];
      fetch(moved, i, first, end, read);
      clear(moved, i, end - first < Rows ? int(end - first) : Rows);
      put(tile, i, moved);
    }
  }

 private:
  KILN_DEVICE static int part(int i) { return int(threadIdx.x) + i * Threads; }
  KILN_DEVICE static int depth(int i) {
    return (part(i) / (kAcross * kGroups) * kAcross + part(i) % kAcross) * W;
  }
  KILN_DEVICE static int key(int i) { return part(i) / kAcross % kGroups * kKeys; }

  template <typename Index, typename Read>
  KILN_DEVICE static void fetch(Pack<T, W> (&to)[kKeys], int i, Index first, Index end, Read read) {
    const bool real = (kTotal % Threads == 0 || part(i) < kTotal) && (Padded == Depth || depth(i) < Depth);
#pragma unroll
    for (int j = 0; j < kKeys; ++j) {
      const Index row = first + key(i) + j;
      to[j] = read(row < end ? row : end - 1, Index(real ? depth(i) : 0));
    }
  }
  KILN_DEVICE static void clear(Pack<T, W> (&held)[kKeys], int i, int keys) {
#pragma unroll
    for (int j = 0; j < kKeys; ++j) held[j] = key(i) + j < keys ? held[j] : Pack<T, W>{};
  }
  KILN_DEVICE static void put(T* tile, int i, const Pack<T, W> (&from)[kKeys]) {
    if (kTotal % Threads != 0 && part(i) >= kTotal) return;
    const bool real = Padded == Depth || depth(i) < Depth;
#pragma unroll
    for (int w = 0; w < W; ++w) {
      Pack<T, kKeys> turned;
#pragma unroll
      for (int j = 0; j < kKeys; ++j) turned[j] = real ? from[j][w] : T(0);
      store_pack(tile + Place::place(depth(i) + w, key(i)), turned);
    }
  }
};

}  // namespace kiln::attention
