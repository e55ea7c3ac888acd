#include "proto/grpc_credentials.h"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/support/channel_arguments.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/tls/certificate.h"

namespace thinwire {
namespace {

constexpr absl::Duration kExpiresSoon = absl::Hours(7 * 24);

// Makes a side of a connection prove its identity and check that of its peer.
void UseFiles(const std::shared_ptr<grpc::experimental::FileWatcherCertificateProvider>& files,
              grpc::experimental::TlsCredentialsOptions& options) {
  options.set_certificate_provider(files);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
}

}  // namespace

Credentials::Credentials() : channel_(grpc::InsecureChannelCredentials()) {}

absl::StatusOr<Credentials> Credentials::Load(const std::string& dir,
                                              const std::optional<Identity>& expected) {
  Credentials credentials;
  if (dir.empty()) return credentials;
  const absl::Time now = absl::Now();
  ASSIGN_OR_RETURN(const Certificate certificate, CheckCredentials(dir, now));
  if (expected.has_value() && !certificate.identity->Fits(*expected)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--credentials: the certificate of another process (expected ", expected->DnsName(),
        ", got ", certificate.identity->DnsName(), " in ", dir, ")"));
  }
  credentials.identity_ = certificate.identity;
  if (std::string exposure = KeyExposure(dir); !exposure.empty()) {
    credentials.warnings_.push_back(std::move(exposure));
  }
  if (certificate.not_after < now + kExpiresSoon) {
    credentials.warnings_.push_back(absl::StrCat(
        dir, "/", kCertificateFile, ": expires soon (valid until ",
        absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", certificate.not_after, absl::UTCTimeZone()),
        "); replace the files of the folder, without a restart"));
  }
  credentials.files_ = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      absl::StrCat(dir, "/", kKeyFile), absl::StrCat(dir, "/", kCertificateFile),
      absl::StrCat(dir, "/", kAuthorityFile),
      static_cast<unsigned>(absl::ToInt64Seconds(kCredentialsRefresh)));
  credentials.peers_ = std::make_shared<PeerCertificates>(dir, kCredentialsRefresh);
  grpc::experimental::TlsChannelCredentialsOptions options;
  UseFiles(credentials.files_, options);
  credentials.channel_ = grpc::experimental::TlsCredentials(options);
  return credentials;
}

std::shared_ptr<grpc::Channel> Credentials::Connect(const std::string& address, ServerId server,
                                                    grpc::ChannelArguments arguments) const {
  if (identity_.has_value()) {
    arguments.SetSslTargetNameOverride(
        Identity{Role::kServer, identity_->job, server.value}.DnsName());
  }
  return grpc::CreateCustomChannel(address, channel_, arguments);
}

std::shared_ptr<grpc::ServerCredentials> Credentials::ForServer(
    std::shared_ptr<grpc::experimental::CertificateVerifier> verifier) const {
  if (files_ == nullptr) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(files_);
  UseFiles(files_, options);
  if (verifier != nullptr) options.set_certificate_verifier(std::move(verifier));
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace thinwire
