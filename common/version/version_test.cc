#include "common/version/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::MatchesRegex;
using testing::StartsWith;

TEST(VersionTest, TheVersionIsTheTextOfTheFile) {
  std::ifstream file("VERSION");
  std::string text;
  ASSERT_TRUE(file >> text);
  EXPECT_EQ(BuildVersion(), text);
  EXPECT_THAT(text, MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

TEST(VersionTest, TheTextNamesTheProgramTheRevisionTheCodecsAndTheGpus) {
  EXPECT_THAT(std::string(BuildRevision()), MatchesRegex("[0-9a-f]+\\+?|unknown"));
  const std::vector<std::string> lines = absl::StrSplit(VersionText("thinwire server"), '\n');
  EXPECT_THAT(lines, ElementsAre(absl::StrCat("thinwire server ", std::string(BuildVersion()),
                                              " (revision ", std::string(BuildRevision()), ")"),
                                 StartsWith("codecs: fp32 fp16 "),
                                 MatchesRegex("CUDA architectures: (none|sm_[0-9].*)")));
}

}  // namespace
}  // namespace thinwire
