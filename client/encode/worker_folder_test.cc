#include "client/encode/worker_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace thinwire::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class WorkerFolderTest : public ::testing::Test {
 protected:
  void Write(const std::vector<std::string>& names) {
    for (const std::string& name : names) std::ofstream(folder_.path() + "/" + name) << "x";
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const std::string dir_ = ::testing::TempDir() + "/" +
                           ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                           "/state";
  const WorkerFolder folder_ = [this] {
    std::filesystem::remove_all(dir_);
    return WorkerFolder::Open(dir_, WorkerId{3}).value();
  }();
};

TEST_F(WorkerFolderTest, TheFolderIsCreatedWithItsParents) {
  EXPECT_TRUE(std::filesystem::is_directory(folder_.path()));
  EXPECT_EQ(folder_.path(), dir_ + "/worker-3");
  EXPECT_EQ(folder_.PathOf(Step{40}), dir_ + "/worker-3/residuals-40");
}

TEST_F(WorkerFolderTest, StepsAreSortedByNumberAndOtherFilesAreIgnored) {
  EXPECT_THAT(*folder_.Steps(), IsEmpty());
  Write({"residuals-9", "residuals-100", "residuals-10", "residuals-11.loss_scale",
         "residuals-12.tmp", "residuals-x", "notes"});
  EXPECT_THAT(*folder_.Steps(), ElementsAre(Step{9}, Step{10}, Step{100}));
}

TEST_F(WorkerFolderTest, TheNewestThreeStatesAreKept) {
  Write({"residuals-9", "residuals-9.loss_scale", "residuals-8.tmp", "residuals-10",
         "residuals-10.loss_scale", "residuals-11", "residuals-100", "notes"});
  ASSERT_TRUE(folder_.RemoveOld().ok());
  EXPECT_THAT(Names(), UnorderedElementsAre("residuals-10", "residuals-10.loss_scale",
                                            "residuals-11", "residuals-100", "notes"));
}

TEST_F(WorkerFolderTest, StatesOfLaterStepsAreRemoved) {
  Write({"residuals-9", "residuals-10", "residuals-11", "residuals-11.loss_scale"});
  ASSERT_TRUE(folder_.RemoveAbove(Step{10}).ok());
  EXPECT_THAT(Names(), UnorderedElementsAre("residuals-9", "residuals-10"));
}

TEST_F(WorkerFolderTest, AFolderThatCannotBeCreatedIsAnErrorWithItsPath) {
  Write({"file"});
  const std::string path = folder_.path() + "/file";
  const absl::Status status = WorkerFolder::Open(path, WorkerId{0}).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(path + "/worker-0: cannot create the folder"));
}

}  // namespace
}  // namespace thinwire::client
