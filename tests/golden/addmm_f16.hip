// kernel path: kernels/rocm_fused_mm_49723948/source.hip
// Topologically Sorted Source Nodes: [mm], Original ATen: [aten.mm]
// Source node to ATen node mapping:
//   mm => mm
// Graph fragment:
//   %arg0 : Tensor "f16[2240, 256][256, 1]cuda:0" = PlaceHolder[target=arg0]
//   %arg1 : Tensor "f16[256, 2048][2048, 1]cuda:0" = PlaceHolder[target=arg1]
//   %bias : Tensor "f16[2048][1]cuda:0" = PlaceHolder[target=bias]
//   %mm : [num_users=0] = call_function[target=torch.ops.aten.mm.default](args = (), kwargs = {})
//   return %buf0
#include <hip/hip_runtime.h>
#include <kiln/index.h>
#include <kiln/pointwise.h>
#include <kiln/types.h>
#include <kiln/mma.h>

namespace {

constexpr int BLOCK_M = 128;
constexpr int BLOCK_N = 64;
constexpr int BLOCK_K = 64;
constexpr int THREADS = 128;
constexpr int STAGES = 1;
constexpr int GROUP_M = 8;
constexpr int SPLIT_K = 1;
constexpr int VECTOR_A = 8;
constexpr int VECTOR_B = 8;

using T = _Float16;  // of A and B, in LDS
using Acc = float;
using kiln::Vec;

constexpr int kWaves = THREADS / KILN_WAVE_SIZE;
constexpr int kWavesM = kiln::mma::waves_along_m(BLOCK_M, BLOCK_N, kWaves);
static_assert(kWavesM > 0, "the block's 16x16 tiles cannot be shared out among its waves");
constexpr int kWavesN = kWaves / kWavesM;
using Tile = kiln::mma::Tile<T, BLOCK_M / kWavesM, BLOCK_N / kWavesN>;
static_assert(BLOCK_K % Tile::kStep == 0, "a step along k must divide BLOCK_K");

// Rows of LDS are 16 bytes longer than they need be: neighbouring rows start in other banks.
constexpr int kPitch = BLOCK_K + 16 / sizeof(T);
constexpr int kStage = (BLOCK_M + BLOCK_N) * kPitch;

constexpr int tiles(int extent, int block) { return (extent + block - 1) / block; }

struct Problem {
  const _Float16* X;
  const _Float16* W;
  const _Float16* in0;
  _Float16* Y;
  int32_t M;
  int32_t N;
  int32_t K;
  int32_t batches;
  int64_t X_m;
  int64_t W_k;
  int64_t Y_m;
};

// ---- indices: flat, and one for each axis where there are several

struct IndexBatch {
  int32_t flat;
};
__device__ __forceinline__ IndexBatch index_batch(const Problem& p, int32_t flat) {
  return {flat};
}

struct IndexM {
  int32_t flat;
};
__device__ __forceinline__ IndexM index_m(const Problem& p, int32_t flat) {
  return {flat};
}

struct IndexK {
  int32_t flat;
};
__device__ __forceinline__ IndexK index_k(const Problem& p, int32_t flat) {
  return {flat};
}

struct IndexN {
  int32_t flat;
};
__device__ __forceinline__ IndexN index_n(const Problem& p, int32_t flat) {
  return {flat};
}

// ---- operands: kV elements that lie next to each other, along k or along the rows

struct A {
  static constexpr int kRows = BLOCK_M, kV = VECTOR_A;
  static constexpr bool kAlongK = true;
  using Index = IndexM;
  static __device__ __forceinline__ int32_t extent(const Problem& p) { return p.M; }
  static __device__ __forceinline__ Index index(const Problem& p, int32_t row) {
    return index_m(p, row);
  }
  static __device__ __forceinline__ Vec<T, kV> read(const Problem& p, const IndexBatch& batch,
                                                    const Index& m, const IndexK& k) {
    return kiln::mma::read<kV>(p.X + (p.X_m * m.flat + k.flat));
  }
};

struct B0 {
  static constexpr int kRows = BLOCK_N, kV = VECTOR_B;
  static constexpr bool kAlongK = false;
  using Index = IndexN;
  static __device__ __forceinline__ int32_t extent(const Problem& p) { return p.N; }
  static __device__ __forceinline__ Index index(const Problem& p, int32_t row) {
    return index_n(p, row);
  }
  static __device__ __forceinline__ Vec<T, kV> read(const Problem& p, const IndexBatch& batch,
                                                    const Index& n, const IndexK& k) {
    return kiln::mma::read<kV>(p.W + (p.W_k * k.flat + n.flat));
  }
};

// ---- what is stored for each element of the result

struct Member0 {
  using B = B0;
  static __device__ __forceinline__ void store(const Problem& p, const IndexBatch& batch,
                                               const IndexM& m, const B::Index& n, Acc acc) {
    const float tmp0 = kiln::to_float(p.in0[n.flat]);
    const float tmp1 = acc + tmp0;
    p.Y[p.Y_m * m.flat + n.flat] = kiln::from_float<_Float16>(tmp1);
  }
};

// Moves an operand's tile from memory through registers to LDS; each thread has its own part.
template <typename Operand>
struct Mover {
  static constexpr int kV = Operand::kV;
  static constexpr bool kAlongK = Operand::kAlongK;
  static constexpr int kLine = (kAlongK ? BLOCK_K : Operand::kRows) / kV;
  static constexpr int kTotal = Operand::kRows * BLOCK_K / kV;

