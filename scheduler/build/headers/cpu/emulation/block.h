// How a block's threads run on one host thread.
//
// A thread runs until it must wait for others. As long as none waits, thread after thread and
// block after block run as plain calls in a loop on one stack. Where a thread waits, the next one
// of its wave goes on: the lanes of a wave take turns, and at a barrier the waves do. Convergent
// code therefore needs no queue: whoever is next in turn can always run, and a thread that finds
// others waiting somewhere else has found divergence, which is an error here.
#pragma once

#include "fiber.h"

namespace kiln_cpu {

enum class Wait : uint8_t { barrier, shuffle, matrix };

struct Wave {
  uint32_t first, size;  // threads of the block
  uint32_t arrived, done;
  uint32_t operation;  // counts the wave's operations
  int line;            // of the source, where the first lane waits
  Wait wait;
};

// What lanes hand to each other in one wave operation.
struct alignas(64) Exchange {
  unsigned char a[8192], b[8192], c[8192];
};

struct Arena;
struct Launch;

struct Worker {
  Launch* launch;
  void* stack_pointer;  // of the host thread, while fibers run
  uint64_t block;
  uint3 block_index;
  uint32_t threads, waves;
  uint32_t waves_waiting, waves_done;
  Wave* wave;       // of each wave
  Fiber** running;  // of each thread; null before it starts
  Fiber* free;
  char* stacks;
  uint32_t stacks_used;
  unsigned char* lds;
  Arena* arena;
  // Two, since a lane may reach an operation while another has yet to read the one before it.
  Exchange exchange[2];
};

struct Launch {
  void (*call)(const void* arguments);
  const void* arguments;
  const char* kernel;
  dim3 grid, block;
  size_t lds_bytes;
  uint64_t blocks;
  uint64_t next_block;  // atomic
  int failed;           // atomic
};

[[noreturn]] void fail(const char* what, int line);
bool next_block(Worker& worker);

__attribute__((noinline)) static void go_to(Fiber* from, Fiber* to) {
  switch_stack(&from->stack_pointer, to->stack_pointer);
}

inline void start(Fiber* fiber, Worker& worker, uint32_t thread) {
  const dim3& block = worker.launch->block;
  fiber->worker = &worker;
  fiber->thread = thread;
  fiber->lane = thread % KILN_WAVE_SIZE;
  fiber->wave = worker.wave + thread / KILN_WAVE_SIZE;
  fiber->thread_index = thread < block.x
                            ? uint3{thread, 0, 0}
                            : uint3{thread % block.x, thread / block.x % block.y,
                                    thread / block.x / block.y};
  worker.running[thread] = fiber;
}

Fiber* fresh_fiber(Worker& worker);

// From a thread that waits to another.
inline void yield_to(Fiber* me, uint32_t thread) {
  Worker& worker = *me->worker;
  Fiber* other = worker.running[thread];
  if (other == nullptr) {
    other = fresh_fiber(worker);
    start(other, worker, thread);
  }
  go_to(me, other);
}

// The thread whose turn it is after one has ended; false where the last block is done.
inline bool after_end(Fiber* me, uint32_t& next) {
  Worker& worker = *me->worker;
  Wave& wave = *me->wave;
  if (wave.arrived != 0) fail("a thread ended while others of its wave wait", wave.line);
  worker.running[me->thread] = nullptr;
  if (++wave.done < wave.size) {
    next = wave.first + (me->lane + 1) % wave.size;
    return true;
  }
  if (worker.waves_waiting != 0) fail("a wave ended while others wait at a barrier", 0);
  if (++worker.waves_done < worker.waves) {
    next = worker.wave[(&wave - worker.wave + 1) % worker.waves].first;
    return true;
  }
  next = 0;
  return next_block(worker);
}

static void fiber_main() {
  Fiber* me = self();
  for (;;) {
    Launch& launch = *me->worker->launch;
    launch.call(launch.arguments);
    uint32_t next;
    Worker& worker = *me->worker;
    if (!after_end(me, next)) switch_stack(&me->stack_pointer, worker.stack_pointer);
    Fiber* other = worker.running[next];
    if (other == nullptr) {
      start(me, worker, next);
    } else {
      me->next_free = worker.free;
      worker.free = me;
      go_to(me, other);  // comes back once `start` gave this fiber another thread
    }
  }
}

// True for the lane that came last: every lane of the wave now waits at this one operation.
inline bool arrive(Fiber* me, Wait wait, int line) {
  Wave& wave = *me->wave;
  if (wave.done != 0) fail("a thread waits for others of its wave, some of which ended", line);
  if (wave.arrived == 0) {
    wave.wait = wait;
    wave.line = line;
  } else if (wave.wait != wait || wave.line != line) {
    fail("the threads of one wave wait at different places", line);
  }
  return ++wave.arrived == wave.size;
}

inline Exchange& exchange_of(Fiber* me) { return me->worker->exchange[me->wave->operation & 1]; }

// Waits until the whole wave is here; the lane that comes last calls `complete` for all of it.
template <typename Complete>
inline void meet(Fiber* me, Wait wait, int line, Complete complete) {
  Wave& wave = *me->wave;
  if (arrive(me, wait, line)) {
    complete();
    wave.arrived = 0;
    ++wave.operation;
  } else {
    yield_to(me, wave.first + (me->lane + 1) % wave.size);
  }
}

__attribute__((noinline, convergent)) static void barrier(int line) {
  Fiber* me = self();
  Worker& worker = *me->worker;
  Wave& wave = *me->wave;
  if (!arrive(me, Wait::barrier, line)) {
    yield_to(me, wave.first + (me->lane + 1) % wave.size);
    return;
  }
  wave.arrived = 0;
  if (worker.waves_done != 0) fail("a wave waits at a barrier, but another has ended", line);
  if (++worker.waves_waiting < worker.waves) {
    yield_to(me, worker.wave[(&wave - worker.wave + 1) % worker.waves].first);
  } else {
    worker.waves_waiting = 0;
  }
}

inline unsigned char* dynamic_lds() { return self()->worker->lds; }

}  // namespace kiln_cpu

#define threadIdx (::kiln_cpu::self()->thread_index)
#define blockIdx (::kiln_cpu::self()->worker->block_index)
#define blockDim (::kiln_cpu::self()->worker->launch->block)
#define gridDim (::kiln_cpu::self()->worker->launch->grid)

inline uint32_t __lane_id() { return ::kiln_cpu::self()->lane; }

__attribute__((always_inline)) inline void __syncthreads(int line = __builtin_LINE()) {
  ::kiln_cpu::barrier(line);
}
