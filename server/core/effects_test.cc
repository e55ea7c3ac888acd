#include "server/core/effects.h"

#include <gtest/gtest.h>

#include <sstream>

namespace thinwire {
namespace {

template <typename Value>
std::string Printed(const Value& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(EffectsTest, PrintOnOneLineInSendingOrder) {
  Effects effects;
  effects.judgement.emplace();
  effects.judgement->worker = WorkerId{1};
  effects.judgement->incarnation = Incarnation{2};
  effects.judgement->step = Step{3};
  effects.judgement->verdict = Verdict::kLate;
  effects.judgement->again = true;
  effects.judgement->frontier = Step{5};
  effects.judgement->version = Version{4};
  effects.rounds = {{Step{4}, {WorkerId{0}, WorkerId{2}}}};
  effects.answers = {{WorkerId{1}, Incarnation{2}, Step{4}, CodecId::kFp16}};
  EXPECT_EQ(Printed(effects),
            "w1/2 step 3: late again (frontier 5, version 4); round 4 of {w0,w2}; "
            "answer w1/2 step 4 in fp16");
  EXPECT_EQ(Printed(Effects{}), "");
}

TEST(EffectsTest, AFullRoundPrintsItsNorm) {
  Effects effects;
  effects.full_round = FullRound{Step{4}, {.update = 6.25, .masters = 2}};
  EXPECT_EQ(Printed(effects), "full round 4: update^2 6.25 masters^2 2");
}

TEST(EffectsTest, AJudgementPrintsTheEffectOfTheStalenessPolicy) {
  Judgement judgement;
  judgement.verdict = Verdict::kRefused;
  judgement.dropped = true;
  EXPECT_EQ(Printed(judgement), "w0/0 step 0: refused (frontier 0, version 0, dropped)");
  judgement = {.staleness = 4, .uncompensated = true};
  EXPECT_EQ(Printed(judgement),
            "w0/0 step 0: accept (frontier 0, version 0, staleness 4, uncompensated)");
}

TEST(EffectsTest, ABlockedReadPrintsItsReason) {
  BlockedRead wait;
  wait.step = Step{1};
  wait.unseeded = true;
  wait.live = 1;
  wait.wanted = 2;
  EXPECT_EQ(Printed(wait), "w0/0 waits for step 1 at frontier 0, unseeded, 1 of 2 present");
  wait.unseeded = false;
  wait.wanted = 0;
  wait.unfinished = {WorkerId{3}};
  EXPECT_EQ(Printed(wait), "w0/0 waits for step 1 at frontier 0, held by w3");
}

}  // namespace
}  // namespace thinwire
