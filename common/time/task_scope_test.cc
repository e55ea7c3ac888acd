#include "common/time/task_scope.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "common/time/virtual_time.h"

namespace thinwire {
namespace {

TEST(TaskScopeTest, ATaskRunsWhileItsScopeExists) {
  VirtualTime time;
  const auto loop = time.Make();
  TaskScope scope;
  int runs = 0;
  loop->Post(scope.Bind([&] { ++runs; }));
  time.RunNext();
  EXPECT_EQ(runs, 1);
}

TEST(TaskScopeTest, ATaskOfADestroyedScopeDoesNothing) {
  VirtualTime time;
  const auto loop = time.Make();
  std::optional<TaskScope> scope(std::in_place);
  int runs = 0;
  loop->Post(scope->Bind([&] { ++runs; }));
  loop->Post([&] { scope.reset(); });
  loop->PostAt(time.Now() + absl::Seconds(1), scope->Bind([&] { ++runs; }));
  while (!time.empty()) time.RunNext();
  EXPECT_EQ(runs, 1);
}

TEST(TaskScopeTest, ABoundFunctionPassesItsArguments) {
  TaskScope scope;
  std::string got;
  auto append = scope.Bind([&](const std::string& text, int number) {
    got += text + std::to_string(number);
  });
  append("a", 1);
  auto copy = append;
  copy("b", 2);
  EXPECT_EQ(got, "a1b2");
}

}  // namespace
}  // namespace thinwire
