#include "server/edge/grpc_access.h"

#include <glog/logging.h>
#include <grpc/grpc_security_constants.h>

#include <iterator>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/ids.h"
#include "common/tls/identity.h"
#include "common/tls/worker_token.h"

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

WorkerProof ProofOf(const grpc::ServerContextBase& call) {
  // With mutual TLS, AccessCheck has refused peers without an identity.
  const std::optional<Identity> identity = PeerIdentity(*call.auth_context());
  WorkerProof proof;
  if (!identity.has_value()) return proof;
  proof.needs_token = !identity->number.has_value();
  if (identity->number.has_value()) proof.certified = WorkerId{*identity->number};
  const auto token = call.client_metadata().find(kTokenMetadata);
  if (token != call.client_metadata().end()) proof.token = std::string(View(token->second));
  return proof;
}

}  // namespace thinwire
