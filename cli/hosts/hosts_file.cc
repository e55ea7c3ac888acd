#include "cli/hosts/hosts_file.h"

#include <array>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/text/did_you_mean.h"

namespace thinwire {
namespace {

constexpr uint32_t kMaxProcesses = 1024;  // of one kind on one machine
constexpr uint32_t kMaxPort = 65535;
constexpr std::array<std::string_view, 6> kSettings = {"servers", "workers", "address",
                                                       "port",    "device",  "data_dir"};

absl::StatusOr<uint32_t> ParseNumber(const std::string& name, const std::string& value,
                                     uint32_t least, uint32_t most) {
  uint32_t number = 0;
  if (absl::SimpleAtoi(value, &number) && number >= least && number <= most) return number;
  return absl::InvalidArgumentError(absl::StrCat(name,
                                                 ": wrong value (expected a whole number from ",
                                                 least, " to ", most, ", got \"", value, "\")"));
}

absl::Status Set(Host& host, const std::string& name, const std::string& value) {
  if (value.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": no value (expected ", name, "=VALUE)"));
  }
  if (name == "servers") {
    ASSIGN_OR_RETURN(host.servers, ParseNumber(name, value, 0, kMaxProcesses));
  } else if (name == "workers") {
    ASSIGN_OR_RETURN(host.workers, ParseNumber(name, value, 0, kMaxProcesses));
  } else if (name == "port") {
    ASSIGN_OR_RETURN(host.port, ParseNumber(name, value, 1, kMaxPort));
  } else if (name == "address") {
    host.address = value;
  } else if (name == "device") {
    host.devices = absl::StrSplit(value, ',');
  } else if (name == "data_dir") {
    host.data_dir = value;
  } else {
    return UnknownWord("setting", name, kSettings);
  }
  return absl::OkStatus();
}

// Returns the part of NAME, a target of ssh, that is an address. Encloses an IPv6 address in
// brackets, because a port follows it.
std::string AddressOf(const std::string& name) {
  const std::string address = name.substr(name.find('@') + 1);
  const bool bare_ipv6 = address.find(':') != std::string::npos && !address.starts_with('[');
  return bare_ipv6 ? absl::StrCat("[", address, "]") : address;
}

absl::StatusOr<Host> ParseHost(const std::vector<std::string>& words) {
  Host host;
  host.name = words.front();
  // ssh would take such a name for a flag.
  if (host.name.starts_with('-') || host.name.find('=') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "name: wrong value (expected the name of a machine, got \"", host.name, "\")"));
  }
  host.address = AddressOf(host.name);
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<std::string, std::string> setting =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    RETURN_IF_ERROR(Set(host, setting.first, setting.second));
  }
  if (host.servers == 0 && host.workers == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        host.name, ": no processes (expected servers=COUNT or workers=COUNT, got none)"));
  }
  if (host.port + host.servers > kMaxPort + 1) {
    return absl::InvalidArgumentError(absl::StrCat("port: out of range (expected at most ",
                                                   kMaxPort + 1 - host.servers, " for ",
                                                   host.servers, " servers, got ", host.port, ")"));
  }
  return host;
}

absl::Status WrongSum(const std::string& file, const std::string& name, const std::string& expected,
                      uint64_t got) {
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", name, ": wrong sum (expected ",
                                                 expected, ", the value of ", name,
                                                 " in the job, got ", got, ")"));
}

}  // namespace

absl::StatusOr<std::vector<Host>> ParseHosts(std::string_view text, const std::string& file) {
  std::vector<Host> hosts;
  std::vector<std::string> problems;
  size_t number = 0;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(std::string(text), '\n'))) {
    const std::string place = absl::StrCat(file, ":", ++number);
    const std::vector<std::string> words =
        absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    absl::StatusOr<Host> host = ParseHost(words);
    if (!host.ok()) {
      problems.push_back(absl::StrCat(place, ": ", host.status().message()));
      continue;
    }
    host->place = place;
    hosts.push_back(*std::move(host));
  }
  if (hosts.empty() && problems.empty()) {
    problems.push_back(absl::StrCat(file,
                                    ": no machines (expected lines such as \"10.0.0.1 "
                                    "servers=1 workers=2\", got none)"));
  }
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  return hosts;
}

absl::Status CheckHostCounts(const std::vector<Host>& hosts, const std::string& file,
                             uint32_t servers, uint32_t workers) {
  uint64_t server_sum = 0, worker_sum = 0;
  for (const Host& host : hosts) {
    server_sum += host.servers;
    worker_sum += host.workers;
  }
  if (server_sum != servers) return WrongSum(file, "servers", absl::StrCat(servers), server_sum);
  if (worker_sum < workers) {
    return WrongSum(file, "workers", absl::StrCat("at least ", workers), worker_sum);
  }
  return absl::OkStatus();
}

}  // namespace thinwire
