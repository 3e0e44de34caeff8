// Launches: the blocks of a grid over host threads, and what became of it.
#pragma once

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "block.h"

namespace kiln_cpu {

constexpr uint32_t max_threads_per_block = 1024;
constexpr size_t max_lds_bytes = 160 * 1024;  // gfx950's; no target has more
constexpr size_t page_bytes = 4096;

static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;
static hipError_t last_error = hipSuccess;
static char last_message[512];
static int host_threads = 0;  // 0: as many as the machine has
// Sums of floating point depend on their order: set where the source adds to memory atomically.
static bool blocks_in_order = false;

static void report(hipError_t error, const char* message) {
  pthread_mutex_lock(&report_lock);
  if (last_error == hipSuccess) {
    last_error = error;
    snprintf(last_message, sizeof last_message, "%s", message);
  }
  pthread_mutex_unlock(&report_lock);
}

// Ends the block of the calling thread with an error, and with it the launch.
[[noreturn]] __attribute__((noinline)) void fail(const char* what, int line) {
  Fiber* me = self();
  Worker& worker = *me->worker;
  const uint3 &b = worker.block_index, &t = me->thread_index;
  char message[sizeof last_message];
  int used = snprintf(message, sizeof message, "%s: block (%u, %u, %u), thread (%u, %u, %u): %s",
                      worker.launch->kernel, b.x, b.y, b.z, t.x, t.y, t.z, what);
  if (line > 0 && used > 0 && size_t(used) < sizeof message) {
    snprintf(message + used, sizeof message - size_t(used), " (line %d)", line);
  }
  report(hipErrorLaunchFailure, message);
  __atomic_store_n(&worker.launch->failed, 1, __ATOMIC_RELAXED);
  switch_stack(&me->stack_pointer, worker.stack_pointer);
  __builtin_unreachable();
}

inline bool next_block(Worker& worker) {
  Launch& launch = *worker.launch;
  if (__atomic_load_n(&launch.failed, __ATOMIC_RELAXED)) return false;
  uint64_t block = __atomic_fetch_add(&launch.next_block, 1, __ATOMIC_RELAXED);
  if (block >= launch.blocks) return false;
  const dim3& grid = launch.grid;
  worker.block_index = uint3{uint32_t(block % grid.x), uint32_t(block / grid.x % grid.y),
                             uint32_t(block / grid.x / grid.y)};
  for (uint32_t w = 0; w < worker.waves; ++w) {
    uint32_t first = w * KILN_WAVE_SIZE, left = worker.threads - first;
    uint32_t size = left < KILN_WAVE_SIZE ? left : KILN_WAVE_SIZE;
    worker.wave[w] = Wave{first, size, 0, 0, 0, 0, Wait::barrier};
  }
  worker.waves_waiting = worker.waves_done = 0;
  // What a block finds in dynamic LDS is not a number, rather than what the last one left.
  if (launch.lds_bytes > 0) memset(worker.lds, 0xff, launch.lds_bytes);
  return true;
}

constexpr size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Memory of one host thread at work: its tables, its LDS before a guard page, and its stacks. Kept
// from launch to launch, since touching fresh memory costs more than a small kernel.
struct alignas(64) Arena {
  char* memory;
  uint32_t guards;  // stacks that have their guard page
  int busy;         // atomic

  static constexpr size_t tables = round_up(
      sizeof(Worker) + max_threads_per_block * (sizeof(Wave) + sizeof(Fiber*)), page_bytes);
  static constexpr size_t lds_end = tables + max_lds_bytes;
  static constexpr size_t bytes =
      lds_end + page_bytes + (max_threads_per_block + 1) * stack_bytes;

  bool claim() {
    if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) return false;
    if (memory != nullptr) return true;
    void* fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fresh == MAP_FAILED) {
      give_back();
      return false;
    }
    memory = static_cast<char*>(fresh);
    mprotect(memory + lds_end, page_bytes, PROT_NONE);
    return true;
  }
  void give_back() { __atomic_store_n(&busy, 0, __ATOMIC_RELEASE); }
  void unmap() {
    if (memory != nullptr) munmap(memory, bytes);
    memory = nullptr;
    guards = 0;
  }

  // The worker that lies in it, with nothing done yet.
  Worker* prepare(Launch& launch) {
    Worker& worker = *reinterpret_cast<Worker*>(memory);
    uint32_t threads = launch.block.x * launch.block.y * launch.block.z;
    worker.launch = &launch;
    worker.arena = this;
    worker.threads = threads;
    worker.waves = (threads + KILN_WAVE_SIZE - 1) / KILN_WAVE_SIZE;
    worker.running = reinterpret_cast<Fiber**>(memory + sizeof(Worker));
    worker.wave = reinterpret_cast<Wave*>(worker.running + threads);
    for (uint32_t t = 0; t < threads; ++t) worker.running[t] = nullptr;
    worker.free = nullptr;
    worker.lds =
        reinterpret_cast<unsigned char*>(memory + lds_end - round_up(launch.lds_bytes, 128));
    auto stacks = reinterpret_cast<uintptr_t>(memory) + lds_end + page_bytes;
    worker.stacks = reinterpret_cast<char*>(round_up(stacks, stack_bytes));
    worker.stacks_used = 0;
    return &worker;
  }
};

constexpr int max_host_threads = 256;
static Arena own_arenas[max_host_threads];
static Arena* arenas = own_arenas;  // or those that all libraries of the process share

__attribute__((destructor)) static void unmap_own_arenas() {
  for (Arena& arena : own_arenas) arena.unmap();
}