  // LDS holds k contiguous. Vectors along the rows are turned on the way: a thread takes kPack
  // neighbouring k and writes 8 bytes at once, and neighbouring lanes take 64 bytes of a line
  // before the next k, so that they write to different banks.
  static constexpr int pack() {
    int most = kAlongK || kV == 1 ? 1 : 8 / sizeof(T);
    while (kTotal % (most * THREADS) != 0 && most > 1) most /= 2;
    return most;
  }
  static constexpr int kPack = pack(), kPacks = BLOCK_K / kPack;
  static constexpr int kWidest = 64 / (kV * sizeof(T));
  static constexpr int kAcross = kV == 1 || kLine < kWidest ? kLine : kWidest;
  static constexpr int kCount = (kTotal / kPack + THREADS - 1) / THREADS * kPack;
  typename Operand::Index rows[kCount];
  Vec<T, kV> held[kCount];

  static __device__ __forceinline__ int part(int i) {
    return int(threadIdx.x) + i / kPack * THREADS;
  }
  static __device__ __forceinline__ bool idle(int i) {
    return kTotal % (kPack * THREADS) != 0 && part(i) >= kTotal / kPack;
  }
  static __device__ __forceinline__ int row(int i) {
    if constexpr (kAlongK) return part(i) / kLine;
    return (part(i) / (kAcross * kPacks) * kAcross + part(i) % kAcross) * kV;
  }
  static __device__ __forceinline__ int k(int i) {
    if constexpr (kAlongK) return part(i) % kLine * kV;
    // Where a wave's lanes share a line, its k is worked out once for all of them.
    if constexpr (kAcross % KILN_WAVE_SIZE == 0) return kiln::mma::uniform(part(i) / kLine);
    return part(i) / kAcross % kPacks * kPack + i % kPack;
  }

  // Rows beyond the edge repeat the last ones: what comes of them is not stored.
  __device__ __forceinline__ Mover(const Problem& p, int32_t first_row) {
    const int32_t last = Operand::extent(p) - (kAlongK ? 1 : kV);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int32_t wanted = first_row + row(i);
      rows[i] = Operand::index(p, wanted < last ? wanted : last);
    }
  }

