// ServerProcess runs a server in a child process, as in a real job. The server shares neither
// allocator nor threads with the benchmark.
//
// A program must create all its ServerProcess objects before it first uses gRPC, because gRPC does
// not support fork() afterwards.
#ifndef THINWIRE_BENCH_SERVER_PROCESS_H_
#define THINWIRE_BENCH_SERVER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"

namespace thinwire {

// Not thread-safe. The child process is killed when the object is destroyed or when the parent
// process ends.
class ServerProcess {
 public:
  // Starts the child and blocks until it announces its address. The child calls SERVE with a file
  // descriptor for Announce(); SERVE must not return.
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

// Sends the server's ADDRESS to the parent through the file descriptor PIPE, then waits to be
// killed.
[[noreturn]] void Announce(int pipe, const std::string& address);

// Serves a sync job for WORKERS workers with plain gradient descent, with the credentials folder
// CREDENTIALS or in plaintext. Call ServeJob() inside the function SERVE of a ServerProcess, with
// the file descriptor that SERVE received.
[[noreturn]] void ServeJob(int pipe, uint32_t workers, const std::string& credentials = "");

// Returns the CPU time that PROCESS has used on all cores, in seconds.
double CoreSeconds(pid_t process);

}  // namespace thinwire

#endif  // THINWIRE_BENCH_SERVER_PROCESS_H_
