// What the lanes of a wave tell each other: shuffles, votes and the instructions beneath them.
#pragma once

#include "block.h"

namespace kiln_cpu {

// Every lane's value, in the order of the lanes; zero for lanes that the block does not have.
template <typename T>
__attribute__((noinline, convergent)) const T* gather(T value, int line) {
  static_assert(sizeof(T) * KILN_WAVE_SIZE <= sizeof(Exchange::a), "too large to pass on");
  Fiber* me = self();
  T* values = reinterpret_cast<T*>(exchange_of(me).a);
  values[me->lane] = value;
  Wave& wave = *me->wave;
  meet(me, Wait::shuffle, line, [&] {
    for (uint32_t i = wave.size; i < KILN_WAVE_SIZE; ++i) values[i] = T{};
  });
  return values;
}

inline uint64_t vote(bool predicate, int line) {
  const uint32_t* values = gather<uint32_t>(predicate, line);
  uint64_t bits = 0;
  for (int i = 0; i < KILN_WAVE_SIZE; ++i) bits |= uint64_t(values[i]) << i;
  return bits;
}

// The lane that a data-parallel-primitive (DPP) control reads; -1 outside of the row or wave.
// Table "DPP_CTRL enumeration" of AMD's ISA documents.
constexpr int dpp_source(int lane, int control) {
  int row = lane & ~15, in_row = lane & 15, amount = control & 15;
  if (control <= 0xff) return (lane & ~3) | ((control >> 2 * (lane & 3)) & 3);
  if (control >= 0x101 && control <= 0x10f) return in_row + amount < 16 ? lane + amount : -1;
  if (control >= 0x111 && control <= 0x11f) return in_row >= amount ? lane - amount : -1;
  if (control >= 0x121 && control <= 0x12f) return row | ((in_row - amount) & 15);
  if (control == 0x140) return row | (15 - in_row);
  if (control == 0x141) return (lane & ~7) | (7 - (lane & 7));
#if KILN_WAVE_SIZE == 64
  if (control == 0x130) return lane + 1 < 64 ? lane + 1 : -1;
  if (control == 0x134) return (lane + 1) & 63;
  if (control == 0x138) return lane - 1;
  if (control == 0x13c) return (lane - 1) & 63;
  if (control == 0x142) return row - 1;
  if (control == 0x143) return lane >= 32 ? 31 : -1;
#else
  if (control >= 0x150 && control <= 0x15f) return row | amount;
  if (control >= 0x160 && control <= 0x16f) return row | (in_row ^ amount);
#endif
  return -2;
}

}  // namespace kiln_cpu

// As in HIP: a lane outside its segment of `width` lanes gives the caller's own value.
template <typename T>
inline T __shfl(T value, int lane, int width = warpSize, int line = __builtin_LINE()) {
  int self = int(__lane_id());
  int source = (lane & (width - 1)) + (self & ~(width - 1));
  return ::kiln_cpu::gather(value, line)[source & (warpSize - 1)];
}
template <typename T>
inline T __shfl_xor(T value, int mask, int width = warpSize, int line = __builtin_LINE()) {
  int self = int(__lane_id()), lane = self ^ mask;
  int source = lane >= ((self + width) & ~(width - 1)) ? self : lane;
  return ::kiln_cpu::gather(value, line)[source & (warpSize - 1)];
}
template <typename T>
inline T __shfl_down(T value, unsigned delta, int width = warpSize, int line = __builtin_LINE()) {
  int self = int(__lane_id());
  int source = (self & (width - 1)) + int(delta) >= width ? self : self + int(delta);
  return ::kiln_cpu::gather(value, line)[source & (warpSize - 1)];
}
template <typename T>
inline T __shfl_up(T value, unsigned delta, int width = warpSize, int line = __builtin_LINE()) {
  int self = int(__lane_id()), lane = self - int(delta);
  int source = lane < (self & ~(width - 1)) ? self : lane;
  return ::kiln_cpu::gather(value, line)[source & (warpSize - 1)];
}

