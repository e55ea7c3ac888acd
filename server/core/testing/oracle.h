// Oracle: docs/consistency.md once more, dumb and slow. Its memory is a chronicle of all that
// happened, which it reads from the beginning for each question. Rounds close one by one, so steps
// must stay small.
//
// Written from the rule and not from the shard; oracle_test.cc holds the two against each other.
// Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_ORACLE_H_
#define THINWIRE_SERVER_CORE_TESTING_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/shard.h"
#include "server/core/testing/chronicle.h"

namespace thinwire {

class Oracle {
 public:
  // An update, as the optimizer should be given it.
  struct Expected {
    std::vector<double> sum;
    uint64_t weight = 0;
    uint64_t examples_before = 0;
  };

  explicit Oracle(const ShardOptions& options)
      : options_(options), chronicle_(options.rule.workers) {}

  Effects Apply(const Event& event);

  std::vector<Wait> Waits() const;
  const std::vector<Expected>& updates() const { return updates_; }
  Version version() const { return Version{updates_.size()}; }
  // The newest version that was published. REQUIRES: options.publish was set.
  Version published() const { return published_; }
  Step frontier() const { return chronicle_.Frontier(); }
  bool open() const { return chronicle_.Opened(); }
  Step Next(WorkerId worker) const { return chronicle_.Next(worker); }

 private:
  uint32_t Wanted() const;
  std::optional<Verdict> ForbidsSpeech(const Moment& now) const;
  Judgement JudgePush(const Moment& now) const;
  JoinAnswer AnswerJoin(WorkerId worker) const;
  void Meet(Moment& now, Effects& effects) const;
  void MeetPush(Moment& now, Effects& effects) const;
  void UpdateFromGifts();
  void Open(Effects& effects);
  void CloseRounds(Effects& effects);
  void FollowTheSlowest();
  void Publish(Step frontier_before);
  void AnswerReads(Effects& effects);

  const ShardOptions options_;
  Chronicle chronicle_;
  std::vector<Expected> updates_;
  Version published_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_ORACLE_H_
