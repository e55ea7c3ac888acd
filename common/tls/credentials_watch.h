// CredentialsWatch says what becomes of a credentials folder (certificate.h) while a process uses
// it. gRPC reads changed files by itself, and does not say so.
//
//   the files                                 the log
//   are replaced by valid ones                certs/w/cert.pem: read again, valid until ...
//   do not fit together, are missing, or      certs/w/key.pem: does not match the certificate ...
//   the certificate expires
//
// The files are replaced one after the other, so a finding counts when it is made twice.
#ifndef THINWIRE_COMMON_TLS_CREDENTIALS_WATCH_H_
#define THINWIRE_COMMON_TLS_CREDENTIALS_WATCH_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/time/clock.h"
#include "common/time/executor.h"

namespace thinwire {

// Not thread-safe.
class CredentialsWatch {
 public:
  struct Finding {
    bool error;  // new connections cannot be opened
    std::string text;

    bool operator==(const Finding&) const = default;
  };

  // The present state of the folder DIR is no finding.
  CredentialsWatch(std::string dir, absl::Time now);

  // Returns what is new since the last finding, if the last call has seen it too.
  std::optional<Finding> Look(absl::Time now);

 private:
  struct State {
    std::string key;  // differs between states
    Finding finding;  // if the state is new
  };
  State Read(absl::Time now) const;

  const std::string dir_;
  std::string known_;   // the key of the last finding
  std::string latest_;  // the key of the last call
};

// Looks at a folder every two seconds and logs the findings. Does nothing for the folder "". The
// getters are thread-safe.
class CredentialsLog {
 public:
  // UNIX_CLOCK counts from the Unix epoch; it and THREADS must outlive this object.
  CredentialsLog(const std::string& dir, ExecutorFactory& threads, Clock& unix_clock);

  const std::string& dir() const { return dir_; }
  // Returns when the files were read that are in use: at the start, or when valid files had last
  // replaced them. The time of UNIX_CLOCK.
  absl::Time read_time() const { return absl::FromUnixNanos(read_nanos_); }

 private:
  void Look();

  const std::string dir_;
  Clock& unix_clock_;
  std::atomic<int64_t> read_nanos_;
  std::optional<CredentialsWatch> watch_;
  std::unique_ptr<Executor> thread_;  // last: its tasks use the other members
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TLS_CREDENTIALS_WATCH_H_
