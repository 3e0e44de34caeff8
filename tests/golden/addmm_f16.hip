// kernel path: kernels/rocm_fused_mm_527b211c/source.hip
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
#include <kiln/block_order.h>
#include <kiln/operand.h>
#include <kiln/product.h>
#include <kiln/vector.h>

namespace {

constexpr int BLOCK_M = 64;
constexpr int BLOCK_N = 64;
constexpr int BLOCK_K = 64;
constexpr int THREADS = 256;
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
using Tile = kiln::mma::Product<T, BLOCK_M / kWavesM, BLOCK_N / kWavesN, 16>;
static_assert(BLOCK_K % Tile::kStep == 0, "a step along k must divide BLOCK_K");

constexpr int kStage = (BLOCK_M + BLOCK_N) * BLOCK_K;

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
  // Whether steps of BLOCK_K, from multiples of it on, move all lanes alike; whether they end with k.
  static constexpr bool kUniform = true, kWhole = false;
  using Index = IndexM;
  struct Row {
    uint32_t at;
  };
  struct Step {
    uint32_t at;
  };
  static __device__ __forceinline__ int32_t extent(const Problem& p) { return p.M; }
  static __device__ __forceinline__ Index index(const Problem& p, int32_t row) {
    return index_m(p, row);
  }
  // What a row adds, once a block; `own` is the lane's k within a step, where steps are uniform.
  static __device__ __forceinline__ Row row(const Problem& p, const IndexBatch& batch,
                                            const Index& m, int32_t own) {
    Row row;
    row.at = (uint32_t(p.X_m) * uint32_t(m.flat) + (kUniform ? uint32_t(own) : uint32_t(0))) * sizeof(T);
    return row;
  }
  // What k adds, once a step.
  static __device__ __forceinline__ Step step(const Problem& p, const IndexK& k) {
    Step step;
    step.at = (uint32_t(k.flat)) * sizeof(T);
    return step;
  }
  // Zeros where not `inside`.
  static __device__ __forceinline__ Vec<T, kV> read(const Problem& p, const IndexBatch& batch, const Row& row,
                                                    const Step& step, bool inside) {
    return kiln::operand::read<kV, kUniform>(p.X, row.at, step.at, inside);
  }
};

