#include "common/time/post_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/time/virtual_time.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

// Counts the calls of Post.
class CountingExecutor final : public Executor {
 public:
  explicit CountingExecutor(VirtualTime& time) : executor_(time.Make()) {}

  absl::Time Now() override { return executor_->Now(); }
  void Post(Task task) override {
    ++posts;
    executor_->Post(std::move(task));
  }
  void PostAt(absl::Time at, Task task) override { executor_->PostAt(at, std::move(task)); }
  void Stop() override { executor_->Stop(); }
  void Finish() override { executor_->Finish(); }

  int posts = 0;

 private:
  const std::unique_ptr<Executor> executor_;
};

TEST(PostBatchTest, TheTasksOfAnExecutorAreOnePostInTheirOrder) {
  VirtualTime time;
  CountingExecutor a(time), b(time);
  std::vector<std::string> ran;
  const auto owned = std::make_shared<int>();
  {
    PostBatch batch;
    batch.Add(a, [&ran, owned] { ran.push_back("a1"); });
    batch.Add(b, [&ran] { ran.push_back("b1"); });
    batch.Add(a, [&] { ran.push_back(owned.use_count() == 1 ? "a2" : "a2, and a1 still exists"); });
    EXPECT_EQ(a.posts + b.posts, 0);
  }
  EXPECT_EQ(a.posts, 1);
  EXPECT_EQ(b.posts, 1);
  a.Finish();
  b.Finish();
  EXPECT_THAT(ran, ElementsAre("a1", "a2", "b1"));
}

}  // namespace
}  // namespace thinwire