  // Beyond k_end both operands are 0.
  template <bool Whole>
  __device__ __forceinline__ void fetch(const Problem& p, const IndexBatch& batch, int32_t k0,
                                        int32_t k_end) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (idle(i)) continue;
      const int32_t at = k0 + k(i);
      held[i] = 0;
      if (Whole || at < k_end) held[i] = Operand::read(p, batch, rows[i], index_k(p, at));
    }
  }

  __device__ __forceinline__ void put(T* lds) const {
#pragma unroll
    for (int i = 0; i < kCount; i += kPack) {
      if (idle(i)) continue;
      T* to = lds + row(i) * kPitch + k(i);
      if constexpr (kAlongK) {
        *reinterpret_cast<Vec<T, kV>*>(to) = held[i];
      } else {
#pragma unroll
        for (int v = 0; v < kV; ++v) {
          Vec<T, kPack> turned;
#pragma unroll
          for (int j = 0; j < kPack; ++j) turned[j] = held[i + j][v];
          *reinterpret_cast<Vec<T, kPack>*>(to + v * kPitch) = turned;
        }
      }
    }
  }
};

// The block's product over [k_begin, k_end): the next tile is on its way while one is multiplied.
template <typename Member>
__device__ __forceinline__ void product(const Problem& p, const IndexBatch& batch, int32_t row0,
                                        int32_t column0, int32_t k_begin, int32_t k_end, int wave,
                                        T* lds, Tile& tile) {
  Mover<A> a(p, row0);
  Mover<typename Member::B> b(p, column0);
  const int own_a = wave / kWavesN * (BLOCK_M / kWavesM) * kPitch;
  const int own_b = (BLOCK_M + wave % kWavesN * (BLOCK_N / kWavesN)) * kPitch;
  int stage = 0;
  // The first round only fetches.
  for (int32_t k0 = k_begin - BLOCK_K, next = k_begin;; k0 = next, next += BLOCK_K) {
    const bool more = next < k_end;
    if (more) {
      if (next + BLOCK_K <= k_end) {
        a.template fetch<true>(p, batch, next, k_end);
        b.template fetch<true>(p, batch, next, k_end);
      } else {
        a.template fetch<false>(p, batch, next, k_end);
        b.template fetch<false>(p, batch, next, k_end);
      }
    }
    if (k0 >= k_begin) {
      const T* from = lds + stage * kStage;
#pragma unroll Tile::kUnroll
      for (int k = 0; k < BLOCK_K; k += Tile::kStep) {
        tile.multiply(from + own_a + k, from + own_b + k, kPitch);
      }
    }
    if (!more) break;
    if constexpr (STAGES == 1) __syncthreads();
    stage = STAGES == 1 ? 0 : 1 - stage;
    T* to = lds + stage * kStage;
    a.put(to);
    b.put(to + BLOCK_M * kPitch);
    __syncthreads();
  }
}

// Stores the wave's part of the result. Without edges to look at, what is read along with it
// (a bias, a residual) is on its way for many elements at once.
template <typename Member, bool Whole>
__device__ __forceinline__ void finish(const Problem& p, const IndexBatch& batch, int32_t row0,
                                       int32_t column0, const Tile& tile) {
  using B = typename Member::B;
  typename B::Index columns[Tile::kColumns];
#pragma unroll
  for (int j = 0; j < Tile::kColumns; ++j) columns[j] = B::index(p, column0 + tile.column(j));
#pragma unroll
  for (int i = 0; i < Tile::kRows; ++i) {
    const int32_t row = row0 + tile.row(i);
    if (!Whole && row >= p.M) continue;
    const IndexM m = index_m(p, row);
#pragma unroll
    for (int j = 0; j < Tile::kColumns; ++j) {
      const typename B::Index& n = columns[j];
      if (!Whole && n.flat >= B::extent(p)) continue;
      Member::store(p, batch, m, n, tile.at(i, j));
    }
  }
}

