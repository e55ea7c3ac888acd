#include "server/rpc/grpc_access.h"

#include <glog/logging.h>
#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/tls_certificate_verifier.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/tls/identity.h"
#include "common/tls/peer_certificates.h"
#include "common/tls/worker_token.h"
#include "proto/grpc_status.h"

namespace thinwire {
namespace {

using grpc::experimental::TlsCustomVerificationCheckRequest;

absl::string_view View(grpc::string_ref text) { return {text.data(), text.size()}; }

// Returns the identity in a certificate with the DNS names NAMES; nullopt unless exactly one of them
// is an identity.
std::optional<Identity> IdentityIn(const std::vector<grpc::string_ref>& names) {
  std::optional<Identity> found;
  for (const grpc::string_ref& name : names) {
    auto identity = ParseIdentity(View(name));
    if (!identity.ok()) continue;
    if (found.has_value()) return std::nullopt;
    found = *std::move(identity);
  }
  return found;
}

std::optional<Identity> PeerIdentity(const grpc::ServerContextBase& call) {
  return IdentityIn(call.auth_context()->FindPropertyValues(GRPC_PEER_DNS_PROPERTY_NAME));
}

// Returns the certificate of the peer and, unless its TLS session was resumed, the intermediate
// authorities that it has shown.
std::string ChainOf(const grpc::ServerContextBase& call) {
  std::string chain;
  for (const char* property :
       {GRPC_X509_PEM_CERT_PROPERTY_NAME, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME}) {
    for (const grpc::string_ref& text : call.auth_context()->FindPropertyValues(property)) {
      absl::StrAppend(&chain, View(text));
    }
  }
  return chain;
}

absl::Status NoIdentity() {
  return absl::PermissionDeniedError(
      "certificate: no identity (expected one DNS name such as worker-3.train.thinwire)");
}

// Checks the peer of each new connection.
class PeerVerifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  PeerVerifier(std::string job, std::shared_ptr<PeerCertificates> peers)
      : job_(std::move(job)), peers_(std::move(peers)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/, grpc::Status* status) override {
    *status = ToGrpc(Check(*request));
    return true;
  }
  void Cancel(TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  absl::Status Check(const TlsCustomVerificationCheckRequest& request) const {
    const std::optional<Identity> identity = IdentityIn(request.dns_names());
    if (!identity.has_value()) return NoIdentity();
    RETURN_IF_ERROR(CheckJob(*identity, job_));
    return peers_->Check(
        absl::StrCat(View(request.peer_cert()), View(request.peer_cert_full_chain())), absl::Now());
  }

  const std::string job_;
  const std::shared_ptr<PeerCertificates> peers_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> CallAccess::ForListening() const {
  if (!credentials_.identity().has_value()) return credentials_.ForServer();
  return credentials_.ForServer(
      grpc::experimental::ExternalCertificateVerifier::Create<PeerVerifier>(
          credentials_.identity()->job, credentials_.peers()));
}

absl::Status CallAccess::Check(const grpc::ServerContextBase& call,
                               absl::string_view method) const {
  if (!credentials_.identity().has_value()) return absl::OkStatus();
  const std::optional<Identity> identity = PeerIdentity(call);
  absl::Status status = identity.has_value()
                            ? CheckAccess(method, *identity, credentials_.identity()->job)
                            : NoIdentity();
  if (status.ok()) status = credentials_.peers()->Check(ChainOf(call), absl::Now());
  if (!status.ok()) {
    // At most one line per second, because a peer can repeat its calls at any rate.
    LOG_EVERY_T(WARNING, 1) << "refused a call: " << status.message();
  }
  return status;
}

std::function<absl::Status()> CallAccess::CertificateCheck(
    const grpc::ServerContextBase& call) const {
  if (!credentials_.identity().has_value()) return [] { return absl::OkStatus(); };
  return [peers = credentials_.peers(), chain = ChainOf(call)] {
    return peers->Check(chain, absl::Now());
  };
}

WorkerProof ProofOf(const grpc::ServerContextBase& call) {
  // With mutual TLS, CallAccess has refused peers without an identity.
  const std::optional<Identity> identity = PeerIdentity(call);
  WorkerProof proof;
  if (!identity.has_value()) return proof;
  proof.needs_token = !identity->number.has_value();
  if (identity->number.has_value()) proof.certified = WorkerId{*identity->number};
  const auto token = call.client_metadata().find(kTokenMetadata);
  if (token != call.client_metadata().end()) proof.token = std::string(View(token->second));
  return proof;
}

}  // namespace thinwire
