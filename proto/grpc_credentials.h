// Credentials secures the calls of a process: with mutual TLS and the files of a credentials folder
// (common/tls/certificate.h), or not at all. Replaced files are read within kCredentialsRefresh;
// open connections stay.
//
// A certificate names no address. A client therefore requires the name server-N.JOB.thinwire from
// the server that it expects at an address.
#ifndef THINWIRE_PROTO_GRPC_CREDENTIALS_H_
#define THINWIRE_PROTO_GRPC_CREDENTIALS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/tls/identity.h"
#include "common/tls/peer_certificates.h"

namespace grpc {
class Channel;
class ChannelArguments;
class ChannelCredentials;
class ServerCredentials;
namespace experimental {
class CertificateVerifier;
class FileWatcherCertificateProvider;
}  // namespace experimental
}  // namespace grpc

namespace thinwire {

inline constexpr absl::Duration kCredentialsRefresh = absl::Seconds(2);

// Immutable.
class Credentials {
 public:
  // Uses plaintext: no encryption, and every peer is trusted.
  Credentials();

  // Uses mutual TLS with the folder DIR; plaintext if DIR is "". If EXPECTED is set, the
  // certificate must fit it (Identity::Fits). Errors: those of CheckCredentials; InvalidArgument
  // for a certificate of another process.
  static absl::StatusOr<Credentials> Load(const std::string& dir,
                                          const std::optional<Identity>& expected);

  // Returns the identity of this process; nullopt: plaintext.
  const std::optional<Identity>& identity() const { return identity_; }
  // Returns sentences for the log, about a key that other users can read and a certificate that
  // expires soon.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Returns a channel to the server SERVER at ADDRESS (host:port).
  std::shared_ptr<grpc::Channel> Connect(const std::string& address, ServerId server,
                                         grpc::ChannelArguments arguments) const;

  // Returns the credentials with which a server listens. With mutual TLS, it accepts only clients
  // with a certificate of a trusted authority that VERIFIER, unless it is null, accepts too.
  std::shared_ptr<grpc::ServerCredentials> ForServer(
      std::shared_ptr<grpc::experimental::CertificateVerifier> verifier = nullptr) const;
  // Returns the check of the clients' certificates during their connections; null: plaintext.
  const std::shared_ptr<PeerCertificates>& peers() const { return peers_; }

 private:
  std::shared_ptr<grpc::ChannelCredentials> channel_;
  std::shared_ptr<grpc::experimental::FileWatcherCertificateProvider> files_;  // null: plaintext
  std::shared_ptr<PeerCertificates> peers_;
  std::optional<Identity> identity_;
  std::vector<std::string> warnings_;
};

}  // namespace thinwire

#endif  // THINWIRE_PROTO_GRPC_CREDENTIALS_H_
