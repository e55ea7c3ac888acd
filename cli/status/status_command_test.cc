#include "cli/status/status_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "cli/rpc/fake_control_server.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

class StatusCommandTest : public testing::Test {
 protected:
  ExitCode Run(const StatusCommand& command) {
    Console console(log_, ConsoleOptions());
    return RunStatus(command, console, out_);
  }

  FakeControlServer lead_{"a", "aaaa"};
  FakeControlServer other_{"b", "bbbbBBBB"};
  const std::string addresses_ = lead_.address() + "," + other_.address();
  std::ostringstream out_;
  std::ostringstream log_;
};

TEST_F(StatusCommandTest, TheStatusOfAllServersIsShown) {
  EXPECT_EQ(Run({.servers = {.addresses = addresses_}}), ExitCode::kOk) << log_.str();
  EXPECT_THAT(out_.str(), HasSubstr("servers     2 of 2 answered\n"));
  EXPECT_THAT(out_.str(), HasSubstr("accepted"));
  EXPECT_EQ(log_.str(), "");
}

TEST_F(StatusCommandTest, AServerThatDoesNotAnswerIsShownAsSuch) {
  other_.Stop();
  EXPECT_EQ(Run({.servers = {.addresses = addresses_}}), ExitCode::kOk);
  EXPECT_THAT(out_.str(), HasSubstr("servers     1 of 2 answered\n"));
  EXPECT_THAT(out_.str(), HasSubstr("server 1 has not answered for"));
  EXPECT_THAT(log_.str(), HasSubstr("error: server 1 (" + other_.address()));
}

TEST_F(StatusCommandTest, WithoutAnAnswerTheJobIsUnavailable) {
  lead_.Stop();
  other_.Stop();
  EXPECT_EQ(Run({.servers = {.addresses = addresses_}}), ExitCode::kUnavailable);
  EXPECT_THAT(out_.str(), HasSubstr("servers     0 of 2 answered\n"));
}

TEST_F(StatusCommandTest, JsonHasTheStatusOfEachServerAndTheSummary) {
  EXPECT_EQ(Run({.servers = {.addresses = addresses_}, .json = true}), ExitCode::kOk) << log_.str();
  const auto json = nlohmann::json::parse(out_.str());
  EXPECT_EQ(json["servers"].size(), 2u);
  EXPECT_EQ(json["servers"][1]["status"]["shards"][0]["values"], "2");
  EXPECT_EQ(json["summary"]["pushes"]["accepted"], 14);
}

TEST_F(StatusCommandTest, AMalformedAddressIsRefused) {
  EXPECT_EQ(Run({.servers = {.addresses = "0.0.0.0:1"}}), ExitCode::kConfig);
  EXPECT_THAT(log_.str(),
              HasSubstr("--addresses: reachable from other machines without credentials"));
  EXPECT_EQ(Run({.servers = {.addresses = "a"}}), ExitCode::kConfig);
  EXPECT_THAT(log_.str(), HasSubstr("--addresses: wrong value (expected host:port"));
}

}  // namespace
}  // namespace thinwire
