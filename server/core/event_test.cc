#include "server/core/event.h"

#include <gtest/gtest.h>

#include <sstream>

#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

std::string Printed(const Event& event) {
  std::ostringstream out;
  out << event;
  return out.str();
}

TEST(EventTest, PrintsOnOneLine) {
  const FakeWorker worker = {WorkerId{1}, Incarnation{2}};
  EXPECT_EQ(Printed(SeedEvent{Fp32Payload({1, 2})}), "seed 9 bytes");
  EXPECT_EQ(Printed(worker.Join()), "join w1/2");
  EXPECT_EQ(Printed(worker.Read(3)), "read w1/2 step 3 generation 0");
  EXPECT_EQ(Printed(worker.Push(3, 4, {1})),
            "push w1/2 step 3 generation 0 examples 4+0 of version 0, 5 bytes, rate factor 1");
  EXPECT_EQ(Printed(worker.Expire()), "expire w1/2");
  EXPECT_EQ(Printed(worker.Return()), "return w1/2");
  EXPECT_EQ(Printed(OpenEvent{}), "open");
  EXPECT_EQ(Printed(worker.Leave()), "leave w1/2");
  EXPECT_EQ(Printed(RuleEvent{Rule::Backup(5, 1)}), "rule backup 4+1");
  EXPECT_EQ(Printed(RuleEvent{Rule::Ssp(5, 1), Step{7}}),
            "rule ssp(1) of 5, fold_every 1 from step 7");
  EXPECT_EQ(Printed(ShutEvent{}), "shut");
  EXPECT_EQ(Printed(SumEvent{Step{7}, {.update = 0.5, .masters = 3}}),
            "sum step 7: update^2 0.5 masters^2 3");
  EXPECT_EQ(Printed(PlanEvent{300}), "plan 300 examples");
}

}  // namespace
}  // namespace thinwire
