// Block executes the blocks of a CUDA kernel on the host, one block after the other, in random
// order.
//
// Each thread of a block is a fiber with its own stack, which runs until it waits for its warp or
// its block. The order in which the fibers run is random too. A kernel that lacks a barrier, or
// depends on concurrent or ordered blocks, therefore computes different results or deadlocks. A
// warp operation checks that all lanes in its mask execute the same operation. On a deadlock the
// program aborts with a message. The emulation does not detect data races. If two threads write to
// the same address between two barriers, and the random order happens to produce the correct
// result, the test passes.
//
// Used only by tests. Not thread-safe.
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

// Stands for CUDA's dim3. The kernels use only one dimension.
struct Dimension {
  unsigned x = 0;
};

// The built-in variables of a CUDA thread: threadIdx, blockIdx, blockDim and gridDim.
struct Place {
  Dimension thread, block, block_size, grid_size;
};

class Block {
 public:
  // Runs KERNEL in every thread of every block. SEED determines the order of blocks and threads.
  static void RunGrid(unsigned block_count, unsigned thread_count, uint64_t seed,
                      const std::function<void()>& kernel);

  // Kernels call the functions below. The functions act on the CUDA thread that is running.

  static const Place& place();
  // Implements __syncthreads(): waits until all threads of the block that have not ended call
  // WaitForBlock().
  static void WaitForBlock();
  // Waits until all lanes in MASK have called Exchange() with the same OP and MASK. Returns the
  // VALUE that each lane passed; the returned reference is valid until the next exchange of this
  // thread.
  static const LaneValues& Exchange(WarpOp op, unsigned mask, uint64_t value);

 private:
  enum class State { kReady, kAtBlock, kAtWarp, kDone };

  // A fiber that runs one CUDA thread. setcontext() starts a fiber; longjmp() resumes it, which
  // needs no system call.
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
