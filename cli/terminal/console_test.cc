#include "cli/terminal/console.h"

#include <gtest/gtest.h>

#include <sstream>

namespace thinwire {
namespace {

TEST(ConsoleTest, WithoutATerminalEveryMessageIsAPlainLine) {
  std::ostringstream out;
  Console console(out, {.terminal = false, .color = false, .columns = 4});
  console.Progress("step 1");
  console.Warning("slow");
  console.Progress("step 2");
  console.ClearProgress();
  EXPECT_EQ(out.str(), "step 1\nwarning: slow\nstep 2\n");
}

TEST(ConsoleTest, OnATerminalTheProgressIsRewrittenAndMessagesGoAboveIt) {
  std::ostringstream out;
  Console console(out, {.terminal = true, .color = false, .columns = 7});
  console.Progress("step 1 and more");
  console.Note("hello");
  EXPECT_EQ(out.str(), "\r\033[Kstep 1\r\033[Khello\nstep 1");
}

TEST(ConsoleTest, TheProgressIsRemovedAtItsEnd) {
  std::ostringstream out;
  Console console(out, {.terminal = true, .color = false, .columns = 80});
  console.ClearProgress();
  EXPECT_EQ(out.str(), "");
  console.Progress("step 1");
  console.ClearProgress();
  console.Note("done");
  EXPECT_EQ(out.str(), "\r\033[Kstep 1\r\033[Kdone\n");
}

TEST(ConsoleTest, ColorsAreOptional) {
  std::ostringstream out;
  Console(out, {.terminal = true, .color = true, .columns = 80}).Error("lost");
  EXPECT_EQ(out.str(), "\033[31merror: \033[0mlost\n");
}

}  // namespace
}  // namespace thinwire
