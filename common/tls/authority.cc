#include "common/tls/authority.h"

#include <openssl/pem.h>
#include <openssl/rand.h>

#include <cstddef>
#include <deque>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/files/atomic_file.h"
#include "common/tls/certificate.h"
#include "common/tls/openssl_pointers.h"

namespace thinwire {
namespace {

constexpr int kSerialBytes = 16;

absl::Status Failure(absl::string_view what) {
  return absl::InternalError(absl::StrCat("OpenSSL: cannot ", what, ": ", OpensslError()));
}

// Adds an extension in the syntax of OpenSSL's configuration files.
absl::Status AddExtension(X509* certificate, X509V3_CTX* context, int id, const std::string& text) {
  const OwnedExtension extension(X509V3_EXT_conf_nid(nullptr, context, id, text.c_str()));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return Failure("add an extension");
  }
  return absl::OkStatus();
}

// The parts of a new certificate that differ between an authority and other certificates.
struct Request {
  std::string name;  // the common name of the subject
  std::vector<std::pair<int, std::string>> extensions;
};

// Creates a certificate for KEY that ISSUER signs with ISSUER_KEY. ISSUER null: self-signed.
absl::StatusOr<OwnedX509> Sign(const Request& request, EVP_PKEY* key, X509* issuer,
                               EVP_PKEY* issuer_key, const Validity& validity) {
  OwnedX509 certificate(X509_new());
  X509* const c = certificate.get();
  if (issuer == nullptr) issuer = c;
  unsigned char serial[kSerialBytes];
  if (RAND_bytes(serial, sizeof(serial)) != 1) return Failure("draw a serial number");
  serial[0] = (serial[0] & 0x7f) | 0x40;  // positive, without leading zeros
  ASN1_STRING_set(X509_get_serialNumber(c), serial, sizeof(serial));
  X509_set_version(c, X509_VERSION_3);
  ASN1_TIME_set(X509_getm_notBefore(c), absl::ToTimeT(validity.begin));
  ASN1_TIME_set(X509_getm_notAfter(c), absl::ToTimeT(validity.end));
  X509_set_pubkey(c, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(c), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(request.name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(c, X509_get_subject_name(issuer));
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, c, nullptr, nullptr, 0);
  RETURN_IF_ERROR(AddExtension(c, &context, NID_subject_key_identifier, "hash"));
  RETURN_IF_ERROR(AddExtension(c, &context, NID_authority_key_identifier, "keyid:always"));
  for (const auto& [id, text] : request.extensions) {
    RETURN_IF_ERROR(AddExtension(c, &context, id, text));
  }
  if (X509_sign(c, issuer_key, EVP_sha256()) == 0) return Failure("sign a certificate");
  return certificate;
}

absl::StatusOr<OwnedKey> MakeKey() {
  OwnedKey key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failure("make a key");
  return key;
}

std::string TextOf(const OwnedBio& bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

absl::StatusOr<KeyPair> ToPem(X509* certificate, EVP_PKEY* key) {
  const OwnedBio certificate_text(BIO_new(BIO_s_mem()));
  const OwnedBio key_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_text.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Failure("write PEM");
  }
  return KeyPair{TextOf(certificate_text), TextOf(key_text)};
}

}  // namespace

Validity Validity::Days(absl::Time now, int days) {
  return {now - absl::Hours(1), now + absl::Hours(24) * days};
}

absl::StatusOr<KeyPair> MakeAuthority(const Validity& validity) {
  ASSIGN_OR_RETURN(const OwnedKey key, MakeKey());
  unsigned char number[4];
  if (RAND_bytes(number, sizeof(number)) != 1) return Failure("draw a name");
  // Each authority has another name, so that a program can trust an old and a new one.
  const std::string name = absl::StrCat(
      "thinwire authority ",
      absl::BytesToHexString(absl::string_view(reinterpret_cast<char*>(number), sizeof(number))));
  ASSIGN_OR_RETURN(const OwnedX509 certificate,
                   Sign({.name = name,
                         .extensions = {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                        {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                        {NID_name_constraints, "critical,permitted;DNS:thinwire"}}},
                        key.get(), nullptr, key.get(), validity));
  return ToPem(certificate.get(), key.get());
}

absl::StatusOr<KeyPair> IssueCertificate(const KeyPair& authority, const Identity& identity,
                                         const Validity& validity) {
  RETURN_IF_ERROR(identity.Validate());
  const OwnedBio certificate_text = ReadBio(authority.certificate);
  const OwnedBio key_text = ReadBio(authority.key);
  const OwnedX509 issuer(PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr));
  const auto no_password = [](char*, int, int, void*) { return -1; };
  const OwnedKey issuer_key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, no_password, nullptr));
  if (issuer == nullptr || issuer_key == nullptr || X509_check_ca(issuer.get()) == 0 ||
      X509_check_private_key(issuer.get(), issuer_key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        absl::StrCat("authority: not valid (expected the certificate of an authority in ",
                     kAuthorityFile, " and its private key in ", kAuthorityKeyFile, ")"));
  }
  ASSIGN_OR_RETURN(const OwnedKey key, MakeKey());
  const bool server = identity.role == Role::kServer;
  const std::string name = identity.DnsName();
  ASSIGN_OR_RETURN(
      const OwnedX509 certificate,
      Sign({.name = std::string(RoleName(identity.role)),
            .extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                           {NID_key_usage, "critical,digitalSignature"},
                           {NID_ext_key_usage, server ? "serverAuth,clientAuth" : "clientAuth"},
                           {NID_subject_alt_name, "DNS:" + name}}},
           key.get(), issuer.get(), issuer_key.get(), validity));
  return ToPem(certificate.get(), key.get());
}

std::vector<PemFile> CredentialFiles(const std::string& authorities, const KeyPair& pair) {
  return {{kAuthorityFile, authorities},
          {kCertificateFile, pair.certificate},
          {kKeyFile, pair.key, /*secret=*/true}};
}

absl::Status WritePemFiles(const std::string& dir, const std::vector<PemFile>& files,
                           bool replace) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return absl::ErrnoToStatus(error.value(), dir);
  const auto path_of = [&dir](const PemFile& file) { return absl::StrCat(dir, "/", file.name); };
  for (const PemFile& file : files) {
    if (!replace && std::filesystem::exists(path_of(file), error)) {
      return absl::AlreadyExistsError(
          absl::StrCat(path_of(file), ": exists already (expected --force to replace it)"));
    }
  }
  std::deque<AtomicFile> written;
  for (const PemFile& file : files) {
    AtomicFile& next = written.emplace_back(path_of(file), file.secret ? 0600 : 0644);
    next.Write(std::as_bytes(std::span(file.text)));
    RETURN_IF_ERROR(next.Flush());
  }
  // Certificate and key are renamed one directly after the other, so that hardly any reader finds a
  // pair that does not match. Such a reader reads both again later.
  for (AtomicFile& file : written) RETURN_IF_ERROR(file.Rename());
  return absl::OkStatus();
}

}  // namespace thinwire
