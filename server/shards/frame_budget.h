// FrameBudget bounds the memory of the frames that a server has received and not yet processed.
// FrameWindow counts the frames of one stream and requests the next one when the budget allows it.
//
//   charge of a stream    the bytes of its held frames, and kFrameBytes for a requested frame
//   reserve of a stream   the first kFrameBytes of its charge; the server's memory plan includes it
//   shared bytes          the charges of all streams above their reserves
//
// A stream that holds no frame requests the next one without asking. Every push that another
// stream's held push waits for therefore arrives, and no stream waits for a stream that waits for
// it. All further frames need shared bytes. Streams that wait for them get their turn in the order
// in which they asked.
#ifndef THINWIRE_SERVER_SHARDS_FRAME_BUDGET_H_
#define THINWIRE_SERVER_SHARDS_FRAME_BUDGET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace thinwire {

class FrameWindow;

// Thread-safe. Must outlive its windows.
class FrameBudget {
 public:
  // Makes BYTES more shared bytes available. A new budget has none.
  void Add(int64_t bytes) { Return(bytes); }

  // Returns the number of bytes in held frames of all streams.
  uint64_t held_bytes() const { return static_cast<uint64_t>(held_bytes_.load()); }

 private:
  friend class FrameWindow;

  // Takes BYTES shared bytes if they are free and no window waits. Returns whether it took them.
  bool TryTake(int64_t bytes);
  // Takes BYTES shared bytes even if they are not free: a frame was larger than kFrameBytes.
  void Take(int64_t bytes) { free_bytes_ -= bytes; }
  void Return(int64_t bytes);
  // Calls WINDOW->OnTurn() when shared bytes are free and all windows that waited before had their
  // turn.
  void Await(std::weak_ptr<FrameWindow> window) ABSL_LOCKS_EXCLUDED(mu_);
  void ServeWaiting() ABSL_LOCKS_EXCLUDED(mu_);
  bool TakeIfFree(int64_t bytes);

  std::atomic<int64_t> free_bytes_ = 0;  // below 0 after frames larger than kFrameBytes
  std::atomic<int64_t> held_bytes_ = 0;
  std::atomic<size_t> waiting_count_ = 0;  // the size of waiting_, readable without the lock
  absl::Mutex mu_;
  std::deque<std::weak_ptr<FrameWindow>> waiting_ ABSL_GUARDED_BY(mu_);
};

// Thread-safe. Owned by shared_ptr; the token of each held frame shares ownership.
class FrameWindow : public std::enable_shared_from_this<FrameWindow> {
 public:
  // The stream holds at most MOST_FRAMES frames. REQUEST requests the next frame; calls of REQUEST
  // do not overlap.
  FrameWindow(FrameBudget& budget, int most_frames, std::function<void()> request);
  ~FrameWindow();

  // Requests the first frame.
  void Start() { Proceed(); }
  // Records the arrival of the requested frame. The stream holds the frame until all copies of the
  // returned token are released.
  std::shared_ptr<const void> Hold(size_t bytes);
  // Allows the request of the frame after the one of the last Hold().
  void Next() { Proceed(); }

 private:
  friend class FrameBudget;
  enum class Step { kNone, kRequest, kAwait };

  void Proceed();
  void Release(int64_t bytes);
  // Gives this window kFrameBytes shared bytes and returns those that it does not use.
  int64_t OnTurn();
  Step NextStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Perform(Step step);
  // Returns the shared bytes that this stream uses.
  int64_t shared_bytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  FrameBudget& budget_;
  const int most_frames_;
  const std::function<void()> request_;

  absl::Mutex mu_;
  int held_count_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t held_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  bool awaits_frame_ ABSL_GUARDED_BY(mu_) = false;  // a frame is requested and has not arrived
  bool busy_ ABSL_GUARDED_BY(mu_) = false;          // from a request to Next()
  bool waiting_ ABSL_GUARDED_BY(mu_) = false;       // in the queue of the budget
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_FRAME_BUDGET_H_
