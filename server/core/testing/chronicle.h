// Chronicle: every moment of a shard's life and what the oracle found each to mean, and nothing
// else. Each question (who is live? what is next?) is answered by reading the moments from the
// beginning, every time.
//
// Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_CHRONICLE_H_
#define THINWIRE_SERVER_CORE_TESTING_CHRONICLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"

namespace thinwire {

// One event, flat, and what followed.
struct Moment {
  enum class Kind { kSeed, kJoin, kRead, kPush, kExpire, kReturn, kOpen, kLeave };

  static Moment Of(const Event& event);

  Kind kind = Kind::kSeed;
  WorkerId worker;
  Incarnation incarnation;
  Step step;
  Generation generation;
  ReadForm form;
  PushEvent push;

  bool heard = false;            // a message of one who may speak
  std::optional<Step> read;      // a read for this step came with it
  std::optional<Verdict> fresh;  // a push that was judged now and finished its step
  bool gave = false;             // and its gradient counts
  size_t update = 0;             // which update took the gradient, from 1
  bool opened = false;
  Step frontier;  // after it
  std::vector<Answer> answers;
};

class Chronicle {
 public:
  explicit Chronicle(uint32_t worker_count) : worker_count_(worker_count) {}

  void Add(const Moment& moment) { moments_.push_back(moment); }
  const std::vector<Moment>& moments() const { return moments_; }
  // What is happening now. REQUIRES: something was added.
  Moment& now() { return moments_.back(); }
  Moment& at(size_t i) { return moments_[i]; }

  bool Happened(Moment::Kind kind) const;
  bool Opened() const;
  Step Frontier() const;
  // The moment of the last join that brought a newer incarnation; nothing if the worker never came.
  std::optional<size_t> Birth(WorkerId worker) const;
  bool Left(WorkerId worker) const;
  bool Live(WorkerId worker) const;
  std::vector<WorkerId> LiveOnes() const;
  Step Next(WorkerId worker) const;
  // The last push of its newest incarnation that finished a step. REQUIRES: Birth(worker) has a
  // value.
  std::optional<size_t> LastFreshPush(WorkerId worker) const;
  // The moment of the read that waits.
  std::optional<size_t> WaitingRead(WorkerId worker) const;
  // The moments of the gradients that no update took.
  std::vector<size_t> PendingGifts() const;

 private:
  const uint32_t worker_count_;
  std::vector<Moment> moments_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_CHRONICLE_H_
