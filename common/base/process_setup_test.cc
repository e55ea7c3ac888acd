#include "common/base/process_setup.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace thinwire {
namespace {

using ::testing::UnorderedElementsAre;

TEST(ProcessSetupTest, AnIgnoredHangupIsNoStopSignal) {
  EXPECT_THAT(StopSignals(), UnorderedElementsAre(SIGINT, SIGTERM, SIGHUP));
  signal(SIGHUP, SIG_IGN);
  EXPECT_THAT(StopSignals(), UnorderedElementsAre(SIGINT, SIGTERM));
  signal(SIGHUP, SIG_DFL);
}

TEST(ProcessSetupTest, AWriteWithoutAReaderIsAnError) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  IgnoreBrokenPipes();
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

TEST(ProcessSetupTest, AFileDoesNotTakeThePlaceOfAClosedStandardFile) {
  const int input = dup(STDIN_FILENO);
  close(STDIN_FILENO);
  FillStandardFiles();
  const int file = open("/dev/null", O_RDONLY);
  EXPECT_GT(file, STDERR_FILENO);
  close(file);
  if (input >= 0) {
    dup2(input, STDIN_FILENO);
    close(input);
  }
}

}  // namespace
}  // namespace thinwire
