// kernel path: kernels/rocm_fused_add_625b241a/source.hip
// Topologically Sorted Source Nodes: [add0], Original ATen: [aten.add]
// Source node to ATen node mapping:
//   add0 => add0
// Graph fragment:
//   %q : Tensor "f16[2, s27, 4, 64][256*s27, 256, 64, 1]cuda:0" = PlaceHolder[target=q]
//   %k : Tensor "f16[2, 2, 512, 64][65536, 32768, 64, 1]cuda:0" = PlaceHolder[target=k]
//   %v : Tensor "f16[2, 2, 512, 64][65536, 32768, 64, 1]cuda:0" = PlaceHolder[target=v]
//   %add0 : [num_users=0] = call_function[target=torch.ops.aten.add.Tensor](args = (), kwargs = {})
//   return %o
#include <hip/hip_runtime.h>
#include <kiln/index.h>
#include <kiln/pointwise.h>
#include <kiln/types.h>
#include <kiln/vector.h>
#include <kiln/attention.h>
#include <kiln/wave.h>

using index_t = int32_t;
using T = _Float16;  // of the tiles in LDS
using Acc = typename kiln::mma::Accumulate<T>::type;
constexpr int kThreads = 64;
constexpr int kWaves = kThreads / kiln::wave_size;
constexpr int kBlockM = 32, kBlockN = 64;
constexpr int kWaveM = kBlockM / kWaves;
constexpr int kDepth = 64;  // 64 and zeros
constexpr int kValueDepth = 64;  // 64 and zeros
constexpr int kPad = 16 / sizeof(T);  // rows begin on different banks
constexpr int kPitchDepth = kDepth + kPad, kPitchN = kBlockN + kPad;
constexpr int kShared = (kBlockM + kBlockN) * kPitchDepth + (kValueDepth + kBlockM) * kPitchN;
constexpr Acc kScale = 0.125f;
constexpr Acc kLog2E = 1.4426950408889634;

