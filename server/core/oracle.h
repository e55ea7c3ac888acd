// Oracle: docs/consistency.md once more, dumb and slow. It keeps every moment of a shard's history
// and keeps nothing else; each question (who is live? what is next?) is answered by reading the
// history from its beginning. Rounds close one by one, so steps must stay small.
//
// Written from the rule and not from the shard; oracle_test.cc holds the two against each other.
#ifndef THINWIRE_SERVER_CORE_ORACLE_H_
#define THINWIRE_SERVER_CORE_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/shard.h"

namespace thinwire {

class Oracle {
 public:
  // An update, as the optimizer should be given it.
  struct Expected {
    std::vector<double> sum;
    uint64_t weight = 0;
    uint64_t examples_before = 0;
  };

  explicit Oracle(const ShardOptions& options) : options_(options) {}

  Effects Apply(const Event& event);

  std::vector<Wait> Waits() const;
  const std::vector<Expected>& updates() const { return updates_; }
  Version version() const { return Version{updates_.size()}; }
  Step frontier() const;
  bool open() const;
  Step Next(WorkerId worker) const;

 private:
  enum class Kind { kSeed, kJoin, kRead, kPush, kExpire, kReturn, kOpen, kLeave };

  // One event, flat, and what the oracle found it to mean.
  struct Moment {
    Kind kind = Kind::kSeed;
    WorkerId worker;
    Incarnation incarnation;
    Step step;
    Generation generation;
    PushEvent push;

    CodecId codec = CodecId::kFp32;
    bool heard = false;            // a message of one who may speak
    std::optional<Step> read;      // a read for this step came with it
    std::optional<Verdict> fresh;  // a push that was judged now and finished its step
    bool gave = false;             // and its gradient counts
    size_t update = 0;             // which update took the gradient, from 1
    bool opened = false;
    Step frontier;  // after it
    std::vector<Answer> answers;
  };

  static Moment Flatten(const Event& event);

  // Of the last join that brought a newer incarnation; nothing if the worker never came.
  std::optional<size_t> Birth(WorkerId worker) const;
  bool Left(WorkerId worker) const;
  bool Live(WorkerId worker) const;
  std::vector<WorkerId> LiveOnes() const;
  std::optional<size_t> LastFreshPush(WorkerId worker) const;
  // The moment of the read that waits.
  std::optional<size_t> WaitingRead(WorkerId worker) const;
  bool Happened(Kind kind) const;
  uint32_t Wanted() const;
  std::vector<size_t> PendingGifts() const;

  std::optional<Verdict> ForbidsSpeech(const Moment& now) const;
  Judgement JudgePush(const Moment& now) const;
  void TakePush(Moment& now, Effects& effects);
  void UpdateFrom(const std::vector<size_t>& gifts);
  void CloseRounds(Effects& effects);
  void FollowTheSlowest();
  void AnswerReads(Effects& effects);

  const ShardOptions options_;
  std::vector<Moment> history_;
  std::vector<Expected> updates_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_ORACLE_H_
