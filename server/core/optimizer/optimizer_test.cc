#include "server/core/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/status/status.h"

namespace thinwire {
namespace {

absl::Status Made(const OptimizerSpec& spec) { return MakeOptimizer(spec).status(); }

TEST(MakeOptimizerTest, ListsTheSixWhenItDoesNotKnowTheName) {
  EXPECT_EQ(Made({.name = "lion"}),
            absl::InvalidArgumentError(
                "optimizer: want sgd, momentum, nesterov, adam, adamw or adagrad, got \"lion\""));
}

TEST(MakeOptimizerTest, SuggestsTheNearestName) {
  EXPECT_EQ(Made({.name = "Adma"}),
            absl::InvalidArgumentError("optimizer: want sgd, momentum, nesterov, adam, adamw or "
                                       "adagrad, got \"Adma\"; did you mean adam?"));
}

TEST(MakeOptimizerTest, NamesTheNumberThatIsOutOfItsRange) {
  EXPECT_EQ(Made({.momentum = 1}),
            absl::InvalidArgumentError("momentum: want a number from 0 to below 1, got 1"));
  EXPECT_EQ(Made({.beta1 = -0.5}),
            absl::InvalidArgumentError("beta1: want a number from 0 to below 1, got -0.5"));
  EXPECT_EQ(Made({.beta2 = std::nan("")}),
            absl::InvalidArgumentError("beta2: want a number from 0 to below 1, got nan"));
  EXPECT_EQ(Made({.epsilon = 0}),
            absl::InvalidArgumentError("epsilon: want a number above 0 that a float holds, got 0"));
  EXPECT_EQ(Made({.weight_decay = -1}),
            absl::InvalidArgumentError(
                "weight_decay: want a number of at least 0 that a float holds, got -1"));
}

TEST(MakeOptimizerTest, RefusesWhatAFloatCannotHold) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Made({.epsilon = 1e-50}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Made({.epsilon = infinity}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Made({.weight_decay = 1e39}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(MakeOptimizerTest, TakesTheEdgesOfTheRanges) {
  EXPECT_EQ(Made({.name = "nesterov", .momentum = 0}), absl::OkStatus());
  EXPECT_EQ(Made({.name = "adam", .beta1 = 0, .beta2 = 0}), absl::OkStatus());
}

}  // namespace
}  // namespace thinwire
