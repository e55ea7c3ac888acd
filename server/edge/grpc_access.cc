#include "server/edge/grpc_access.h"

#include <glog/logging.h>
#include <grpc/grpc_security_constants.h>

#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/tls/identity.h"
#include "server/edge/access.h"

namespace thinwire {
namespace {

absl::string_view View(grpc::string_ref text) { return {text.data(), text.size()}; }

// Returns the identity in the peer's certificate; nullopt unless exactly one of its DNS names is an
// identity.
std::optional<Identity> PeerIdentity(const grpc::AuthContext& peer) {
  std::optional<Identity> found;
  for (const grpc::string_ref& name : peer.FindPropertyValues(GRPC_PEER_DNS_PROPERTY_NAME)) {
    auto identity = ParseIdentity(View(name));
    if (!identity.ok()) continue;
    if (found.has_value()) return std::nullopt;
    found = *std::move(identity);
  }
  return found;
}

class AccessCheck final : public grpc::AuthMetadataProcessor {
 public:
  explicit AccessCheck(std::string job) : job_(std::move(job)) {}

  // Process needs no thread of its own, because it takes microseconds.
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* peer,
                       OutputMetadata* /*consumed*/, OutputMetadata* /*response*/) override {
    const absl::Status status = Check(metadata, *peer);
    if (status.ok()) return grpc::Status::OK;
    // At most one line per second, because a peer can repeat its calls at any rate.
    LOG_EVERY_T(WARNING, 1) << "refused a call: " << status.message();
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, std::string(status.message()));
  }

 private:
  absl::Status Check(const InputMetadata& metadata, const grpc::AuthContext& peer) const {
    const std::optional<Identity> identity = PeerIdentity(peer);
    if (!identity.has_value()) {
      return absl::PermissionDeniedError(
          "certificate: no identity (expected one DNS name such as worker-3.train.thinwire)");
    }
    const auto [begin, end] = metadata.equal_range(":path");
    if (begin == end || std::next(begin) != end) {
      return absl::PermissionDeniedError("call: no method");
    }
    return CheckAccess(View(begin->second), *identity, job_);
  }

  const std::string job_;
};

}  // namespace

std::shared_ptr<grpc::AuthMetadataProcessor> MakeAccessCheck(std::string job) {
  return std::make_shared<AccessCheck>(std::move(job));
}

std::optional<WorkerId> CertifiedWorker(const grpc::AuthContext& peer) {
  const std::optional<Identity> identity = PeerIdentity(peer);
  if (!identity.has_value() || identity->role != Role::kWorker || !identity->number.has_value()) {
    return std::nullopt;
  }
  return WorkerId{*identity->number};
}

}  // namespace thinwire
