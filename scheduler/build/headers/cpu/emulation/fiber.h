// A GPU thread that can wait: a stack of its own, and what the thread knows of itself.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "types.h"

namespace kiln_cpu {

struct Worker;
struct Wave;

// Each stack is aligned to its size, so that the stack pointer alone tells which fiber runs: no
// thread-local look-up. The lowest page is a guard: an overflow is a fault, not silent damage.
constexpr size_t stack_bytes = 128 * 1024;
constexpr size_t guard_bytes = 4096;
// Neighbours' hot lines would share the cache sets of a power of two: each stack starts elsewhere.
constexpr size_t colours = 32, colour_bytes = 1024 + 64;

struct alignas(64) Fiber {
  void* stack_pointer;  // while it does not run
  Worker* worker;
  Wave* wave;
  Fiber* next_free;
  uint32_t thread;  // linear in the block
  uint32_t lane;
  uint3 thread_index;
};

inline Fiber* fiber_in(uintptr_t base) {
  uintptr_t colour = (base / stack_bytes) % colours * colour_bytes;
  return reinterpret_cast<Fiber*>(base + stack_bytes - colour - sizeof(Fiber));
}

inline Fiber* self() {
  uintptr_t stack_pointer;
#if defined(__x86_64__)
  asm("movq %%rsp, %0" : "=r"(stack_pointer));
#elif defined(__aarch64__)
  asm("mov %0, sp" : "=r"(stack_pointer));
#else
#error "the CPU emulation knows x86-64 and aarch64 hosts only"
#endif
  return fiber_in(stack_pointer & ~(uintptr_t(stack_bytes) - 1));
}

// Leaves the running stack, its pointer in *save, and goes on where `load` was left.
__attribute__((naked, noinline)) static void switch_stack(void** /*save*/, void* /*load*/) {
#if defined(__x86_64__)
  asm("pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
      "movq %rsp, (%rdi)\n\tmovq %rsi, %rsp\n\t"
      "popq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\tretq");
#else
  asm("sub sp, sp, #160\n\t"
      "stp x19, x20, [sp, #0]\n\tstp x21, x22, [sp, #16]\n\tstp x23, x24, [sp, #32]\n\t"
      "stp x25, x26, [sp, #48]\n\tstp x27, x28, [sp, #64]\n\tstp x29, x30, [sp, #80]\n\t"
      "stp d8, d9, [sp, #96]\n\tstp d10, d11, [sp, #112]\n\tstp d12, d13, [sp, #128]\n\t"
      "stp d14, d15, [sp, #144]\n\t"
      "mov x9, sp\n\tstr x9, [x0]\n\tmov sp, x1\n\t"
      "ldp x19, x20, [sp, #0]\n\tldp x21, x22, [sp, #16]\n\tldp x23, x24, [sp, #32]\n\t"
      "ldp x25, x26, [sp, #48]\n\tldp x27, x28, [sp, #64]\n\tldp x29, x30, [sp, #80]\n\t"
      "ldp d8, d9, [sp, #96]\n\tldp d10, d11, [sp, #112]\n\tldp d12, d13, [sp, #128]\n\t"
      "ldp d14, d15, [sp, #144]\n\t"
      "add sp, sp, #160\n\tret");
#endif
}

// Makes the fiber begin in `entry`, which must not return.
inline void prepare(Fiber* fiber, void (*entry)()) {
  auto top = reinterpret_cast<uintptr_t>(fiber) & ~uintptr_t(63);
#if defined(__x86_64__)
  // Six saved registers, the address to return to, and one word where a caller's would be.
  auto frame = reinterpret_cast<void**>(top) - 8;
  for (int i = 0; i < 8; ++i) frame[i] = nullptr;
  frame[6] = reinterpret_cast<void*>(entry);
#else
  auto frame = reinterpret_cast<void**>(top) - 20;
  for (int i = 0; i < 20; ++i) frame[i] = nullptr;
  frame[11] = reinterpret_cast<void*>(entry);  // x30
#endif
  fiber->stack_pointer = frame;
}

}  // namespace kiln_cpu
