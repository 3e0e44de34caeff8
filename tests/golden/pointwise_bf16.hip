// kernel path: kernels/rocm_fused_add_fa2e718f/source.hip
// Topologically Sorted Source Nodes: [add0], Original ATen: [aten.add]
// Source node to ATen node mapping:
//   add0 => add0
// Graph fragment:
//   %x : Tensor "bf16[s27, 64][64, 1]cuda:0" = PlaceHolder[target=x]
//   %b : Tensor "f32[64][1]cuda:0" = PlaceHolder[target=b]
//   %add0 : [num_users=0] = call_function[target=torch.ops.aten.add.Tensor](args = (), kwargs = {})
//   return %y
#include <hip/hip_runtime.h>
#include <kiln/index.h>
#include <kiln/pointwise.h>
#include <kiln/types.h>
#include <kiln/vector.h>

using index_t = int32_t;
constexpr int kThreads = 256;
constexpr int kVector = 8;  // elements a thread

extern "C" __global__ void __launch_bounds__(kThreads)
rocm_fused_add_fa2e718f_kernel(const __bf16* __restrict__ in_ptr0,
    const float* __restrict__ in_ptr1,
    __bf16* __restrict__ out_ptr0,
    int32_t s27) {
  const index_t xnumel = s27 * 64;
  const index_t xindex = (static_cast<index_t>(blockIdx.x) * kThreads + threadIdx.x) * kVector;
  if (xindex >= xnumel) return;
  const index_t x1 = xindex % 64;
  const index_t xindex_1 = xindex / 64;
  const index_t x0 = xindex_1;
  const auto pack0 = kiln::load_pack<8>(in_ptr0 + x0 * 64 + x1);
  const auto pack1 = kiln::load_pack<8>(in_ptr1 + x1);
  kiln::Pack<__bf16, 8> out0;
  #pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float tmp0 = kiln::to_float(pack0[j]);
    const float tmp1 = pack1[j];
    const float tmp2 = tmp0 + tmp1;
    const float tmp3 = kiln::fast::tanh(tmp2);
    out0[j] = kiln::from_float<__bf16>(tmp3);
  }
  kiln::store_pack(out_ptr0 + x0 * 64 + x1, out0);
}

extern "C" PT_EXPORT int rocm_fused_add_fa2e718f(const __bf16* in_ptr0, const float* in_ptr1, __bf16* out_ptr0, int32_t s27, size_t* workspace_size, uint8_t* workspace, hipStream_t stream) {
  if (workspace_size != nullptr) {
    *workspace_size = 0;
    return 0;
  }
  const int64_t points = int64_t(s27) * 64;
  if (points == 0) return 0;
  if (in_ptr0 == nullptr && (int64_t(s27) * 64) > 0) return kiln::kNullPointer;
  if (in_ptr1 == nullptr && (64) > 0) return kiln::kNullPointer;
  if (out_ptr0 == nullptr && (int64_t(s27) * 64) > 0) return kiln::kNullPointer;
  hipLaunchKernelGGL(rocm_fused_add_fa2e718f_kernel, dim3((int64_t(s27) * 64 + 2047) / 2048), dim3(kThreads), 0, stream, in_ptr0, in_ptr1, out_ptr0, s27);
  return hipGetLastError();
}