inline uint64_t __ballot(int predicate, int line = __builtin_LINE()) {
  return ::kiln_cpu::vote(predicate != 0, line);
}
inline int __any(int predicate, int line = __builtin_LINE()) {
  return ::kiln_cpu::vote(predicate != 0, line) != 0;
}
inline int __all(int predicate, int line = __builtin_LINE()) {
  uint32_t size = ::kiln_cpu::self()->wave->size;
  return __builtin_popcountll(::kiln_cpu::vote(predicate != 0, line)) == int(size);
}
inline int __popc(uint32_t bits) { return __builtin_popcount(bits); }
inline int __popcll(uint64_t bits) { return __builtin_popcountll(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(uint32_t(bits)); }

// ---- the instructions beneath them, by the compiler's names for AMD GPUs ----------------------

inline uint64_t __builtin_amdgcn_ballot_w64(bool predicate, int line = __builtin_LINE()) {
  return ::kiln_cpu::vote(predicate, line);
}
inline uint32_t __builtin_amdgcn_ballot_w32(bool predicate, int line = __builtin_LINE()) {
  return uint32_t(::kiln_cpu::vote(predicate, line));
}
inline int __builtin_amdgcn_ds_bpermute(int address, int value, int line = __builtin_LINE()) {
  return ::kiln_cpu::gather(value, line)[(uint32_t(address) >> 2) & (warpSize - 1)];
}
// Where several lanes write to one, the highest of them wins; a lane that none writes to gets 0.
inline int __builtin_amdgcn_ds_permute(int address, int value, int line = __builtin_LINE()) {
  struct Sent {
    int address, value;
  };
  const Sent* sent = ::kiln_cpu::gather(Sent{address, value}, line);
  int lane = int(__lane_id()), result = 0, lanes = int(::kiln_cpu::self()->wave->size);
  for (int i = 0; i < lanes; ++i) {
    if (int((uint32_t(sent[i].address) >> 2) & (warpSize - 1)) == lane) result = sent[i].value;
  }
  return result;
}
inline int __builtin_amdgcn_readfirstlane(int value, int line = __builtin_LINE()) {
  return ::kiln_cpu::gather(value, line)[0];
}
inline int __builtin_amdgcn_readlane(int value, int lane, int line = __builtin_LINE()) {
  return ::kiln_cpu::gather(value, line)[lane & (warpSize - 1)];
}
inline int __builtin_amdgcn_ds_swizzle(int value, int pattern, int line = __builtin_LINE()) {
  int lane = int(__lane_id()), source;
  if (pattern & 0x8000) {
    source = (lane & ~3) | ((pattern >> 2 * (lane & 3)) & 3);
  } else {
    int in_half = lane & 31;
    in_half = ((in_half & (pattern & 31)) | ((pattern >> 5) & 31)) ^ ((pattern >> 10) & 31);
    source = (lane & ~31) | in_half;
  }
  return ::kiln_cpu::gather(value, line)[source];
}
inline int __builtin_amdgcn_update_dpp(int old, int value, int control, int row_mask, int bank_mask,
                                       bool bound_control, int line = __builtin_LINE()) {
  int lane = int(__lane_id());
  const int* values = ::kiln_cpu::gather(value, line);
  if (!((row_mask >> lane / 16) & 1) || !((bank_mask >> lane % 16 / 4) & 1)) return old;
  int source = ::kiln_cpu::dpp_source(lane, control);
  if (source == -2) ::kiln_cpu::fail("this DPP control does not exist on the target", line);
  bool valid = source >= 0 && source < int(::kiln_cpu::self()->wave->size);
  return valid ? values[source] : bound_control ? 0 : old;
}
inline int __builtin_amdgcn_mov_dpp(int value, int control, int row_mask, int bank_mask,
                                    bool bound_control, int line = __builtin_LINE()) {
  return __builtin_amdgcn_update_dpp(0, value, control, row_mask, bank_mask, bound_control, line);
}
inline uint32_t __builtin_amdgcn_mbcnt_lo(uint32_t mask, uint32_t base) {
  uint32_t lane = __lane_id();
  return base + uint32_t(__builtin_popcount(lane >= 32 ? mask : mask & ((1u << lane) - 1)));
}
inline uint32_t __builtin_amdgcn_mbcnt_hi(uint32_t mask, uint32_t base) {
  uint32_t lane = __lane_id();
  return lane < 32 ? base : base + uint32_t(__builtin_popcount(mask & ((1u << (lane - 32)) - 1)));
}
inline uint32_t __builtin_amdgcn_wavefrontsize() { return KILN_WAVE_SIZE; }

inline void __builtin_amdgcn_s_barrier(int line = __builtin_LINE()) { ::kiln_cpu::barrier(line); }
// Lanes of a wave run one after the other here, so that order within a wave needs a meeting.
inline void __builtin_amdgcn_wave_barrier(int line = __builtin_LINE()) {
  ::kiln_cpu::gather(0, line);
}
// A block's threads share one host thread; between blocks the host's own fence serves.
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __builtin_amdgcn_fence(int, const char*, ...) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
// Hints to the scheduler of instructions.
inline void __builtin_amdgcn_sched_barrier(int) {}
inline void __builtin_amdgcn_sched_group_barrier(int, int, int) {}
inline void __builtin_amdgcn_iglp_opt(int) {}
inline void __builtin_amdgcn_s_setprio(int) {}
inline void __builtin_amdgcn_s_waitcnt(int) {}
inline void __builtin_amdgcn_s_sleep(int) {}
