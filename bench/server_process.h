// ServerProcess: a server in a process of its own, as in a real job, so that it shares neither
// allocator nor threads with what is measured against it.
//
// Every ServerProcess of a program is made before the program first uses gRPC: a process that has
// begun to must not fork.
#ifndef THINWIRE_BENCH_SERVER_PROCESS_H_
#define THINWIRE_BENCH_SERVER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"

namespace thinwire {

// Not thread-safe. The process ends with the object, and with whoever made it.
class ServerProcess {
 public:
  // SERVE is called in the new process with where to Announce; it never returns.
  explicit ServerProcess(absl::FunctionRef<void(int)> serve);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const std::string& address() const { return address_; }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
  std::string address_;
};

// Tells the maker where the server listens, and waits for the end.
[[noreturn]] void Announce(int to, const std::string& address);

// Serves a sync job of WORKERS that steps by plain gradient descent.
[[noreturn]] void ServeJob(int to, uint32_t workers);

// What the process has used of all cores.
double CoreSeconds(pid_t process);

}  // namespace thinwire

#endif  // THINWIRE_BENCH_SERVER_PROCESS_H_
