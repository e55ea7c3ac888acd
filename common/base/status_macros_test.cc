#include "common/base/status_macros.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace thinwire {
namespace {

absl::Status ReturnsEarly(const absl::Status& status, int& calls) {
  const auto evaluate = [&] {
    ++calls;
    return status;
  };
  RETURN_IF_ERROR(evaluate());
  return absl::OkStatus();
}

absl::StatusOr<int> Unwraps(absl::StatusOr<std::unique_ptr<int>> value, int& calls) {
  const auto evaluate = [&] {
    ++calls;
    return std::move(value);
  };
  ASSIGN_OR_RETURN(const std::unique_ptr<int> number, evaluate());
  int doubled = 0;
  ASSIGN_OR_RETURN(doubled, absl::StatusOr<int>(2 * *number));
  return doubled;
}

TEST(StatusMacros, OkContinuesAfterOneEvaluation) {
  int calls = 0;
  EXPECT_TRUE(ReturnsEarly(absl::OkStatus(), calls).ok());
  EXPECT_EQ(calls, 1);
}

TEST(StatusMacros, AnErrorReturnsAfterOneEvaluation) {
  int calls = 0;
  EXPECT_EQ(ReturnsEarly(absl::DataLossError("torn"), calls), absl::DataLossError("torn"));
  EXPECT_EQ(calls, 1);
}

TEST(StatusMacros, AValueThatOnlyMovesIsAssigned) {
  int calls = 0;
  EXPECT_EQ(*Unwraps(std::make_unique<int>(21), calls), 42);
  EXPECT_EQ(calls, 1);
}

TEST(StatusMacros, AnErrorIsReturnedInPlaceOfTheValue) {
  int calls = 0;
  EXPECT_EQ(Unwraps(absl::NotFoundError("gone"), calls).status(), absl::NotFoundError("gone"));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace thinwire
