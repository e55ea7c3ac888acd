#include "common/exit_code.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(ExitCodeTest, TheCodeSaysWhetherToRetryOrToMendTheConfiguration) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), ExitCode::kConfig);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), ExitCode::kSoftware);
}

}  // namespace
}  // namespace thinwire
