#include "client/encode/live_residuals.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <memory_resource>
#include <string>
#include <utility>
#include <vector>

#include "common/files/crc32c.h"

namespace thinwire::client {
namespace {

using ::testing::HasSubstr;
using Floats = std::pmr::vector<float>;

constexpr WorkerId kWorker{3};
constexpr RunId kRun{7};
constexpr Generation kGeneration{2};

// Runs CHILD in a process of its own and returns how it ended.
int StatusOf(const std::function<void()>& child) {
  const pid_t pid = fork();
  if (pid == 0) {
    child();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

// Makes the system call fallocate fail in this process, as file systems without it do. Returns false
// if the system does not allow that.
bool RefuseFallocate() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {.len = std::size(program), .filter = program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    return false;
  }
  return fallocate(-1, 0, 0, 1) != 0 && errno == EOPNOTSUPP;
}

class LiveResidualsTest : public ::testing::Test {
 protected:
  LiveResidualsTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  std::unique_ptr<LiveResiduals> Create() const {
    auto live = LiveResiduals::Create(path_, kWorker, partition_);
    EXPECT_TRUE(live.ok()) << live.status();
    return *std::move(live);
  }

  // Publishes a file whose shards 0 and 1 are those before step 5.
  void Train() {
    live_ = Create();
    live_->Begin(kRun, kGeneration);
    residual_ = std::make_unique<Floats>(8, 1.5f, live_.get());
    momentum_ = std::make_unique<Floats>(8, -2.0f, live_.get());
    vector_ = std::make_unique<Floats>(2, 4.0f, live_.get());
    live_->Keep(ShardId{0}, Step{5},
                {.residual = *residual_, .momentum = *momentum_, .late_examples = 16});
    live_->Keep(ShardId{1}, Step{5}, {.residual = *vector_, .momentum = {}});
    EXPECT_TRUE(live_->Publish().ok());
  }

  absl::StatusOr<LeftResiduals> Read() const {
    return ReadLeftResiduals(path_, kWorker, partition_);
  }
  std::string Content() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void Put(const std::string& content) const {
    std::filesystem::remove(path_);
    std::ofstream(path_, std::ios::binary) << content;
  }

  const std::string folder_ =
      testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path_ = folder_ + "/live";
  // Shard 0 is the matrix, shard 1 the vector.
  const Partition partition_ = *Partition::Make({{"b", {2}}, {"w", {4, 2}}}, 4096, 1);
  std::unique_ptr<LiveResiduals> live_;
  std::unique_ptr<Floats> residual_, momentum_, vector_;
};

TEST_F(LiveResidualsTest, AKilledProcessLeavesItsWholeShards) {
  const int status = StatusOf([this] {
    Train();
    live_->BeginStep(Step{6});
    live_->Change(ShardId{1});
    (*vector_)[0] = 9;
    kill(getpid(), SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  const auto left = Read();
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_EQ(left->run, kRun);
  EXPECT_EQ(left->generation, kGeneration);
  EXPECT_FALSE(left->shards[0].lost);
  EXPECT_EQ(left->shards[0].step, Step{6});
  EXPECT_EQ(left->shards[0].values.residual, std::vector<float>(8, 1.5f));
  EXPECT_EQ(left->shards[0].values.momentum, std::vector<float>(8, -2.0f));
  EXPECT_EQ(left->shards[0].values.late_examples, 16u);
  EXPECT_TRUE(left->shards[1].lost) << "it was being changed";
  EXPECT_TRUE(left->shards[1].values.residual.empty());
}

TEST_F(LiveResidualsTest, AShardThatIsBeingChangedKeepsItsStep) {
  Train();
  live_->Change(ShardId{0});
  live_->BeginStep(Step{9});
  live_->Keep(ShardId{0}, {.residual = {}, .momentum = *momentum_});
  const auto left = Read();
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_EQ(left->shards[0].step, Step{5});
  EXPECT_FALSE(left->shards[0].lost);
  EXPECT_TRUE(left->shards[0].values.residual.empty()) << "all values are 0";
  EXPECT_EQ(left->shards[1].step, Step{9});
}

TEST_F(LiveResidualsTest, TheFileOfTheFormerProcessStaysUntilPublish) {
  Train();
  const auto live = Create();
  live->Begin(RunId{8}, kGeneration);
  EXPECT_EQ(Read()->run, kRun);
  ASSERT_TRUE(live->Publish().ok());
  EXPECT_EQ(Read()->run, RunId{8});
}

TEST_F(LiveResidualsTest, AProcessThatWasNotPublishedLeavesNoFile) {
  Create().reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_TRUE(absl::IsNotFound(Read().status()));
}

TEST_F(LiveResidualsTest, TwoProcessesDoNotPublishEachOthersFiles) {
  const auto first = Create();
  const auto second = Create();
  EXPECT_FALSE(first->Publish().ok());
  EXPECT_TRUE(second->Publish().ok());
}

TEST_F(LiveResidualsTest, AFileOfAnotherWorkerPartitionOrStartOfTheMachineIsRefused) {
  Train();
  EXPECT_THAT(std::string(ReadLeftResiduals(path_, WorkerId{4}, partition_).status().message()),
              HasSubstr("not this worker's file (expected worker 4, got 3)"));
  const Partition other = *Partition::Make({{"b", {2}}, {"w", {2, 4}}}, 4096, 1);
  EXPECT_THAT(std::string(ReadLeftResiduals(path_, kWorker, other).status().message()),
              HasSubstr("belongs to another model, shard_size or number of servers (expected"));
  std::string content = Content();
  content[40] = content[40] == 'a' ? 'b' : 'a';  // of the text that names the start
  const uint32_t crc = Crc32c(std::as_bytes(std::span(content).first(80)));
  content.replace(80, 4, reinterpret_cast<const char*>(&crc), 4);
  Put(content);
  EXPECT_THAT(std::string(Read().status().message()),
              HasSubstr("the machine was started again, so its values may be mixed"));
}

TEST_F(LiveResidualsTest, DamageIsFoundOrLeavesTheShardLost) {
  Train();
  const std::string whole = Content();
  ASSERT_GT(whole.size(), 4u * 4096);
  for (size_t bit = 0; bit < 8 * 84; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    Put(damaged);
    EXPECT_FALSE(Read().ok()) << "bit " << bit << " of the head";
  }
  for (const size_t length : {0, 83, 84, 4095, 4096, 4096 + 127}) {
    Put(whole.substr(0, length));
    EXPECT_FALSE(Read().ok()) << "length " << length;
  }
  Put(whole.substr(0, 2 * 4096));
  EXPECT_TRUE(Read()->shards[0].lost) << "its arrays are missing";
  std::string misplaced = whole;
  misplaced[4096 + 16] = 8;  // the position of the residual
  Put(misplaced);
  EXPECT_TRUE(Read()->shards[0].lost);
  Put(whole);
  EXPECT_FALSE(Read()->shards[0].lost);
}

TEST_F(LiveResidualsTest, AValueThatIsNotFiniteIsNotRestored) {
  Train();
  (*vector_)[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(Read()->shards[1].lost);
  EXPECT_FALSE(Read()->shards[0].lost);
}

TEST_F(LiveResidualsTest, FreedArraysAreUsedAgain) {
  const auto live = Create();
  for (int i = 0; i < 100; ++i) {
    Floats first(8, &*live), second(8, &*live);
    Floats third(2, &*live);
  }
  EXPECT_FALSE(live->full());
}

TEST_F(LiveResidualsTest, AnArrayWithoutRoomComesFromTheOtherMemoryAndIsLost) {
  const auto live = Create();
  live->Begin(kRun, kGeneration);
  std::vector<Floats> arrays;
  while (!live->full()) arrays.emplace_back(8, 1.0f, &*live);
  live->Keep(ShardId{0}, Step{5}, {.residual = arrays.back(), .momentum = {}});
  ASSERT_TRUE(live->Publish().ok());
  EXPECT_TRUE(Read()->shards[0].lost);
}

TEST_F(LiveResidualsTest, AFullDiskEndsNoProcess) {
  const Partition large = *Partition::Make({{"w", {1000, 100}}}, 65536, 1);
  constexpr int kNoNamespace = 77;
  const auto train = [&](const std::string& size, bool has_fallocate = true) {
    return StatusOf([&] {
      const uid_t user = getuid();
      const gid_t group = getgid();
      if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) _exit(kNoNamespace);
      // Without numbers in the namespace, the user and the group cannot have files.
      std::ofstream("/proc/self/uid_map") << user << ' ' << user << " 1";
      std::ofstream("/proc/self/setgroups") << "deny";
      std::ofstream("/proc/self/gid_map") << group << ' ' << group << " 1";
      if (mount("none", folder_.c_str(), "tmpfs", 0, size.c_str()) != 0) {
        _exit(kNoNamespace);
      }
      if (!has_fallocate && !RefuseFallocate()) _exit(kNoNamespace);
      const auto live = LiveResiduals::Create(path_, kWorker, large);
      if (!live.ok()) _exit(absl::IsResourceExhausted(live.status()) ? 1 : 4);
      std::vector<Floats> arrays;
      for (int i = 0; i < 3; ++i) arrays.emplace_back(65536, 1.0f, live->get());
      _exit((*live)->full() ? 2 : 3);
    });
  };
  const int status = train("size=400k");
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoNamespace) {
    GTEST_SKIP() << "this machine allows no mount";
  }
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 2) << "one of three arrays fits";
  // The C library then writes a byte of every page instead.
  const int written = train("size=400k", /*has_fallocate=*/false);
  ASSERT_TRUE(WIFEXITED(written)) << "signal " << WTERMSIG(written);
  EXPECT_EQ(WEXITSTATUS(written), 2) << "without fallocate";
  const int roomy = train("size=4m", /*has_fallocate=*/false);
  ASSERT_TRUE(WIFEXITED(roomy)) << "signal " << WTERMSIG(roomy);
  EXPECT_EQ(WEXITSTATUS(roomy), 3) << "all arrays fit without fallocate";
  const int created = train("size=4k");
  ASSERT_TRUE(WIFEXITED(created)) << "signal " << WTERMSIG(created);
  EXPECT_EQ(WEXITSTATUS(created), 1) << "not even the head fits";
}

}  // namespace
}  // namespace thinwire::client
