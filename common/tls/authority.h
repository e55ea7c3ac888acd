// Creates certificates with OpenSSL: the self-signed certificate of an authority, and the
// certificates that it issues. All keys are EC keys on the curve P-256.
#ifndef THINWIRE_COMMON_TLS_AUTHORITY_H_
#define THINWIRE_COMMON_TLS_AUTHORITY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/tls/identity.h"

namespace thinwire {

// The private key of an authority, beside its certificate kAuthorityFile.
inline constexpr char kAuthorityKeyFile[] = "ca-key.pem";

// A certificate and its private key, in PEM.
struct KeyPair {
  std::string certificate;
  std::string key;
};

// The times between which a certificate is valid.
struct Validity {
  // Begins an hour before NOW, because the clocks of other machines may be behind, and ends DAYS
  // after NOW.
  static Validity Days(absl::Time now, int days);

  absl::Time begin;
  absl::Time end;
};

// Creates an authority, which may only sign certificates for names below "thinwire".
absl::StatusOr<KeyPair> MakeAuthority(const Validity& validity);

// Creates a key and a certificate of AUTHORITY for IDENTITY. Servers may use the certificate as
// server and as client, the other roles only as client. Errors: InvalidArgument if IDENTITY or
// AUTHORITY is not valid.
absl::StatusOr<KeyPair> IssueCertificate(const KeyPair& authority, const Identity& identity,
                                         const Validity& validity);

// A file that WritePemFiles writes. Only its owner can read a secret file.
struct PemFile {
  std::string name;
  std::string text;
  bool secret = false;
};

// Returns the files of a credentials folder (common/tls/certificate.h). AUTHORITIES contains the
// trusted certificates.
std::vector<PemFile> CredentialFiles(const std::string& authorities, const KeyPair& pair);

// Writes FILES to the folder DIR, which is created if it does not exist. Replaces files only if
// REPLACE is true; a reader sees the old or the new content of each file. Errors: AlreadyExists for
// the first existing file if REPLACE is false; errors of the file system, with the path.
absl::Status WritePemFiles(const std::string& dir, const std::vector<PemFile>& files, bool replace);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TLS_AUTHORITY_H_
