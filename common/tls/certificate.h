// Reads certificates, and checks the credentials folder of a process before it is used:
//
//   ca.pem     the certificates of the trusted authorities
//   cert.pem   the certificate of the process
//   key.pem    its private key
#ifndef THINWIRE_COMMON_TLS_CERTIFICATE_H_
#define THINWIRE_COMMON_TLS_CERTIFICATE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/tls/identity.h"

namespace thinwire {

inline constexpr char kAuthorityFile[] = "ca.pem";
inline constexpr char kCertificateFile[] = "cert.pem";
inline constexpr char kKeyFile[] = "key.pem";

struct Certificate {
  std::string subject;               // such as "CN=worker"
  std::optional<Identity> identity;  // nullopt unless exactly one DNS name is an identity
  bool authority = false;            // whether it may sign other certificates
  absl::Time not_before;
  absl::Time not_after;
  std::string fingerprint;  // SHA-256 in hexadecimal digits
};

// Returns the certificates of the PEM text TEXT. PLACE is the name of the text for errors. Errors:
// InvalidArgument if it contains no certificate, or a malformed one.
absl::StatusOr<std::vector<Certificate>> ParseCertificates(const std::string& text,
                                                           const std::string& place);

// Returns the certificates of the PEM file PATH. Errors: NotFound if the file cannot be read; those
// of ParseCertificates.
absl::StatusOr<std::vector<Certificate>> ReadCertificates(const std::string& path);

// Checks that the process can use the credentials folder DIR at the time NOW, and returns its
// certificate, which has an identity. Errors: NotFound for a file that cannot be read;
// InvalidArgument for a malformed file, a key of another certificate, an expired certificate, one
// that no authority in ca.pem has issued, or one without identity.
absl::StatusOr<Certificate> CheckCredentials(const std::string& dir, absl::Time now);

// Checks that AUTHORITIES have issued the first certificate of CHAIN for a client, and that it and
// its authorities are valid at the time NOW. Both are PEM texts; the other certificates of CHAIN may
// be intermediate authorities. Errors: Unauthenticated; InvalidArgument for a malformed text.
absl::Status CheckClient(const std::string& chain, const std::string& authorities, absl::Time now);

// Returns a sentence if other users can read the private key in DIR, otherwise "".
std::string KeyExposure(const std::string& dir);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TLS_CERTIFICATE_H_
