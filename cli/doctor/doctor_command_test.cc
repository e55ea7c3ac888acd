#include "cli/doctor/doctor_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "cli/doctor/link.h"
#include "proto/grpc_credentials.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

class DoctorCommandTest : public testing::Test {
 protected:
  ExitCode Run(const DoctorCommand& command) {
    Console console(log_, ConsoleOptions());
    return RunDoctor(command, console, out_);
  }

  std::ostringstream out_;
  std::ostringstream log_;
};

TEST_F(DoctorCommandTest, WithoutFlagsCodecsAreMeasured) {
  EXPECT_EQ(Run({}), ExitCode::kOk) << log_.str();
  EXPECT_THAT(out_.str(), HasSubstr("\nfp8_e4m3 "));
  EXPECT_THAT(out_.str(), HasSubstr("no prediction: unknown model size"));
  EXPECT_THAT(out_.str(), HasSubstr("no prediction: unknown network speed"));
}

TEST_F(DoctorCommandTest, ALinkAndASizeGiveAPrediction) {
  const auto listener = LinkListener::Start("127.0.0.1:0", Credentials());
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_EQ(Run({.servers = {.addresses = (*listener)->address()},
                 .state_dir = testing::TempDir(),
                 .compute = "120ms",
                 .parameters = 100'000,
                 .json = true}),
            ExitCode::kOk)
      << log_.str();
  const auto json = nlohmann::json::parse(out_.str());
  EXPECT_EQ(json["links"][0]["address"], (*listener)->address());
  EXPECT_GT(json["disk"]["bytes_per_second"], 0);
  EXPECT_EQ(json["compute_ms"], 120);
  EXPECT_EQ(json["predictions"].size(), json["codecs"].size());
  EXPECT_GT(json["predictions"][0]["step_ms"], 120);
  EXPECT_TRUE(json["recommended"]["push"].is_string());
}

TEST_F(DoctorCommandTest, WrongFlagsAreNamed) {
  EXPECT_EQ(Run({.compute = "long"}), ExitCode::kConfig);
  EXPECT_THAT(log_.str(), HasSubstr("--compute: wrong value (expected a time such as 120ms"));
  EXPECT_EQ(Run({.servers = {.addresses = "127.0.0.1:1"}}), ExitCode::kUnavailable);
  EXPECT_THAT(log_.str(), HasSubstr("server 0 (127.0.0.1:1): "));
}

TEST_F(DoctorCommandTest, AListenerForOtherMachinesNeedsCredentials) {
  EXPECT_EQ(Run({.listen = "0.0.0.0:0"}), ExitCode::kConfig);
  EXPECT_THAT(log_.str(), HasSubstr("--listen: reachable from other machines without credentials"));
  EXPECT_EQ(Run({.servers = {.addresses = "0.0.0.0:1"}}), ExitCode::kConfig);
  EXPECT_THAT(log_.str(),
              HasSubstr("--addresses: reachable from other machines without credentials"));
}

}  // namespace
}  // namespace thinwire
