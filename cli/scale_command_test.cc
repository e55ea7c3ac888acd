#include "cli/scale_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "cli/rpc/fake_control_server.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

class ScaleCommandTest : public testing::Test {
 protected:
  ExitCode Run(const std::string& addresses, uint32_t workers) {
    Console console(messages_, {});
    return RunScale({.servers = {.addresses = addresses}, .workers = workers}, console, out_);
  }

  std::ostringstream out_, messages_;
};

TEST_F(ScaleCommandTest, TheLeadGetsTheNewNumber) {
  FakeControlServer lead("tensor", "aaaa");
  lead.target_workers = 2;
  EXPECT_EQ(Run(lead.address() + ",127.0.0.1:1", 4), ExitCode::kOk) << messages_.str();
  EXPECT_EQ(out_.str(), "workers 2 -> 4\n");
  EXPECT_EQ(lead.target_workers, 4u);
}

TEST_F(ScaleCommandTest, ARefusalIsAnErrorOfTheConfiguration) {
  FakeControlServer lead("tensor", "aaaa");
  EXPECT_EQ(Run(lead.address(), 99), ExitCode::kConfig);
  EXPECT_THAT(messages_.str(), HasSubstr("server 0 (" + lead.address() + "): workers: out of"));
}

TEST_F(ScaleCommandTest, AnUnreachableLeadAndAWrongAddressAreNamed) {
  FakeControlServer lead("tensor", "aaaa");
  lead.Stop();
  EXPECT_EQ(Run(lead.address(), 2), ExitCode::kUnavailable);
  EXPECT_THAT(messages_.str(), HasSubstr("server 0 (" + lead.address() + "): "));
  EXPECT_EQ(Run("localhost", 2), ExitCode::kConfig);
  EXPECT_THAT(messages_.str(), HasSubstr("--addresses: wrong value (expected host:port"));
}

}  // namespace
}  // namespace thinwire
