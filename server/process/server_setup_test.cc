#include "server/process/server_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ServerSetupTest : public testing::Test {
 protected:
  ServerSetupTest() { WriteJob("servers: 2"); }

  void WriteJob(const std::string& text) {
    flags_.config = testing::TempDir() + "/server_setup.textproto";
    std::ofstream(flags_.config) << text;
  }
  std::string Error() const {
    const auto setup = MakeServerSetup(flags_);
    EXPECT_EQ(setup.status().code(), absl::StatusCode::kInvalidArgument) << setup.status();
    return std::string(setup.status().message());
  }

  ServerFlags flags_;
};

TEST_F(ServerSetupTest, AServerListensOnItsEntryOfTheAddresses) {
  flags_.server = 1;
  flags_.connection.addresses = "a:7000,127.0.0.1:7001";
  const auto setup = MakeServerSetup(flags_);
  ASSERT_TRUE(setup.ok()) << setup.status();
  EXPECT_EQ(setup->server, ServerId{1});
  EXPECT_THAT(setup->addresses, ElementsAre("a:7000", "127.0.0.1:7001"));
  EXPECT_EQ(setup->listen, "127.0.0.1:7001");
  EXPECT_FALSE(setup->insecure);
}

TEST_F(ServerSetupTest, OnlyTheLeadNeedsTheAddressesOfTheOthers) {
  EXPECT_EQ(Error(),
            "--addresses: missing (expected the address of each of the 2 servers, because server 0 "
            "calls the other ones)");
  flags_.server = 1;
  const auto setup = MakeServerSetup(flags_);
  ASSERT_TRUE(setup.ok()) << setup.status();
  EXPECT_THAT(setup->addresses, IsEmpty());
  EXPECT_EQ(setup->listen, "127.0.0.1:0");
}

TEST_F(ServerSetupTest, TheBandwidthIsInBytesPerSecond) {
  flags_.server = 1;
  EXPECT_EQ(MakeServerSetup(flags_).value().bandwidth, BandwidthRates());
  flags_.bandwidth = {.uplink = "8mbit", .downlink = "16mbit"};
  EXPECT_EQ(MakeServerSetup(flags_).value().bandwidth, (BandwidthRates{.up = 1e6, .down = 2e6}));
  flags_.bandwidth.downlink = "16MB";
  EXPECT_THAT(Error(), testing::StartsWith("--downlink: wrong value"));
}

TEST_F(ServerSetupTest, OtherMachinesReachAServerWithoutCredentialsOnlyWithTheFlag) {
  flags_.server = 1;
  flags_.listen = "0.0.0.0:7000";
  EXPECT_THAT(Error(), HasSubstr("--listen: "));
  flags_.connection.insecure = true;
  const auto setup = MakeServerSetup(flags_);
  ASSERT_TRUE(setup.ok()) << setup.status();
  EXPECT_TRUE(setup->insecure);
  // The lead also sends its calls in plaintext.
  flags_ = {.config = flags_.config, .connection = {.addresses = "127.0.0.1:7000,b:7001"}};
  EXPECT_THAT(Error(), HasSubstr("--addresses: "));
}

TEST_F(ServerSetupTest, AFlagThatDoesNotFitTheJobIsNamed) {
  flags_.server = 2;
  EXPECT_EQ(Error(), "--server: out of range (expected below 2, the value of servers, got 2)");
  flags_.server = 1;
  flags_.listen = "here";
  EXPECT_EQ(Error(),
            "--listen: wrong value (expected host:port with a port from 0 to 65535, got \"here\")");
  flags_.listen = "";
  flags_.state_dir = "state";
  EXPECT_EQ(Error(),
            "--state_dir: only valid with durability: checkpoint or log in the job file (got "
            "durability: none and state)");
  flags_.state_dir = "";
  WriteJob("servers: 2 recovery { durability: log }");
  EXPECT_EQ(Error(),
            "--state_dir: missing (expected a folder for the server's state, because the job file "
            "has durability: checkpoint or log)");
}

TEST_F(ServerSetupTest, AnAggregatorServesItsSiteAndIsAWorkerOfTheJob) {
  WriteJob("name: \"wide\" servers: 2 consistency { workers: 3 }");
  flags_.site = {.site = 1, .workers = 4};
  flags_.connection.addresses = "127.0.0.1:7000,127.0.0.1:7001";
  flags_.listen = "127.0.0.1:7100";
  const auto setup = MakeServerSetup(flags_);
  ASSERT_TRUE(setup.ok()) << setup.status();
  EXPECT_EQ(setup->spec.name, "wide-site-1");
  EXPECT_EQ(setup->config.name(), "wide-site-1");
  EXPECT_EQ(setup->spec.rule.workers, 4u);
  EXPECT_EQ(setup->spec.server_count, 1u);
  EXPECT_THAT(setup->addresses, IsEmpty());
  EXPECT_EQ(setup->listen, "127.0.0.1:7100");
  ASSERT_TRUE(setup->upper.has_value());
  EXPECT_EQ(setup->upper->worker, WorkerId{1});
  EXPECT_EQ(setup->upper->spec.name, "wide");
  EXPECT_EQ(setup->upper->config.consistency().workers(), 3u);
  EXPECT_THAT(setup->upper->addresses, ElementsAre("127.0.0.1:7000", "127.0.0.1:7001"));
}

TEST_F(ServerSetupTest, FlagsOfAnAggregatorFitEachOther) {
  flags_.server = 1;
  flags_.site_credentials = "certs";
  EXPECT_EQ(Error(), "--site_credentials: only valid with --site (got certs and no site)");
  flags_.site_credentials.clear();
  flags_.site = {.site = 0, .workers = 4};
  EXPECT_EQ(Error(), "--server: not possible with --site (expected 0, got 1)");
  flags_.server = 0;
  EXPECT_THAT(Error(), HasSubstr("--addresses: wrong value"));
  flags_.connection.addresses = "10.0.0.1:7000,10.0.0.1:7001";
  EXPECT_THAT(Error(), HasSubstr("--addresses"));
  flags_.connection.addresses = "127.0.0.1:7000";
  EXPECT_THAT(Error(), HasSubstr("--addresses: wrong number of servers (expected 2"));
}

}  // namespace
}  // namespace thinwire
