#include "common/tls/certificate.h"

#include <openssl/pem.h>
#include <sys/stat.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/files/read_file.h"
#include "common/tls/openssl_pointers.h"

namespace thinwire {
namespace {

absl::Status NotPem(const std::string& place, absl::string_view what, size_t size) {
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrCat(place, ": not a ", what, " (expected PEM, got ", size, " bytes)"));
}

// Returns the certificates of TEXT, at least one.
absl::StatusOr<std::vector<OwnedX509>> ParsePem(const std::string& text, const std::string& place) {
  const OwnedBio bio = ReadBio(text);
  std::vector<OwnedX509> certificates;
  while (OwnedX509 next{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    certificates.push_back(std::move(next));
  }
  // PEM_read_bio_X509 fails with this reason at the end of the text, and with others if the text is
  // damaged.
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (certificates.empty() || !at_end) return NotPem(place, "certificate", text.size());
  ERR_clear_error();
  return certificates;
}

absl::Time ToTime(const ASN1_TIME* time) {
  tm parts = {};
  ASN1_TIME_to_tm(time, &parts);
  return absl::FromTM(parts, absl::UTCTimeZone());
}

std::string SubjectOf(const X509* certificate) {
  const OwnedBio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

std::optional<Identity> IdentityOf(const X509* certificate) {
  const OwnedNames names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::optional<Identity> found;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS) continue;
    const ASN1_STRING* text = name->d.dNSName;
    auto identity =
        ParseIdentity(absl::string_view(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                                        static_cast<size_t>(ASN1_STRING_length(text))));
    if (!identity.ok()) continue;
    if (found.has_value()) return std::nullopt;
    found = *std::move(identity);
  }
  return found;
}

std::string FingerprintOf(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  X509_digest(certificate, EVP_sha256(), digest, &size);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<char*>(digest), size));
}

Certificate Describe(X509* certificate) {
  return {.subject = SubjectOf(certificate),
          .identity = IdentityOf(certificate),
          .authority = X509_check_ca(certificate) != 0,
          .not_before = ToTime(X509_get0_notBefore(certificate)),
          .not_after = ToTime(X509_get0_notAfter(certificate)),
          .fingerprint = FingerprintOf(certificate)};
}

// Returns the reason why none of AUTHORITIES has issued the first certificate of CHAIN for PURPOSE
// (X509_PURPOSE_...), or why it or an authority is not valid; "" if it is valid. The other
// certificates of CHAIN may be intermediate authorities.
std::string ReasonAgainst(const std::vector<OwnedX509>& chain,
                          const std::vector<OwnedX509>& authorities, int purpose, absl::Time now) {
  const OwnedStack intermediates(sk_X509_new_null());
  for (const OwnedX509& certificate : chain) sk_X509_push(intermediates.get(), certificate.get());
  const OwnedStore store(X509_STORE_new());
  for (const OwnedX509& authority : authorities) X509_STORE_add_cert(store.get(), authority.get());
  const OwnedStoreContext context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), chain[0].get(), intermediates.get());
  X509_STORE_CTX_set_purpose(context.get(), purpose);
  X509_STORE_CTX_set_time(context.get(), 0, absl::ToTimeT(now));
  if (X509_verify_cert(context.get()) == 1) return "";
  const int error = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  return X509_verify_cert_error_string(error);
}

// Checks that one of AUTHORITIES has issued the first certificate of CHAIN for the use of ROLE.
absl::Status CheckIssuer(const std::vector<OwnedX509>& chain,
                         const std::vector<OwnedX509>& authorities, Role role, absl::Time now,
                         const std::string& dir) {
  const std::string reason =
      ReasonAgainst(chain, authorities,
                    role == Role::kServer ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT, now);
  if (reason.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(dir, "/", kCertificateFile,
                                                 ": not valid with the authorities in ", dir, "/",
                                                 kAuthorityFile, " (", reason, ")"));
}

absl::Status CheckValidity(const Certificate& certificate, absl::Time now,
                           const std::string& place) {
  const auto text = [](absl::Time time) {
    return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
  };
  if (now > certificate.not_after) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": expired (valid until ", text(certificate.not_after), ")"));
  }
  if (now < certificate.not_before) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": not valid yet (valid from ", text(certificate.not_before),
                     "; the clock of this machine says ", text(now), ")"));
  }
  return absl::OkStatus();
}

// Checks that the key file at PATH is the private key of CERTIFICATE.
absl::Status CheckKey(const X509* certificate, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  const OwnedBio bio = ReadBio(text);
  // Without this callback, OpenSSL would ask for the password of an encrypted key on the terminal.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  const OwnedKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  if (key == nullptr) return NotPem(path, "private key without password", text.size());
  if (X509_check_private_key(certificate, key.get()) == 1) return absl::OkStatus();
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": does not match the certificate in ", kCertificateFile));
}

}  // namespace

absl::StatusOr<std::vector<Certificate>> ParseCertificates(const std::string& text,
                                                           const std::string& place) {
  ASSIGN_OR_RETURN(const std::vector<OwnedX509> parsed, ParsePem(text, place));
  std::vector<Certificate> certificates;
  for (const OwnedX509& certificate : parsed) certificates.push_back(Describe(certificate.get()));
  return certificates;
}

absl::StatusOr<std::vector<Certificate>> ReadCertificates(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  return ParseCertificates(text, path);
}

absl::StatusOr<Certificate> CheckCredentials(const std::string& dir, absl::Time now) {
  const std::string authority_path = absl::StrCat(dir, "/", kAuthorityFile);
  const std::string path = absl::StrCat(dir, "/", kCertificateFile);
  ASSIGN_OR_RETURN(const std::string authority_text, ReadWholeFile(authority_path));
  ASSIGN_OR_RETURN(const auto authorities, ParsePem(authority_text, authority_path));
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  ASSIGN_OR_RETURN(const auto chain, ParsePem(text, path));
  X509* const own = chain[0].get();
  Certificate certificate = Describe(own);
  RETURN_IF_ERROR(CheckKey(own, absl::StrCat(dir, "/", kKeyFile)));
  RETURN_IF_ERROR(CheckValidity(certificate, now, path));
  if (!certificate.identity.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": no identity (expected one DNS name such as worker-3.train.thinwire, got ",
        certificate.subject, ")"));
  }
  RETURN_IF_ERROR(CheckIssuer(chain, authorities, certificate.identity->role, now, dir));
  return certificate;
}

absl::Status CheckClient(const std::string& chain, const std::string& authorities, absl::Time now) {
  ASSIGN_OR_RETURN(const std::vector<OwnedX509> certificates, ParsePem(chain, "certificate"));
  ASSIGN_OR_RETURN(const std::vector<OwnedX509> trusted, ParsePem(authorities, kAuthorityFile));
  const std::string reason = ReasonAgainst(certificates, trusted, X509_PURPOSE_SSL_CLIENT, now);
  if (reason.empty()) return absl::OkStatus();
  return absl::UnauthenticatedError(
      absl::StrCat("certificate: not valid with the authorities in ", kAuthorityFile, " (", reason,
                   "; expected a certificate of the job that is valid now)"));
}

std::string KeyExposure(const std::string& dir) {
  const std::string path = absl::StrCat(dir, "/", kKeyFile);
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0 || (info.st_mode & (S_IROTH | S_IWOTH)) == 0) return "";
  return absl::StrCat(path, ": other users can read the private key (expected mode 600, got ",
                      absl::StrFormat("%o", info.st_mode & 0777), ")");
}

}  // namespace thinwire