template <typename Member>
__device__ __forceinline__ void run(const Problem& p, int32_t batch, int32_t tile_m, int32_t tile_n,
                                    T* lds) {
  const int lane = int(threadIdx.x) % KILN_WAVE_SIZE;
  const int wave = int(threadIdx.x) / KILN_WAVE_SIZE;
  const IndexBatch index = index_batch(p, batch);
  Tile tile(lane);
  const int32_t k_begin = 0, k_end = p.K;
  product<Member>(p, index, tile_m * BLOCK_M, tile_n * BLOCK_N, k_begin, k_end, wave, lds, tile);
  const int32_t row0 = tile_m * BLOCK_M + wave / kWavesN * (BLOCK_M / kWavesM);
  const int32_t column0 = tile_n * BLOCK_N + wave % kWavesN * (BLOCK_N / kWavesN);
  if ((tile_m + 1) * BLOCK_M <= p.M && (tile_n + 1) * BLOCK_N <= Member::B::extent(p)) {
    finish<Member, true>(p, index, row0, column0, tile);
  } else {
    finish<Member, false>(p, index, row0, column0, tile);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(THREADS) rocm_fused_mm_49723948_tiles(const _Float16* __restrict__ X, const _Float16* __restrict__ W, const _Float16* __restrict__ in0, _Float16* __restrict__ Y, int32_t M, int32_t N, int32_t K, int32_t batches, int64_t X_m, int64_t W_k, int64_t Y_m) {
  const Problem p{X, W, in0, Y, M, N, K, batches, X_m, W_k, Y_m};
  KILN_SHARED(T, lds, STAGES * kStage);
  // GROUP_M rows of tiles at a time, column by column: blocks that run together share B in L2.
  const int32_t tiles_m = tiles(p.M, BLOCK_M);
  const int32_t tiles_n = tiles(p.N, BLOCK_N);
  const int32_t batch = int32_t(blockIdx.x) / (tiles_m * tiles_n);
  const int32_t place = int32_t(blockIdx.x) % (tiles_m * tiles_n);
  const int32_t first = place / (GROUP_M * tiles_n) * GROUP_M;
  const int32_t rows = tiles_m - first < GROUP_M ? tiles_m - first : GROUP_M;
  const int32_t tile_m = first + place % (GROUP_M * tiles_n) % rows;
  int32_t tile_n = place % (GROUP_M * tiles_n) / rows;
  run<Member0>(p, batch, tile_m, tile_n, lds);
}

// 0, or an error of the HIP runtime. With workspace_size given, only the bytes needed are reported.
extern "C" PT_EXPORT int rocm_fused_mm_49723948(const _Float16* X, const _Float16* W, const _Float16* in0, _Float16* Y, int32_t M, int32_t N, int32_t K, int32_t batches, int64_t X_m, int64_t W_k, int64_t Y_m, size_t* workspace_size, uint8_t* workspace, hipStream_t stream) {
  const int64_t points = int64_t(batches) * M * (N);
  if (workspace_size != nullptr) {
    *workspace_size = 0;
    return hipSuccess;
  }
  if (points == 0) return hipSuccess;
  if (X == nullptr && K > 0) return kiln::kNullPointer;
  if (W == nullptr && K > 0) return kiln::kNullPointer;
  if (Y == nullptr && points > 0) return kiln::kNullPointer;
  if (reinterpret_cast<uintptr_t>(X) % (VECTOR_A * sizeof(T)) != 0) return hipErrorInvalidValue;
  if (reinterpret_cast<uintptr_t>(W) % (VECTOR_B * sizeof(T)) != 0) return hipErrorInvalidValue;
  const int64_t blocks = int64_t(batches) * tiles(M, BLOCK_M) * (tiles(N, BLOCK_N));
  if (blocks > INT32_MAX) return hipErrorInvalidConfiguration;
  hipLaunchKernelGGL(rocm_fused_mm_49723948_tiles, dim3(uint32_t(blocks), 1), dim3(THREADS), KILN_SHARED_BYTES(T, STAGES * kStage), stream,
                     X, W, in0, Y, M, N, K, batches, X_m, W_k, Y_m);
  return hipGetLastError();
}