struct B0 {
  static constexpr int kRows = BLOCK_N, kV = VECTOR_B;
  static constexpr bool kAlongK = false;
  // Whether steps of BLOCK_K, from multiples of it on, move all lanes alike; whether they end with k.
  static constexpr bool kUniform = true, kWhole = false;
  using Index = IndexN;
  struct Row {
    uint32_t at;
  };
  struct Step {
    uint32_t at;
  };
  static __device__ __forceinline__ int32_t extent(const Problem& p) { return p.N; }
  static __device__ __forceinline__ Index index(const Problem& p, int32_t row) {
    return index_n(p, row);
  }
  // What a row adds, once a block; `own` is the lane's k within a step, where steps are uniform.
  static __device__ __forceinline__ Row row(const Problem& p, const IndexBatch& batch,
                                            const Index& n, int32_t own) {
    Row row;
    row.at = (uint32_t(n.flat) + (kUniform ? uint32_t(p.W_k) * uint32_t(own) : uint32_t(0))) * sizeof(T);
    return row;
  }
  // What k adds, once a step.
  static __device__ __forceinline__ Step step(const Problem& p, const IndexK& k) {
    Step step;
    step.at = (uint32_t(p.W_k) * uint32_t(k.flat)) * sizeof(T);
    return step;
  }
  // Zeros where not `inside`.
  static __device__ __forceinline__ Vec<T, kV> read(const Problem& p, const IndexBatch& batch, const Row& row,
                                                    const Step& step, bool inside) {
    return kiln::operand::read<kV, kUniform>(p.W, row.at, step.at, inside);
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
  // Whether W neighbours in a row lie at multiples of their size, or of 16 bytes.
  template <int W>
  static __device__ __forceinline__ bool packs(const Problem& p) {
    return kiln::mma::is_run<W>(p.Y, p.Y_m) && kiln::mma::is_run<W>(p.in0, 0);
  }
  // W neighbours, from n on.
  template <int W>
  static __device__ __forceinline__ void store_run(const Problem& p, const IndexBatch& batch,
                                                   const IndexM& m, const B::Index& n,
                                                   const Acc* acc) {
    const auto pack0 = kiln::mma::load_run<W>(p.in0 + (n.flat));
    kiln::Pack<_Float16, W> out0;
    #pragma unroll
    for (int j = 0; j < W; ++j) {
      const float tmp0 = kiln::to_float(pack0[j]);
      const float tmp1 = acc[j] + tmp0;
      out0[j] = kiln::from_float<_Float16>(tmp1);
    }
    kiln::mma::store_run(p.Y + (p.Y_m * m.flat + n.flat), out0);
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
  // neighbouring k and writes 8 bytes at once, and neighbouring lanes take 128 bytes of a line (f32:
  // 64) before the next k, so that they write to different banks.
  static constexpr int pack() {
    int most = kAlongK || kV == 1 ? 1 : 8 / sizeof(T);
    while (kTotal % (most * THREADS) != 0 && most > 1) most /= 2;
    return most;
  }
  static constexpr int kPack = pack(), kPacks = BLOCK_K / kPack;
  static constexpr int kWidest = 16 / sizeof(T);
  static constexpr int kAcross = kV == 1 || kLine < kWidest ? kLine : kWidest;
  static constexpr int kCount = (kTotal / kPack + THREADS - 1) / THREADS * kPack;
  typename Operand::Row rows[kCount];
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
  __device__ __forceinline__ Mover(const Problem& p, const IndexBatch& batch, int32_t first_row) {
    const int32_t last = Operand::extent(p) - (kAlongK ? 1 : kV);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int32_t wanted = first_row + row(i);
      rows[i] = Operand::row(p, batch, Operand::index(p, wanted < last ? wanted : last), k(i));
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
      const bool inside = Whole || Operand::kWhole || at < k_end;
      const auto step = Operand::step(p, index_k(p, Operand::kUniform ? k0 : at));
      held[i] = Operand::read(p, batch, rows[i], step, inside);
    }
  }

  template <typename Slots>
  __device__ __forceinline__ void put(T* lds) const {
    using Rows = kiln::mma::TileRows<T, BLOCK_K>;
#pragma unroll
    for (int i = 0; i < kCount; i += kPack) {
      if (idle(i)) continue;
      if constexpr (kAlongK) {
        *reinterpret_cast<Vec<T, kV>*>(lds + Rows::place(Slots::slot(row(i)), k(i))) = held[i];
      } else {
#pragma unroll
        for (int v = 0; v < kV; ++v) {
          Vec<T, kPack> turned;
#pragma unroll
          for (int j = 0; j < kPack; ++j) turned[j] = held[i + j][v];
          *reinterpret_cast<Vec<T, kPack>*>(lds + Rows::place(Slots::slot(row(i) + v), k(i))) = turned;
        }
      }
    }
  }
};

// Rows of A lie in order.
struct InOrder {
  static constexpr __device__ __forceinline__ int slot(int row) { return row; }
};

// The block's product over [k_begin, k_end). While one tile is multiplied, the next is written to LDS
// and the one after that is on its way from memory.
template <typename Member, typename Tile>
__device__ __forceinline__ void product(const Problem& p, const IndexBatch& batch, int32_t row0,
                                        int32_t column0, int32_t k_begin, int32_t k_end, int wave,
                                        T* lds, Tile& tile) {
  if (k_begin >= k_end) return;
  Mover<A> a(p, batch, row0);
  Mover<typename Member::B> b(p, batch, column0);
  using Rows = kiln::mma::TileRows<T, BLOCK_K>;
  const int own_a = wave / kWavesN * (BLOCK_M / kWavesM);
  const int own_b = wave % kWavesN * (BLOCK_N / kWavesN);
  const auto put = [&](int stage) {
    a.template put<InOrder>(lds + stage * kStage);
    b.template put<Tile>(lds + stage * kStage + BLOCK_M * BLOCK_K);
  };
  // What is no whole tile comes first: the loop has nothing to look at.
  int32_t next = k_begin + (k_end - k_begin - 1) % BLOCK_K + 1;
  a.template fetch<false>(p, batch, k_begin, next);
  b.template fetch<false>(p, batch, k_begin, next);
  put(0);
  const auto fetch = [&](int32_t from) {
    const int32_t last = k_end - BLOCK_K;  // once more, where there is no other
    a.template fetch<true>(p, batch, from < last ? from : last, k_end);
    b.template fetch<true>(p, batch, from < last ? from : last, k_end);
  };
  if (next < k_end) fetch(next);
  __syncthreads();
  const auto rows_a = [&](int stage) { return Rows{lds + stage * kStage, own_a}; };
  const auto rows_b = [&](int stage) { return Rows{lds + stage * kStage + BLOCK_M * BLOCK_K, own_b}; };
  int stage = 0;
  if constexpr (Tile::kAhead) {
    constexpr bool kStraight = A::kAlongK && Member::B::kAlongK && BLOCK_K == Tile::kStep;
    // With one buffer waves wait twice: what is read and loaded then stands among products.
    constexpr bool kSpread = STAGES == 1 && Tile::kSpreads;
    typename Tile::Ahead ahead;
    tile.read_ahead(ahead, rows_a(0), rows_b(0), 0);
    for (; next < k_end; next += BLOCK_K) {
      const int other = STAGES == 1 ? 0 : 1 - stage;
#pragma unroll
      for (int k = 0; k < BLOCK_K; k += Tile::kStep) {
        const bool last = k + Tile::kStep == BLOCK_K;
        const auto first = [&] {
          if (STAGES == 1 ? !last : k > 0) return;
          if constexpr (STAGES == 1) __syncthreads();
          put(other);
          fetch(next + BLOCK_K);
          // Written before the products, it has arrived when all wait for it; what is turned takes longer.
          if constexpr (kStraight) kiln::mma::in_this_order();
        };
        const auto second = [&] {
          if constexpr (kSpread) {
            constexpr int kLoads = Mover<A>::kCount + Mover<typename Member::B>::kCount;
            if (last) kiln::mma::loads_among_products<kLoads>();
            kiln::mma::in_this_order();
          }
          if (last) __syncthreads();
          if constexpr (kSpread) kiln::mma::in_this_order();
          tile.read_ahead(ahead, rows_a(last ? other : stage), rows_b(last ? other : stage), last ? 0 : k + Tile::kStep);
        };
        tile.template multiply_ahead<kSpread>(ahead, rows_a(stage), k, first, second);
      }
      stage = other;
    }
#pragma unroll
    for (int k = 0; k < BLOCK_K; k += Tile::kStep) {
      const auto second = [&] {
        if (k + Tile::kStep < BLOCK_K) tile.read_ahead(ahead, rows_a(stage), rows_b(stage), k + Tile::kStep);
      };
      tile.template multiply_ahead<false>(ahead, rows_a(stage), k, [] {}, second);
    }
  } else {
    const auto multiply = [&](int stage) {
#pragma unroll Tile::kUnroll
      for (int k = 0; k < BLOCK_K; k += Tile::kStep) {
        tile.multiply_rows(rows_a(stage), rows_b(stage), k, [] {});
      }
    };
    for (; next < k_end; next += BLOCK_K) {
      if constexpr (STAGES == 2) put(1 - stage);
      if constexpr (STAGES == 2) fetch(next + BLOCK_K);
      multiply(stage);
      if constexpr (STAGES == 1) {
        __syncthreads();
        put(0);
        fetch(next + BLOCK_K);
      }
      stage = STAGES == 1 ? 0 : 1 - stage;
      __syncthreads();
    }
    multiply(stage);
  }
}

// Stores the wave's part of the result, a row at a time, runs of neighbours at once where they lie
// at multiples of their size. Blocks at an edge look at each row and run.
template <typename Member, bool Whole>
__device__ __forceinline__ void finish(const Problem& p, const IndexBatch& batch, int32_t row0,
                                       int32_t column0, const Tile& tile) {
  using B = typename Member::B;
  constexpr int kRun = Tile::kRun;
  const bool packs = Member::template packs<kRun>(p);
#pragma unroll kiln::mma::kRowsInARow
  for (int i = 0; i < Tile::kRows; ++i) {
    Acc results[Tile::kRuns * kRun];
    kiln::mma::take_row(tile, i, results);
    const int32_t row = row0 + tile.row(i);
    if (!Whole && row >= p.M) continue;
    const IndexM m = index_m(p, row);
#pragma unroll
    for (int j = 0; j < Tile::kRuns; ++j) {
      const int32_t column = column0 + tile.column(j);
      if (packs && (Whole || column + kRun <= B::extent(p))) {
        Member::template store_run<kRun>(p, batch, m, B::index(p, column), results + j * kRun);
      } else {
#pragma unroll
        for (int v = 0; v < kRun; ++v) {
          if (!Whole && column + v >= B::extent(p)) continue;
          const typename B::Index n = B::index(p, column + v);
          Member::store(p, batch, m, n, results[j * kRun + v]);
        }
      }
    }
  }
}
template <typename Member>
__device__ __forceinline__ void run(const Problem& p, int32_t batch, int32_t tile_m, int32_t tile_n,
                                    T* lds) {
  const int lane = int(threadIdx.x) % KILN_WAVE_SIZE;
  const int wave = kiln::mma::uniform(int(threadIdx.x) / KILN_WAVE_SIZE);
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

extern "C" __global__ void __launch_bounds__(THREADS) rocm_fused_mm_527b211c_tiles(const _Float16* __restrict__ X, const _Float16* __restrict__ W, const _Float16* __restrict__ in0, _Float16* __restrict__ Y, int32_t M, int32_t N, int32_t K, int32_t batches, int64_t X_m, int64_t W_k, int64_t Y_m) {
  const Problem p{X, W, in0, Y, M, N, K, batches, X_m, W_k, Y_m};
  KILN_SHARED(T, lds, STAGES * kStage);
  const int32_t tiles_m = tiles(p.M, BLOCK_M);
  const int32_t tiles_n = tiles(p.N, BLOCK_N);
  const int32_t block = kiln::block_place(int32_t(blockIdx.x), int32_t(gridDim.x));
  const int32_t batch = block / (tiles_m * tiles_n);
  const auto place = kiln::tile_place<GROUP_M>(block % (tiles_m * tiles_n), tiles_m, tiles_n);
  const int32_t tile_m = place.m;
  int32_t tile_n = place.n;
  run<Member0>(p, batch, tile_m, tile_n, lds);
}

// 0, or an error of the HIP runtime. With workspace_size given, only the bytes needed are reported.
extern "C" PT_EXPORT int rocm_fused_mm_527b211c(const _Float16* X, const _Float16* W, const _Float16* in0, _Float16* Y, int32_t M, int32_t N, int32_t K, int32_t batches, int64_t X_m, int64_t W_k, int64_t Y_m, size_t* workspace_size, uint8_t* workspace, hipStream_t stream) {
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
  hipLaunchKernelGGL(rocm_fused_mm_527b211c_tiles, dim3(uint32_t(blocks), 1), dim3(THREADS), KILN_SHARED_BYTES(T, STAGES * kStage), stream,
                     X, W, in0, Y, M, N, K, batches, X_m, W_k, Y_m);
  return hipGetLastError();
}
