#include "common/text/problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace thinwire {
namespace {

using testing::ElementsAre;

TEST(ProblemsTest, NoProblemIsOk) { EXPECT_EQ(Problems().ToStatus(), absl::OkStatus()); }

TEST(ProblemsTest, EveryProblemHasALine) {
  Problems problems;
  problems.RequireDensity("density", 2);
  problems.RequireInteger("workers", 0, 1, 65536);
  EXPECT_EQ(
      problems.ToStatus(),
      absl::InvalidArgumentError("density: out of range (expected above 0 and at most 1, got 2)\n"
                                 "workers: out of range (expected 1 to 65536, got 0)"));
}

TEST(ProblemsTest, AppendSkipsAProblemThatIsThereAlready) {
  Problems one, other;
  one.Add("a", "wrong");
  other.Add("a", "wrong");
  other.Add("b", "wrong");
  one.Append(other);
  EXPECT_THAT(one.list(), ElementsAre(Problem{"a", "wrong"}, Problem{"b", "wrong"}));
}

TEST(ProblemsTest, TheEdgesOfARangeAreInIt) {
  Problems problems;
  problems.RequireInteger("x", 1, 1, 3);
  problems.RequireInteger("x", 3, 1, 3);
  problems.RequireInteger("x", 7, 7);
  problems.RequireFraction("x", 0);
  problems.RequireFraction("x", 1);
  problems.RequireDensity("x", 1);
  problems.RequireDecay("x", 0);
  problems.RequireFloat("x", 0);
  problems.RequireFloat("x", std::numeric_limits<float>::max());
  problems.RequirePositiveFloat("x", std::numeric_limits<float>::min());
  problems.RequireSeconds("x", 365 * 86400.0);
  EXPECT_TRUE(problems.empty()) << problems.ToStatus();
}

TEST(ProblemsTest, ANumberBeyondItsRangeAndANanAreProblems) {
  Problems problems;
  problems.RequireInteger("1", 4, 1, 3);
  problems.RequireFraction("2", 1.1);
  problems.RequireFraction("3", std::nan(""));
  problems.RequireDensity("4", 0);
  problems.RequireDensity("5", std::nan(""));
  problems.RequireDecay("6", 1);
  problems.RequireFloat("7", 1e39);
  problems.RequireFloat("8", -1);
  problems.RequirePositiveFloat("9", 1e-39);
  problems.RequireSeconds("10", 0);
  problems.RequireSeconds("11", INFINITY);
  EXPECT_EQ(problems.list().size(), 11u) << problems.ToStatus();
}

}  // namespace
}  // namespace thinwire
