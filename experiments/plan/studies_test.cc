// Checks the experiment files of the folder experiments.
#include <gtest/gtest.h>

#include <filesystem>

#include "experiments/plan/experiment_file.h"

namespace thinwire::lab {
namespace {

TEST(StudiesTest, EveryFileIsValidInBothVersions) {
  int checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator("experiments")) {
    if (entry.path().extension() != ".textproto") continue;
    for (const bool quick : {false, true}) {
      const auto plan = ReadExperiment(entry.path().string(), {.quick = quick});
      EXPECT_TRUE(plan.ok()) << plan.status();
      ++checked;
    }
  }
  EXPECT_GE(checked, 6);
}

}  // namespace
}  // namespace thinwire::lab
