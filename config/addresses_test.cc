#include "config/addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace thinwire {
namespace {

using testing::ElementsAre;

TEST(AddressesTest, AddressesAreHostsWithPorts) {
  EXPECT_THAT(*ParseAddresses("a:7000,[::1]:7001", 2), ElementsAre("a:7000", "[::1]:7001"));
  for (const char* text : {"", "a", "a:0", "a:70000", ":1"}) {
    EXPECT_FALSE(ParseAddresses(text, 1).ok()) << text;
  }
  EXPECT_FALSE(ParseAddresses("a:7000,", 2).ok());
  EXPECT_TRUE(IsAddress("127.0.0.1:0", 0));
  EXPECT_EQ(ParseAddresses("a:7000,b", 2).status().message(),
            "--addresses: wrong value (expected host:port with a port from 1 to 65535, got "
            "\"b\")");
}

TEST(AddressesTest, LoopbackAddressesAreThoseOfThisMachine) {
  for (const char* address :
       {"127.0.0.1:0", "127.9.9.9:80", "localhost:5000", "[::1]:7", "unix:/x"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  for (const char* address :
       {"0.0.0.0:0", "[::]:0", "10.0.0.1:80", "127.evil.org:80", "node7:80", ""}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
  }
}

TEST(AddressesTest, PlaintextWithOtherMachinesNeedsInsecure) {
  const std::vector<std::string> here = {"127.0.0.1:7000", "localhost:7001"};
  const std::vector<std::string> there = {"127.0.0.1:7000", "node7:7000"};
  for (const bool insecure : {false, true}) {
    EXPECT_EQ(CheckPlaintext("--addresses", here, false, insecure), absl::OkStatus());
  }
  EXPECT_EQ(CheckPlaintext("--addresses", there, true, false), absl::OkStatus());
  EXPECT_EQ(CheckPlaintext("--addresses", there, false, true), absl::OkStatus());
  EXPECT_EQ(
      CheckPlaintext("--addresses", there, false, false).message(),
      "--addresses: reachable from other machines without credentials (expected --credentials, an "
      "address of this machine such as 127.0.0.1:7000, or --insecure in a network that nobody else "
      "reaches, got node7:7000)");
  EXPECT_EQ(CheckPlaintext("--addresses", there, true, true).message(),
            "--insecure: not valid with --credentials");
}

TEST(AddressesTest, EveryServerHasAnAddressOfItsOwn) {
  EXPECT_EQ(ParseAddresses("a:7000,b:7000", 3).status().message(),
            "--addresses: wrong number of servers (expected 3, the value of servers, got 2)");
  EXPECT_EQ(ParseAddresses("a:1,b:1,a:1", 3).status().message(),
            "--addresses: one address for two servers (expected an address per server, got a:1 for "
            "servers 0 and 2)");
}

}  // namespace
}  // namespace thinwire
