#include "common/tls/identity.h"

#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/text/quoted.h"

namespace thinwire {
namespace {

constexpr char kDomain[] = "thinwire";
constexpr Role kRoles[] = {Role::kServer, Role::kWorker, Role::kOperator, Role::kViewer};

bool IsLetterOrDigit(char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); }

bool IsJobName(absl::string_view name) {
  if (name.empty() || name.size() > 63) return false;
  for (const char c : name) {
    if (!IsLetterOrDigit(c) && c != '-') return false;
  }
  return name.front() != '-' && name.back() != '-';
}

}  // namespace

absl::string_view RoleName(Role role) {
  switch (role) {
    case Role::kServer:
      return "server";
    case Role::kWorker:
      return "worker";
    case Role::kOperator:
      return "operator";
    case Role::kViewer:
      return "viewer";
  }
  return "";
}

absl::StatusOr<Role> ParseRole(absl::string_view name) {
  for (const Role role : kRoles) {
    if (RoleName(role) == name) return role;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "role: unknown (expected server, worker, operator or viewer, got ", Quoted(name), ")"));
}

absl::Status Identity::Validate() const {
  if (!IsJobName(job)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "job: not a name (expected 1 to 63 of a-z, 0-9 and inner -, got ", Quoted(job), ")"));
  }
  if (role == Role::kServer && !number.has_value()) {
    return absl::InvalidArgumentError("server: missing (expected the number of the server)");
  }
  if (role != Role::kServer && role != Role::kWorker && number.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("number: only valid for a server or a worker (got ", *number, " for the role ",
                     RoleName(role), ")"));
  }
  return absl::OkStatus();
}

std::string Identity::DnsName() const {
  std::string name(RoleName(role));
  if (number.has_value()) absl::StrAppend(&name, "-", *number);
  return absl::StrCat(name, ".", job, ".", kDomain);
}

bool Identity::Fits(const Identity& wanted) const {
  if (role != wanted.role || job != wanted.job) return false;
  if (number == wanted.number) return true;
  return role == Role::kWorker && (!number.has_value() || !wanted.number.has_value());
}

absl::StatusOr<Identity> ParseIdentity(absl::string_view name) {
  const absl::Status error = absl::InvalidArgumentError(
      absl::StrCat("certificate: not an identity (expected a name such as worker-3.train.thinwire, "
                   "got ",
                   Quoted(name), ")"));
  const std::vector<std::string> labels = absl::StrSplit(name, '.');
  if (labels.size() != 3) return error;
  const std::vector<std::string> first = absl::StrSplit(labels[0], absl::MaxSplits('-', 1));
  const absl::StatusOr<Role> role = ParseRole(first[0]);
  if (!role.ok()) return error;
  Identity identity{.role = *role, .job = labels[1], .number = std::nullopt};
  if (first.size() == 2) {
    uint32_t number = 0;
    if (!absl::SimpleAtoi(first[1], &number)) return error;
    identity.number = number;
  }
  // The comparison refuses other spellings of a number, such as 03.
  if (!identity.Validate().ok() || identity.DnsName() != name) return error;
  return identity;
}

std::ostream& operator<<(std::ostream& out, const Identity& identity) {
  return out << identity.DnsName();
}

}  // namespace thinwire
