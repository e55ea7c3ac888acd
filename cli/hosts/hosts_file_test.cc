#include "cli/hosts/hosts_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(HostsFileTest, ALineIsAMachineWithItsProcesses) {
  const auto hosts = ParseHosts(
      "# the machines\n"
      "\n"
      "10.0.0.1 servers=1 port=7000  # the lead\n"
      "\tme@gpu-a workers=2 servers=2 device=cuda:0,cuda:1 data_dir=/data address=10.0.0.2\r\n"
      "fe80::1 workers=1",
      "hosts.txt");
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_THAT(
      *hosts,
      ElementsAre(
          Host{.place = "hosts.txt:3",
               .name = "10.0.0.1",
               .address = "10.0.0.1",
               .servers = 1,
               .port = 7000},
          Host{.place = "hosts.txt:4",
               .name = "me@gpu-a",
               .address = "10.0.0.2",
               .servers = 2,
               .workers = 2,
               .devices = {"cuda:0", "cuda:1"},
               .data_dir = "/data"},
          Host{.place = "hosts.txt:5", .name = "fe80::1", .address = "[fe80::1]", .workers = 1}));
}

TEST(HostsFileTest, EveryProblemIsReportedWithItsLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "h: no machines (expected lines such as"},
      {"a", "h:1: a: no processes (expected servers=COUNT or workers=COUNT, got none)"},
      {"a workers=x",
       "h:1: workers: wrong value (expected a whole number from 0 to 1024, got \"x\")"},
      {"\na worker=1",
       "h:2: setting: unknown (expected servers, workers, address, port, device or "
       "data_dir, got \"worker\"; did you mean workers?)"},
      {"a servers=2 port=65535",
       "h:1: port: out of range (expected at most 65534 for 2 servers, got 65535)"},
      {"a workers=1 device=", "h:1: device: no value (expected device=VALUE)"},
      {"-oProxyCommand=x workers=1", "h:1: name: wrong value (expected the name of a machine, got"},
      {"a workers=x\nb workers=y", "got \"x\")\nh:2: workers: wrong value"},
  };
  for (const auto& [text, problem] : cases) {
    const auto hosts = ParseHosts(text, "h");
    ASSERT_FALSE(hosts.ok()) << text;
    EXPECT_THAT(std::string(hosts.status().message()), HasSubstr(problem));
  }
}

TEST(HostsFileTest, EveryProcessOfTheJobNeedsAPlace) {
  const auto hosts = ParseHosts("a servers=1 workers=1\nb servers=1 workers=3", "h");
  ASSERT_TRUE(hosts.ok());
  EXPECT_TRUE(CheckHostCounts(*hosts, "h", 2, 4).ok());
  EXPECT_TRUE(CheckHostCounts(*hosts, "h", 2, 3).ok()) << "a place for a further worker";
  EXPECT_EQ(CheckHostCounts(*hosts, "h", 3, 4).message(),
            "h: servers: wrong sum (expected 3, the value of servers in the job, got 2)");
  EXPECT_EQ(CheckHostCounts(*hosts, "h", 2, 5).message(),
            "h: workers: wrong sum (expected at least 5, the value of workers in the job, got 4)");
}

}  // namespace
}  // namespace thinwire
