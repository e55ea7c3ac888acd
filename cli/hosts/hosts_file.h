// Reads the hosts file of `thinwire launch`: one line per machine, with the processes that run
// there.
//
//   # name     settings
//   10.0.0.1   servers=1 port=7000
//   gpu-a      servers=1 workers=2 device=cuda:0,cuda:1 address=10.0.0.2
//
//   setting    default          meaning
//   servers    0                the number of servers
//   workers    0                the number of workers
//   address    the name         where the servers of this machine listen
//   port       a free port      the port of the first server; each further server takes the next one
//   device     the job file's   the devices of the workers in order; the list repeats
//   data_dir   the job file's   the folder of the data set
//
// The name is an argument of ssh. Servers and workers are numbered in the order of the lines. "#"
// begins a comment.
#ifndef THINWIRE_CLI_HOSTS_HOSTS_FILE_H_
#define THINWIRE_CLI_HOSTS_HOSTS_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace thinwire {

struct Host {
  std::string place;  // FILE:LINE
  std::string name;   // such as "10.0.0.1", "user@gpu-a"
  std::string address;
  uint32_t servers = 0;
  uint32_t workers = 0;
  uint32_t port = 0;                 // 0: free ports
  std::vector<std::string> devices;  // empty: the device of the job file
  std::string data_dir;              // empty: the folder of the job file

  bool operator==(const Host&) const = default;
};

// Returns the machines of the hosts file TEXT. FILE is its name in errors. Errors: InvalidArgument
// with one line per problem, each with FILE:LINE.
absl::StatusOr<std::vector<Host>> ParseHosts(std::string_view text, const std::string& file);

// Checks that HOSTS, the machines of FILE, have as many servers as the job, and at least as many
// workers. Further workers start when an operator adds them (`thinwire scale`). Errors:
// InvalidArgument with both numbers.
absl::Status CheckHostCounts(const std::vector<Host>& hosts, const std::string& file,
                             uint32_t servers, uint32_t workers);

}  // namespace thinwire

#endif  // THINWIRE_CLI_HOSTS_HOSTS_FILE_H_
