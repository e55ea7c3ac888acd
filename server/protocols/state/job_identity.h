// JobIdentity is the identity of one server of a job. Requests state the job and the run that they
// belong to.
#ifndef THINWIRE_SERVER_PROTOCOLS_STATE_JOB_IDENTITY_H_
#define THINWIRE_SERVER_PROTOCOLS_STATE_JOB_IDENTITY_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/ids.h"

namespace thinwire {

struct JobIdentity {
  std::string job;
  ServerId server;
  RunId run;  // 0: the lead has not admitted this server yet
  Generation generation;
  Epoch epoch;

  // Returns whether this server is the lead.
  bool leads() const { return server == ServerId{0}; }

  // Return InvalidArgument if this server is the lead, which performs no request of a lead; if it is
  // not the lead, which performs the requests of operators.
  absl::Status CheckFollows() const;
  absl::Status CheckLeads() const;
  // Return FailedPrecondition if a request states another job, or SENDER states another run.
  absl::Status CheckJob(const std::string& got) const;
  absl::Status CheckRun(std::string_view sender, RunId got) const;
};

// Returns the error for a request that belongs to run GOT, at a server that belongs to run
// EXPECTED. SERVER is the server that lost its state. SENDER is the process that belongs to run
// GOT.
absl::Status AnotherRun(ServerId server, std::string_view sender, RunId expected, RunId got);

// Returns the error for a server whose epoch is no longer the one with which it was admitted.
absl::Status LostState(ServerId server, Epoch expected, Epoch got);

// Returns RUN as text for messages, "none" for 0.
std::string NameOf(RunId run);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_STATE_JOB_IDENTITY_H_