__attribute__((noinline)) Fiber* fresh_fiber(Worker& worker) {
  Fiber* fiber = worker.free;
  if (fiber != nullptr) {
    worker.free = fiber->next_free;
    return fiber;
  }
  char* base = worker.stacks + worker.stacks_used++ * stack_bytes;
  if (worker.stacks_used > worker.arena->guards) {
    mprotect(base, guard_bytes, PROT_NONE);
    worker.arena->guards = worker.stacks_used;
  }
  fiber = fiber_in(reinterpret_cast<uintptr_t>(base));
  prepare(fiber, fiber_main);
  return fiber;
}

static void* run_worker(void* memory) {
  Worker& worker = *static_cast<Worker*>(memory);
  if (next_block(worker)) {
    Fiber* first = fresh_fiber(worker);
    start(first, worker, 0);
    switch_stack(&worker.stack_pointer, first->stack_pointer);
  }
  return nullptr;
}

static int threads_for(const Launch& launch) {
  if (blocks_in_order) return 1;
  long wanted = host_threads > 0 ? host_threads : sysconf(_SC_NPROCESSORS_ONLN);
  if (wanted > max_host_threads) wanted = max_host_threads;
  if (uint64_t(wanted) > launch.blocks) wanted = long(launch.blocks);
  return wanted < 1 ? 1 : int(wanted);
}

// Fewer threads than wished for are enough, as long as there is one.
static hipError_t run_grid(Launch& launch) {
  int wanted = threads_for(launch), ready = 0, started = 1;
  Worker* workers[max_host_threads];
  pthread_t others[max_host_threads];
  for (int i = 0; i < max_host_threads && ready < wanted; ++i) {
    if (arenas[i].claim()) workers[ready++] = arenas[i].prepare(launch);
  }
  if (ready == 0) return hipErrorOutOfMemory;
  for (; started < ready; ++started) {
    if (pthread_create(&others[started], nullptr, run_worker, workers[started]) != 0) break;
  }
  run_worker(workers[0]);
  for (int i = 1; i < started; ++i) pthread_join(others[i], nullptr);
  for (int i = 0; i < ready; ++i) workers[i]->arena->give_back();
  return hipSuccess;
}

static void launch_grid(const char* kernel, dim3 grid, dim3 block, size_t lds_bytes,
                        void (*call)(const void*), const void* arguments) {
  uint64_t threads = uint64_t(block.x) * block.y * block.z;
  uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z;
  char message[256];
  if (threads == 0 || threads > max_threads_per_block || blocks == 0) {
    snprintf(message, sizeof message, "%s: %llu blocks of %llu threads cannot be launched", kernel,
             (unsigned long long)blocks, (unsigned long long)threads);
    return report(hipErrorInvalidConfiguration, message);
  }
  if (lds_bytes > max_lds_bytes) {
    snprintf(message, sizeof message, "%s: %zu bytes of LDS are more than a block can have", kernel,
             lds_bytes);
    return report(hipErrorInvalidValue, message);
  }
  Launch launch{call, arguments, kernel, grid, block, lds_bytes, blocks, 0, 0};
  if (run_grid(launch) == hipErrorOutOfMemory) {
    report(hipErrorOutOfMemory, "no memory for the stacks of the emulated threads");
  }
}

// The arguments are converted to the kernel's parameters once, then passed to every thread.
template <typename... P, typename... A>
inline void launch(const char* name, void (*kernel)(P...), dim3 grid, dim3 block, size_t lds_bytes,
                   hipStream_t, A&&... arguments) {
  auto bound = [&](P... parameters) {
    auto thread = [=] { kernel(parameters...); };
    launch_grid(
        name, grid, block, lds_bytes,
        [](const void* closure) { (*static_cast<const decltype(thread)*>(closure))(); }, &thread);
  };
  bound(arguments...);
}

}  // namespace kiln_cpu

#define hipLaunchKernelGGL(kernel, grid, block, lds_bytes, stream, ...)                        \
  ::kiln_cpu::launch(#kernel, (kernel), (grid), (block), (lds_bytes), (stream)__VA_OPT__(, )   \
                         __VA_ARGS__)

inline hipError_t hipPeekAtLastError() { return ::kiln_cpu::last_error; }

inline hipError_t hipGetLastError() {
  hipError_t error = ::kiln_cpu::last_error;
  ::kiln_cpu::last_error = hipSuccess;
  return error;
}

inline hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t) {
  memset(to, value, bytes);
  return hipSuccess;
}

inline hipError_t hipFuncSetAttribute(const void*, hipFuncAttribute, int) { return hipSuccess; }

// What the runtime calls in a library built for emulation.
extern "C" {
// 0: as many as the machine has.
__attribute__((visibility("default"), used)) void kiln_cpu_set_threads(int count) {
  ::kiln_cpu::host_threads = count;
}
// Arenas for all libraries of a process: memory that is zero at first and is cleared again by
// unmapping once nothing runs. The number in the names changes when an arena's layout does.
__attribute__((visibility("default"), used)) size_t kiln_cpu_arenas_bytes_1() {
  return sizeof ::kiln_cpu::own_arenas;
}
__attribute__((visibility("default"), used)) void kiln_cpu_share_arenas_1(void* arenas) {
  ::kiln_cpu::arenas = static_cast<::kiln_cpu::Arena*>(arenas);
}
__attribute__((visibility("default"), used)) void kiln_cpu_unmap_arenas_1() {
  for (int i = 0; i < ::kiln_cpu::max_host_threads; ++i) ::kiln_cpu::arenas[i].unmap();
}
// What went wrong in the first launch that failed since this was last asked; "" for nothing.
__attribute__((visibility("default"), used)) const char* kiln_cpu_message() {
  static char message[sizeof ::kiln_cpu::last_message];
  memcpy(message, ::kiln_cpu::last_message, sizeof message);
  ::kiln_cpu::last_message[0] = 0;
  ::kiln_cpu::last_error = hipSuccess;
  return message;
}
}
