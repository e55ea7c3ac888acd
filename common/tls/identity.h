// Identity is the meaning of a certificate: a role in a job, with a number for servers and, if it
// is given, for workers. The certificate contains it as a DNS name that depends on no address:
//
//   server-0.train.thinwire     worker-3.train.thinwire     worker.train.thinwire
//   operator.train.thinwire     viewer.train.thinwire
#ifndef THINWIRE_COMMON_TLS_IDENTITY_H_
#define THINWIRE_COMMON_TLS_IDENTITY_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thinwire {

enum class Role { kServer, kWorker, kOperator, kViewer };

// Returns "server", "worker", "operator" or "viewer".
absl::string_view RoleName(Role role);
// Returns the role of this name. Errors: InvalidArgument for any other name.
absl::StatusOr<Role> ParseRole(absl::string_view name);

struct Identity {
  Role role = Role::kViewer;
  std::string job;
  std::optional<uint32_t> number;  // of a server or a worker

  // Errors: InvalidArgument if `job` is not the name of a job, if a server has no number, or if an
  // operator or a viewer has one.
  absl::Status Validate() const;
  // Returns the DNS name. REQUIRES: Validate() is OK.
  std::string DnsName() const;
  // Returns whether this certificate is good for the process WANTED: it has the same role and job,
  // and the same number. A worker's certificate without number is good for every worker, and each
  // is good for a worker WANTED without number.
  bool Fits(const Identity& wanted) const;

  friend bool operator==(const Identity&, const Identity&) = default;
};

// Returns the identity of a DNS name. Errors: InvalidArgument if NAME is not the DnsName() of an
// identity.
absl::StatusOr<Identity> ParseIdentity(absl::string_view name);

std::ostream& operator<<(std::ostream& out, const Identity& identity);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TLS_IDENTITY_H_
