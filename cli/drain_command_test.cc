#include "cli/drain_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/rpc/fake_control_server.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

class DrainCommandTest : public testing::Test {
 protected:
  ExitCode Run(const DrainCommand& command) {
    Console console(log_, ConsoleOptions());
    return RunDrain(command, console, out_);
  }

  FakeControlServer lead_{"a", "aaaa"};
  FakeControlServer other_{"b", "bbbb"};
  const std::string addresses_ = lead_.address() + "," + other_.address();
  std::ostringstream out_;
  std::ostringstream log_;
};

TEST_F(DrainCommandTest, AWorkerIsDrainedByTheLead) {
  EXPECT_EQ(Run({.servers = {.addresses = addresses_}, .worker = 3}), ExitCode::kOk) << log_.str();
  EXPECT_THAT(out_.str(), HasSubstr("worker 3 finishes its step"));
  ASSERT_TRUE(lead_.drained.has_value());
  EXPECT_EQ(lead_.drained->worker(), 3u);
  EXPECT_FALSE(other_.drained.has_value());
}

TEST_F(DrainCommandTest, AServerDrainsItself) {
  EXPECT_EQ(Run({.servers = {.addresses = addresses_}, .server = 1}), ExitCode::kOk) << log_.str();
  EXPECT_THAT(out_.str(), HasSubstr("server 1 stops"));
  ASSERT_TRUE(other_.drained.has_value());
  EXPECT_FALSE(other_.drained->has_worker());
  EXPECT_FALSE(lead_.drained.has_value());
}

TEST_F(DrainCommandTest, ARefusalNamesTheServer) {
  EXPECT_EQ(Run({.servers = {.addresses = addresses_}, .worker = 7}), ExitCode::kConfig);
  EXPECT_THAT(log_.str(), HasSubstr("server 0 (" + lead_.address() + "): worker 7: not live"));
}

TEST_F(DrainCommandTest, ATargetIsNeeded) {
  EXPECT_EQ(Run({.servers = {.addresses = addresses_}}), ExitCode::kUsage);
  EXPECT_THAT(log_.str(), HasSubstr("--worker, --server: expected one of them, got none"));
}

TEST_F(DrainCommandTest, AServerThatIsNotListedIsRefused) {
  EXPECT_EQ(Run({.servers = {.addresses = addresses_}, .server = 2}), ExitCode::kConfig);
  EXPECT_THAT(log_.str(), HasSubstr("--server: out of range (expected below 2, the number of "
                                    "--addresses, got 2)"));
}

TEST_F(DrainCommandTest, AServerOnAnotherMachineNeedsCredentialsOrInsecure) {
  ConnectionFlags servers = {.addresses = "0.0.0.0:1"};
  EXPECT_EQ(Run({.servers = servers, .worker = 3}), ExitCode::kConfig);
  EXPECT_THAT(log_.str(),
              HasSubstr("--addresses: reachable from other machines without credentials"));
  servers.insecure = true;
  EXPECT_EQ(Run({.servers = servers, .worker = 3}), ExitCode::kUnavailable);
}

TEST_F(DrainCommandTest, AnUnreachableServerIsUnavailable) {
  other_.Stop();
  EXPECT_EQ(Run({.servers = {.addresses = addresses_}, .server = 1}), ExitCode::kUnavailable);
  EXPECT_THAT(log_.str(), HasSubstr("server 1 (" + other_.address()));
}

}  // namespace
}  // namespace thinwire
