#include "kernels/cuda/emulation/block.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>

namespace thinwire::kernels::cuda::emulation {
namespace {

// The stack size is not a power of two: with a power of two, the tops of all stacks would share a
// few cache sets.
constexpr size_t kStackBytes = (64 << 10) + 13 * 64;

[[noreturn]] void Fail(const char* what, const Place& place) {
  std::fprintf(stderr, "kernel: block %u, thread %u: %s\n", place.block.x, place.thread.x, what);
  std::abort();
}

}  // namespace

// Kernels refer to their block through global names, as on a GPU, so the program has one Block
// object. This object runs all blocks and reuses its stacks.
Block& Block::running() {
  static Block block;
  return block;
}

const Place& Block::place() { return running().place_; }

void Block::RunGrid(unsigned block_count, unsigned thread_count, uint64_t seed,
                    const std::function<void()>& kernel) {
  Block& block = running();
  block.Reserve(thread_count);
  block.kernel_ = &kernel;
  block.place_.block_size.x = thread_count;
  block.place_.grid_size.x = block_count;
  std::vector<unsigned> order(block_count);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), std::minstd_rand(static_cast<uint32_t>(seed) + 1));
  for (const unsigned number : order) {
    block.place_.block.x = number;
    block.RunBlock(thread_count, seed + number);
  }
}

void Block::Prepare(Thread& thread) {
  thread.stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = thread.stack.get();
  thread.context.uc_stack.ss_size = kStackBytes;
  thread.context.uc_link = nullptr;
  makecontext(&thread.context, ThreadMain, 0);
}

void Block::Reserve(unsigned thread_count) {
  while (threads_.size() < thread_count) {
    threads_.push_back(std::make_unique<Thread>());
    Prepare(*threads_.back());
  }
}

// Each fiber runs the kernel once per block. The loop lets the fiber run the kernel again for the
// next block.
void Block::ThreadMain() {
  for (;;) {
    Block& block = running();
    (*block.kernel_)();
    block.threads_[block.place_.thread.x]->state = State::kDone;
    block.Suspend();
  }
}

void Block::RunBlock(unsigned thread_count, uint64_t seed) {
  std::vector<unsigned> order(thread_count);
  std::iota(order.begin(), order.end(), 0u);
  std::minstd_rand random(static_cast<uint32_t>(seed * 2654435761u) + 1);
  std::shuffle(order.begin(), order.end(), random);
  for (unsigned t = 0; t < thread_count; ++t) threads_[t]->state = State::kReady;
  for (bool any_ran = true; any_ran;) {
    any_ran = false;
    for (const unsigned t : order) {
      if (threads_[t]->state != State::kReady) continue;
      RunUntilItWaits(t);
      any_ran = true;
    }
    if (!any_ran) any_ran = ReleaseBlock(thread_count);
  }
  for (unsigned t = 0; t < thread_count; ++t) {
    place_.thread.x = t;
    if (threads_[t]->state != State::kDone) Fail("waits for threads that never arrive", place_);
  }
}

void Block::RunUntilItWaits(unsigned thread) {
  place_.thread.x = thread;
  if (_setjmp(scheduler_) != 0) return;
  Thread& next = *threads_[thread];
  if (next.begun) _longjmp(next.at, 1);
  next.begun = true;
  setcontext(&next.context);
}

void Block::Suspend() {
  if (_setjmp(threads_[place_.thread.x]->at) == 0) _longjmp(scheduler_, 1);
}

// If all threads that have not ended wait at the block barrier, releases them. Returns whether any
// thread was released.
bool Block::ReleaseBlock(unsigned thread_count) {
  bool any = false;
  for (unsigned t = 0; t < thread_count; ++t) {
    if (threads_[t]->state == State::kAtWarp) return false;
    any = any || threads_[t]->state == State::kAtBlock;
  }
  for (unsigned t = 0; t < thread_count; ++t) {
    if (threads_[t]->state == State::kAtBlock) threads_[t]->state = State::kReady;
  }
  return any;
}

void Block::WaitForBlock() {
  Block& block = running();
  block.threads_[block.place_.thread.x]->state = State::kAtBlock;
  block.Suspend();
}

const LaneValues& Block::Exchange(WarpOp op, unsigned mask, uint64_t value) {
  Block& block = running();
  Thread& self = *block.threads_[block.place_.thread.x];
  if ((mask >> block.place_.thread.x % kLanes & 1) == 0)
    Fail("is not in its own mask", block.place_);
  self.state = State::kAtWarp;
  self.op = op;
  self.mask = mask;
  self.given = value;
  block.FinishExchange(block.place_.thread.x / kLanes);
  if (self.state == State::kAtWarp) block.Suspend();
  return self.received;
}

// Completes the warp operation of the running thread if all lanes in its mask have arrived at the
// operation.
void Block::FinishExchange(unsigned warp) {
  const Thread& last = *threads_[place_.thread.x];
  LaneValues values = {};
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if ((last.mask >> lane & 1) == 0) continue;
    const unsigned t = warp * kLanes + lane;
    if (t >= place_.block_size.x) Fail("waits for a lane outside the block", place_);
    const Thread& other = *threads_[t];
    if (other.state == State::kDone) Fail("waits for a lane that has ended", place_);
    if (other.state != State::kAtWarp) return;
    if (other.op != last.op || other.mask != last.mask)
      Fail("executes a different warp operation than another lane", place_);
    values[lane] = other.given;
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if ((last.mask >> lane & 1) == 0) continue;
    Thread& other = *threads_[warp * kLanes + lane];
    other.received = values;
    other.state = State::kReady;
  }
}

}  // namespace thinwire::kernels::cuda::emulation