extern "C" __global__ void __launch_bounds__(kThreads)
rocm_fused_add_625b241a_kernel(const _Float16* __restrict__ in_ptr0,
    const _Float16* __restrict__ in_ptr1,
    const _Float16* __restrict__ in_ptr2,
    _Float16* __restrict__ out_ptr0,
    int32_t s27) {
  using Scores = kiln::mma::Tile<T, kWaveM, kBlockN>;
  using Output = kiln::mma::Tile<T, kWaveM, kValueDepth>;
  static_assert(kDepth % Scores::kStep == 0 && kBlockN % Output::kStep == 0, "whole steps");
  constexpr int kRowLanes = kiln::mma::lanes_of_row<Scores>();
  KILN_SHARED(T, lds, kShared);
  T* const q_tile = lds;
  T* const k_tile = q_tile + kBlockM * kPitchDepth;
  T* const v_tile = k_tile + kBlockN * kPitchDepth;  // transposed
  T* const p_tile = v_tile + kValueDepth * kPitchN;

  const index_t rows = s27;
  const index_t columns = 512;
  const index_t row_blocks = (rows + kBlockM - 1) / kBlockM;
  const index_t first_row = static_cast<index_t>(blockIdx.x) % row_blocks * kBlockM;
  const index_t batch = static_cast<index_t>(blockIdx.x) / row_blocks;
  const index_t b1 = batch % 4;
  const index_t batch_1 = batch / 4;
  const index_t b0 = batch_1;
  const int lane = threadIdx.x % kiln::wave_size;
  const int wave_row = threadIdx.x / kiln::wave_size * kWaveM;

    for (int e = threadIdx.x; e < kBlockM * (kDepth / 8); e += kThreads) {
      const int tile_row = e / (kDepth / 8);
      const index_t depth = e % (kDepth / 8) * 8;
      const index_t row = first_row + tile_row;
      kiln::Pack<T, 8> element = {};
      if (row < rows && depth < 64) {
        const auto pack0 = kiln::load_pack<8>(in_ptr0 + b1 * 64 + row * 256 + b0 * s27 * 256 + depth);
        #pragma unroll
        for (int j = 0; j < 8; ++j) {
          element[j] = pack0[j];
        }
      }
      kiln::store_pack(q_tile + tile_row * kPitchDepth + depth, element);
    }

  Output output(lane);
  Acc highest[Scores::kRows], total[Scores::kRows];  // the total is this lane's own part
#pragma unroll
  for (int i = 0; i < Scores::kRows; ++i) {
    highest[i] = kiln::lowest<Acc>();
    total[i] = 0;
  }

  const index_t last = first_row + kBlockM < columns ? first_row + kBlockM : columns;
  for (index_t first_column = 0; first_column < last; first_column += kBlockN) {
    __syncthreads();
    for (int e = threadIdx.x; e < kBlockN * (kDepth / 8); e += kThreads) {
      const int tile_row = e / (kDepth / 8);
      const index_t depth = e % (kDepth / 8) * 8;
      const index_t column = first_column + tile_row;
      kiln::Pack<T, 8> element = {};
      if (column < columns && depth < 64) {
        const auto pack0 = kiln::load_pack<8>(in_ptr1 + column * 64 + (b1 / 2) * 32768 + b0 * 65536 + depth);
        #pragma unroll
        for (int j = 0; j < 8; ++j) {
          element[j] = pack0[j];
        }
      }
      kiln::store_pack(k_tile + tile_row * kPitchDepth + depth, element);
    }
    for (int e = threadIdx.x; e < kBlockN * (kValueDepth / 8); e += kThreads) {
      const int tile_row = e / (kValueDepth / 8);
      const index_t value_depth = e % (kValueDepth / 8) * 8;
      const index_t column = first_column + tile_row;
      kiln::Pack<T, 8> element = {};
      if (column < columns && value_depth < 64) {
        const auto pack0 = kiln::load_pack<8>(in_ptr2 + column * 64 + (b1 / 2) * 32768 + b0 * 65536 + value_depth);
        #pragma unroll
        for (int j = 0; j < 8; ++j) {
          element[j] = pack0[j];
        }
      }
#pragma unroll
      for (int j = 0; j < 8; ++j) v_tile[(value_depth + j) * kPitchN + tile_row] = element[j];
    }
    __syncthreads();

    Scores scores(lane);
#pragma unroll Scores::kUnroll
    for (int d = 0; d < kDepth; d += Scores::kStep) {
      scores.multiply(q_tile + wave_row * kPitchDepth + d, k_tile + d, kPitchDepth);
    }
#pragma unroll
    for (int i = 0; i < Scores::kRows; ++i) {
      const index_t row = first_row + wave_row + scores.row(i);
      Acc tile_highest = kiln::lowest<Acc>();
#pragma unroll
      for (int j = 0; j < Scores::kColumns; ++j) {
        const index_t column = first_column + scores.column(j);
        Acc score = kiln::lowest<Acc>();
        if (row < rows && column < columns && column <= row) {
          score = scores.at(i, j) * kScale;
        }
        kiln::mma::put(scores, i, j, score);
        tile_highest = kiln::maximum(tile_highest, score);
      }
      tile_highest = kiln::wave_reduce<kRowLanes>(tile_highest, kiln::Max<Acc>());
      const Acc now = kiln::maximum(highest[i], tile_highest);
      // While every score is minus infinity there is nothing to shift by.
      const Acc shift = now == kiln::lowest<Acc>() ? Acc(0) : now;
      const Acc keep = kiln::exp2((highest[i] - shift) * kLog2E);
      highest[i] = now;
      Acc sum = 0;
#pragma unroll
      for (int j = 0; j < Scores::kColumns; ++j) {
        const Acc power = kiln::exp2((scores.at(i, j) - shift) * kLog2E);
        sum += power;
        p_tile[(wave_row + scores.row(i)) * kPitchN + scores.column(j)] = kiln::from_float<_Float16>(power);
      }
      total[i] = total[i] * keep + sum;
#pragma unroll
      for (int j = 0; j < Output::kColumns; ++j) {
        kiln::mma::put(output, i, j, output.at(i, j) * keep);
      }
    }
    __syncthreads();
#pragma unroll Output::kUnroll
    for (int n = 0; n < kBlockN; n += Output::kStep) {
      output.multiply(p_tile + wave_row * kPitchN + n, v_tile + n, kPitchN);
    }
  }

#pragma unroll
  for (int i = 0; i < Output::kRows; ++i) {
    const index_t row = first_row + wave_row + output.row(i);
    const Acc sum = kiln::wave_reduce<kRowLanes>(total[i], kiln::Sum<Acc>());
    const Acc inverse = sum == 0 ? Acc(0) : Acc(1) / sum;  // a row without a column gives zeros
#pragma unroll
    for (int j = 0; j < Output::kColumns; ++j) {
      const index_t value_depth = output.column(j);
      if (row < rows && value_depth < 64) {
        const Acc acc = output.at(i, j) * inverse;
        const float tmp0 = acc + acc;
        out_ptr0[b1 * 64 + row * 256 + b0 * s27 * 256 + value_depth] = kiln::from_float<_Float16>(tmp0);
      }
    }
  }
}

extern "C" PT_EXPORT int rocm_fused_add_625b241a(const _Float16* in_ptr0, const _Float16* in_ptr1, const _Float16* in_ptr2, _Float16* out_ptr0, int32_t s27, size_t* workspace_size, uint8_t* workspace, hipStream_t stream) {
  if (workspace_size != nullptr) {
    *workspace_size = 0;
    return 0;
  }
  const int64_t points = int64_t(s27) * 512;
  if (points == 0) return 0;
  if (in_ptr0 == nullptr && (int64_t(s27) * 512) > 0) return kiln::kNullPointer;
  if (in_ptr1 == nullptr && (131072) > 0) return kiln::kNullPointer;
  if (in_ptr2 == nullptr && (131072) > 0) return kiln::kNullPointer;
  if (out_ptr0 == nullptr && (int64_t(s27) * 512) > 0) return kiln::kNullPointer;
  hipLaunchKernelGGL(rocm_fused_add_625b241a_kernel, dim3(((int64_t(s27) + 31) / 32) * 8), dim3(kThreads), KILN_SHARED_BYTES(T, kShared), stream, in_ptr0, in_ptr1, in_ptr2, out_ptr0, s27);
  return hipGetLastError();
}
