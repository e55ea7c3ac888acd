#include "common/base/exit_code.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace thinwire {
namespace {

TEST(ExitCodeTest, TheCodeSaysWhetherToRetryOrToMendTheConfiguration) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), ExitCode::kConfig);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), ExitCode::kSoftware);
}

TEST(ExitCodeTest, AWorkerWhoseNumberIsRefusedMayTryAgain) {
  EXPECT_EQ(ExitCodeOfWorker(absl::AlreadyExistsError("")), ExitCode::kRefused);
  EXPECT_EQ(ExitCodeOfWorker(absl::OutOfRangeError("")), ExitCode::kRefused);
  EXPECT_EQ(ExitCodeOfWorker(absl::InvalidArgumentError("")), ExitCode::kConfig);
}

TEST(ExitCodeTest, TheTableOfTheDocsHasExactlyTheseCodes) {
  std::vector<std::string> expected;
  for (const NamedExitCode& each : ExitCodes()) {
    expected.push_back(absl::StrCat(static_cast<int>(each.code), " ", std::string(each.name)));
  }
  EXPECT_EQ(expected.size(), 10u);
  std::ifstream page("docs/configuration.md");
  std::vector<std::string> documented;
  bool in_section = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) in_section = line == "## Exit codes";
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    if (!in_section || cells.size() != 4 || line.starts_with("| code")) continue;
    documented.push_back(absl::StrCat(cells[0].substr(2), " ", cells[1]));
  }
  EXPECT_EQ(documented, expected);
}

}  // namespace
}  // namespace thinwire
