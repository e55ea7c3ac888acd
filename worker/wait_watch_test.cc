#include "worker/wait_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/synchronization/notification.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

TEST(WaitWatchTest, TellsEachChangeOnce) {
  // The texts of one look after the other.
  const std::vector<std::string> texts = {"", "", "a", "a", "b", "", "", "a", "end"};
  size_t look = 0;
  std::vector<std::string> told;
  absl::Notification ended;
  {
    WaitWatch watch([&] { return texts[std::min(look++, texts.size() - 1)]; },
                    [&](const std::string& text) {
                      told.push_back(text);
                      if (text == "end") ended.Notify();
                    },
                    absl::Microseconds(10));
    ended.WaitForNotification();
  }
  EXPECT_THAT(told, ElementsAre("a", "b", "", "a", "end"));
}

TEST(WaitWatchTest, EndsWithoutWaitingForItsInterval) {
  WaitWatch watch([] { return std::string("x"); },
                  [](const std::string&) { ADD_FAILURE() << "looked too early"; },
                  absl::InfiniteDuration());
}

}  // namespace
}  // namespace thinwire
