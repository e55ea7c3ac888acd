#include "cli/checkpoint/checkpoint_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/rpc/fake_control_server.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

class CheckpointCallsTest : public testing::Test {
 protected:
  CheckpointCallsTest() {
    calls_.servers.addresses = absl::StrCat(lead_.address(), ",", other_.address());
  }
  ExitCode Save() { return SaveCheckpointNow(calls_, out_, err_); }
  ExitCode Restore(uint64_t step) {
    return RestoreRunning(calls_, step, out_, err_, absl::Milliseconds(1));
  }

  FakeControlServer lead_{"tensor", "aaaa"};
  FakeControlServer other_{"tensor", "aaaa"};
  CheckpointCalls calls_;
  std::ostringstream out_, err_;
};

TEST_F(CheckpointCallsTest, TheStepOfTheCheckpointIsPrinted) {
  calls_.timeout = 7;
  lead_.saved.set_least_step(40);
  lead_.saved.set_largest_step(40);
  EXPECT_EQ(Save(), ExitCode::kOk) << err_.str();
  EXPECT_EQ(out_.str(), "all servers have a checkpoint of step 40\n");
  EXPECT_EQ(lead_.save_request->seconds(), 7);
  out_.str("");
  lead_.saved.set_largest_step(43);
  EXPECT_EQ(Save(), ExitCode::kOk) << err_.str();
  EXPECT_EQ(out_.str(), "all servers have a checkpoint, with shards at the steps 40 to 43\n");
}

TEST_F(CheckpointCallsTest, TheErrorSaysWhetherToRetryOrToMendSomething) {
  const std::pair<grpc::Status, ExitCode> cases[] = {
      {{grpc::StatusCode::FAILED_PRECONDITION, "durability: none"}, ExitCode::kConfig},
      {{grpc::StatusCode::PERMISSION_DENIED, "not allowed"}, ExitCode::kConfig},
      {{grpc::StatusCode::UNAVAILABLE, "server 1: unreachable"}, ExitCode::kUnavailable},
      {{grpc::StatusCode::DEADLINE_EXCEEDED, "no checkpoint"}, ExitCode::kUnavailable},
      {{grpc::StatusCode::RESOURCE_EXHAUSTED, "server 1: no space"}, ExitCode::kIo},
  };
  for (const auto& [status, code] : cases) {
    err_.str("");
    lead_.save_status = status;
    EXPECT_EQ(Save(), code) << err_.str();
    EXPECT_EQ(err_.str(),
              absl::StrCat("server 0 (", lead_.address(), "): ", status.error_message(), "\n"));
  }
  EXPECT_EQ(out_.str(), "");
}

TEST_F(CheckpointCallsTest, ARestoreWaitsUntilEveryServerHasGoneBack) {
  lead_.restored_generation = 2;
  lead_.generation = 2;
  other_.generations_until_back = 3;
  EXPECT_EQ(Restore(40), ExitCode::kOk) << err_.str();
  EXPECT_EQ(out_.str(), "all servers went back to step 40, generation 2\n");
  EXPECT_EQ(lead_.restore_step, 40u);
  EXPECT_EQ(other_.generations_until_back.load(), 0);
}

TEST_F(CheckpointCallsTest, AServerThatDoesNotGoBackIsNamed) {
  lead_.restored_generation = 2;
  lead_.generation = 2;
  calls_.timeout = 0.1;
  EXPECT_EQ(Restore(40), ExitCode::kUnavailable);
  EXPECT_THAT(err_.str(), HasSubstr(absl::StrCat("server 1 (", other_.address(),
                                                 "): has not gone back yet (expected generation 2, "
                                                 "got 1)")));
}

}  // namespace
}  // namespace thinwire
