#include "client/encode/worker_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/files/atomic_file.h"

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

TEST_F(WorkerFolderTest, TheNumbersOfTheFoldersAreFound) {
  EXPECT_THAT(WorkerFolder::NumbersIn(dir_), ElementsAre(3));
  for (const char* name : {"worker-12", "worker-0", "worker-", "worker-x", "server-1", "other"}) {
    std::filesystem::create_directory(dir_ + "/" + name);
  }
  EXPECT_THAT(WorkerFolder::NumbersIn(dir_), ElementsAre(0, 3, 12));
  EXPECT_THAT(WorkerFolder::NumbersIn(dir_ + "/absent"), IsEmpty());
  EXPECT_THAT(WorkerFolder::NumbersIn(""), IsEmpty());
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

TEST_F(WorkerFolderTest, OnlyTheLatestProcessHoldsTheFolder) {
  const auto take = [this](uint64_t run, uint64_t generation, uint64_t incarnation) {
    WorkerFolder folder = folder_;
    const absl::Status taken =
        folder.Take({RunId{run}, Generation{generation}, Incarnation{incarnation}});
    return taken.ok() ? absl::StatusOr<WorkerFolder>(folder) : taken;
  };
  const absl::Status lost = absl::AlreadyExistsError(
      absl::StrCat(folder_.path(), ": another process has joined under this number"));
  const WorkerFolder first = take(7, 1, 5).value();
  EXPECT_TRUE(first.CheckHeld().ok());
  const WorkerFolder second = take(7, 1, 6).value();
  EXPECT_EQ(first.CheckHeld(), lost);
  EXPECT_TRUE(second.CheckHeld().ok());
  EXPECT_EQ(take(7, 1, 5).status(), lost);
  EXPECT_TRUE(second.CheckHeld().ok()) << "a refused process changes nothing";
  // The servers went back to a state that does not know incarnation 6.
  EXPECT_TRUE(take(7, 2, 5).ok());
  EXPECT_EQ(second.CheckHeld(), lost);
  EXPECT_EQ(take(7, 1, 6).status(), lost);
  EXPECT_TRUE(take(6, 1, 1).ok()) << "runs have no order";
}

TEST_F(WorkerFolderTest, TakingTheFolderEndsWritesThatHaveBegun) {
  AtomicFile state(folder_.PathOf(Step{40}));
  AtomicFile beside(folder_.PathOf(Step{40}) + ".loss_scale");
  ASSERT_TRUE(state.status().ok() && beside.status().ok());
  WorkerFolder later = folder_;
  ASSERT_TRUE(later.Take({RunId{7}, Generation{1}, Incarnation{2}}).ok());
  EXPECT_FALSE(state.Commit().ok());
  EXPECT_FALSE(beside.Commit().ok());
  EXPECT_THAT(Names(), ElementsAre("process"));
}

TEST_F(WorkerFolderTest, ADamagedProcessFileIsAnErrorWithItsPath) {
  Write({"process"});
  WorkerFolder folder = folder_;
  const absl::Status status = folder.Take({RunId{7}, Generation{1}, Incarnation{2}});
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder_.path() + "/process: "));
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
