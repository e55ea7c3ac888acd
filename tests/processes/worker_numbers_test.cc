// Tests `worker --worker auto`: server 0 chooses the numbers of the workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/processes/daemons.h"
#include "tests/processes/test_authority.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// Many short steps, so that the job outlasts the test.
constexpr char kJob[] = R"(
  consistency { mode: async workers: 2 lease_seconds: 2 start_timeout_seconds: 20 }
  task { model: softmax train_examples: 2000 test_examples: 500 batch_size: 20 epochs: 1000 }
)";

class WorkerNumbersTest : public testing::Test {
 protected:
  void StartServer(const std::vector<std::string>& flags = {}) {
    address_ = daemons_.StartServer("server", kJob, flags);
  }
  void StartWorker(const std::string& name, std::vector<std::string> flags = {}) {
    flags.insert(flags.end(), {"--worker", "auto", "--addresses", address_});
    daemons_.StartWorker(name, kJob, flags);
  }
  // Blocks until the worker has joined, and returns its number.
  uint32_t NumberOf(const std::string& name) {
    const auto joined = daemons_.WaitForEvent(name, IsEvent(WorkerEvent::kJoined));
    return joined.has_value() ? joined->worker() : ~uint32_t{0};
  }

  Daemons daemons_;
  std::string address_;
};

TEST_F(WorkerNumbersTest, EachProcessGetsANumberOfItsOwn) {
  StartServer();
  StartWorker("a");
  StartWorker("b");
  const uint32_t a = NumberOf("a");
  EXPECT_THAT((std::vector{a, NumberOf("b")}), UnorderedElementsAre(0, 1));

  StartWorker("refused");
  const ProcessResult refused = daemons_.WaitForEnd("refused");
  EXPECT_EQ(refused.exit.code, 76) << refused.log;
  EXPECT_THAT(refused.log, HasSubstr("worker: all numbers are in use (expected one that is free, "
                                     "got 2 workers"));

  daemons_.Signal("a", SIGKILL);
  StartWorker("successor");  // waits for the end of the lease
  EXPECT_EQ(NumberOf("successor"), a);
}

TEST_F(WorkerNumbersTest, AProcessGetsTheNumberWhoseStateIsOnItsDisk) {
  StartServer();
  const std::string state_dir = absl::StrCat(daemons_.folder(), "/state");
  std::filesystem::create_directories(absl::StrCat(state_dir, "/worker-1"));
  StartWorker("a", {"--state_dir", state_dir});
  EXPECT_EQ(NumberOf("a"), 1u);
  StartWorker("b", {"--state_dir", state_dir});
  EXPECT_EQ(NumberOf("b"), 0u);
}

TEST_F(WorkerNumbersTest, TheNumberOfACertificateIsTaken) {
  TestAuthority authority(absl::StrCat(daemons_.folder(), "/authority"));
  StartServer({"--credentials", authority.Write(Identity{Role::kServer, "train", 0})});
  StartWorker("a", {"--credentials", authority.Write(Identity{Role::kWorker, "train", 1})});
  EXPECT_EQ(NumberOf("a"), 1u);
  // Its certificate is good for every number.
  StartWorker("b", {"--credentials", authority.Write(Identity{Role::kWorker, "train"})});
  EXPECT_EQ(NumberOf("b"), 0u);
}

TEST_F(WorkerNumbersTest, AProcessThatWaitsForItsNumberStops) {
  address_ = "127.0.0.1:1";
  StartWorker("a", {"--wait_for_servers"});
  ASSERT_TRUE(daemons_.WaitForLog("a", "asks server 0 (127.0.0.1:1) for a worker number"));
  daemons_.Signal("a", SIGTERM);
  EXPECT_EQ(daemons_.WaitForEnd("a").exit.code, 75);
}

TEST_F(WorkerNumbersTest, AWrongNumberIsRefused) {
  for (const std::string number : {"", "x", "-1", "1.5", "4294967296"}) {
    const ProcessResult worker = daemons_.Run(
        "worker/worker", {"--config", daemons_.Write("wrong.textproto", kJob), "--addresses",
                          "127.0.0.1:1", absl::StrCat("--worker=", number)});
    EXPECT_NE(worker.exit.code, 0);
    EXPECT_THAT(worker.log, HasSubstr("--worker")) << number;
  }
}

}  // namespace
}  // namespace thinwire
