// Block: runs the blocks of a kernel on the host, one after the other, in an order that is drawn.
//
// Each thread is a fiber with a stack of its own. It runs until it waits for its warp or its block;
// the fibers take turns in an order that is drawn for each block, too. So a kernel that forgets to
// wait, or hopes that blocks run side by side or in order, gives other results or hangs. A warp's
// exchange checks that all lanes it names come to the same one, and threads that wait for each
// other in vain end the program with a sentence. What it cannot show: two threads that write
// between two waits to one place without atomics, if the order drawn hides it.
//
// Only tests use it. Not thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_EMULATION_BLOCK_H_
#define THINWIRE_KERNELS_CUDA_EMULATION_BLOCK_H_

#include <setjmp.h>
#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace thinwire::kernels::cuda::emulation {

enum class WarpOp { kSync, kBallot, kShuffle, kReduce };

inline constexpr unsigned kLanes = 32;
using LaneValues = std::array<uint64_t, kLanes>;

// Only one dimension is used.
struct Dimension {
  unsigned x = 0;
};

// What a thread knows of where it is.
struct Place {
  Dimension thread, block, block_size, grid_size;
};

class Block {
 public:
  // Runs KERNEL for every thread of every block. SEED draws the orders.
  static void RunGrid(unsigned block_count, unsigned thread_count, uint64_t seed,
                      const std::function<void()>& kernel);

  // The rest are for the thread that runs.

  static const Place& place();
  static void WaitForBlock();
  // Gives VALUE to the lanes in MASK and returns theirs, good until the next exchange.
  static const LaneValues& Exchange(WarpOp op, unsigned mask, uint64_t value);

 private:
  enum class State { kReady, kAtBlock, kAtWarp, kDone };

  // Begins by its context, and goes on by a jump, which unlike a change of contexts asks nothing of
  // the kernel of the operating system.
  struct Thread {
    ucontext_t context;
    jmp_buf at;
    bool begun = false;
    std::unique_ptr<char[]> stack;
    State state = State::kDone;
    WarpOp op = WarpOp::kSync;
    unsigned mask = 0;
    uint64_t given = 0;
    LaneValues received;
  };

  static Block& running();
  static void Prepare(Thread& thread);
  static void ThreadMain();

  void Reserve(unsigned thread_count);
  void RunBlock(unsigned thread_count, uint64_t seed);
  void RunUntilItWaits(unsigned thread);
  void Suspend();
  void FinishExchange(unsigned warp);
  bool ReleaseBlock(unsigned thread_count);

  jmp_buf scheduler_;
  std::vector<std::unique_ptr<Thread>> threads_;
  Place place_;
  const std::function<void()>* kernel_ = nullptr;
};

}  // namespace thinwire::kernels::cuda::emulation

#endif  // THINWIRE_KERNELS_CUDA_EMULATION_BLOCK_H_
