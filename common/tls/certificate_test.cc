#include "common/tls/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/tls/authority.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const Validity kValid = Validity::Days(kNow, 90);
const Identity kWorker{Role::kWorker, "train", 3};

// A folder that the test fills with credentials.
class CertificateTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(dir_); }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void Write(const KeyPair& pair, const std::string& authorities) {
    ASSERT_EQ(WritePemFiles(dir_, CredentialFiles(authorities, pair), /*replace=*/true),
              absl::OkStatus());
  }
  KeyPair Issue(const KeyPair& authority, const Identity& identity, Validity validity = kValid) {
    const auto pair = IssueCertificate(authority, identity, validity);
    EXPECT_TRUE(pair.ok()) << pair.status();
    return pair.ok() ? *pair : KeyPair();
  }
  void Replace(const std::string& file, const std::string& text) {
    std::ofstream(absl::StrCat(dir_, "/", file)) << text;
  }
  std::string Problem() { return std::string(CheckCredentials(dir_, kNow).status().message()); }

  const std::string dir_ = absl::StrCat(testing::TempDir(), "/certificate_test");
  const KeyPair authority_ = *MakeAuthority(kValid);
};

TEST_F(CertificateTest, IssuedCredentialsAreValidAndNameTheirIdentity) {
  for (const Identity& identity :
       {kWorker, Identity{Role::kWorker, "train", {}}, Identity{Role::kServer, "train", 0},
        Identity{Role::kOperator, "train", {}}, Identity{Role::kViewer, "train", {}}}) {
    Write(Issue(authority_, identity), authority_.certificate);
    const auto certificate = CheckCredentials(dir_, kNow);
    ASSERT_TRUE(certificate.ok()) << certificate.status();
    EXPECT_EQ(certificate->identity, identity);
    EXPECT_FALSE(certificate->authority);
    EXPECT_EQ(certificate->not_after, kValid.end);
    EXPECT_EQ(certificate->fingerprint.size(), 64u);
    EXPECT_EQ(KeyExposure(dir_), "");
  }
}

TEST_F(CertificateTest, AnAuthorityIsRecognized) {
  const auto parsed = ParseCertificates(authority_.certificate, "ca.pem");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->size(), 1u);
  EXPECT_TRUE((*parsed)[0].authority);
  EXPECT_FALSE((*parsed)[0].identity.has_value());
}

TEST_F(CertificateTest, OneOfSeveralAuthoritiesIsEnough) {
  const KeyPair other = *MakeAuthority(kValid);
  Write(Issue(authority_, kWorker), absl::StrCat(other.certificate, authority_.certificate));
  EXPECT_EQ(Problem(), "");
}

TEST_F(CertificateTest, MissingFilesAreNamed) {
  for (const char* file : {kAuthorityFile, kCertificateFile, kKeyFile}) {
    Write(Issue(authority_, kWorker), authority_.certificate);
    ASSERT_EQ(unlink(absl::StrCat(dir_, "/", file).c_str()), 0);
    EXPECT_EQ(Problem(),
              absl::StrCat(dir_, "/", file, ": cannot be read: No such file or directory"));
  }
}

TEST_F(CertificateTest, MalformedFilesAreNamed) {
  for (const char* file : {kAuthorityFile, kCertificateFile, kKeyFile}) {
    Write(Issue(authority_, kWorker), authority_.certificate);
    Replace(file, "hello");
    EXPECT_THAT(Problem(), HasSubstr(absl::StrCat(dir_, "/", file, ": not a ")));
    EXPECT_THAT(Problem(), HasSubstr("(expected PEM, got 5 bytes)"));
  }
}

TEST_F(CertificateTest, ADamagedSecondCertificateIsAnError) {
  Write(Issue(authority_, kWorker), authority_.certificate);
  std::string damaged = authority_.certificate;
  damaged.replace(100, 10, "!!!!!!!!!!");
  Replace(kAuthorityFile, authority_.certificate + damaged);
  EXPECT_THAT(Problem(), HasSubstr("/ca.pem: not a certificate"));
}

TEST_F(CertificateTest, TheKeyOfAnotherCertificateIsRefused) {
  Write(Issue(authority_, kWorker), authority_.certificate);
  Replace(kKeyFile, Issue(authority_, kWorker).key);
  EXPECT_EQ(Problem(), absl::StrCat(dir_, "/key.pem: does not match the certificate in cert.pem"));
}

TEST_F(CertificateTest, CertificatesOutsideTheirTimeAreRefused) {
  Write(Issue(authority_, kWorker, {kNow - absl::Hours(2), kNow - absl::Hours(1)}),
        authority_.certificate);
  EXPECT_THAT(Problem(), HasSubstr("/cert.pem: expired (valid until 2027-01-15 07:00:00 UTC)"));
  Write(Issue(authority_, kWorker, {kNow + absl::Hours(1), kNow + absl::Hours(2)}),
        authority_.certificate);
  EXPECT_THAT(Problem(), HasSubstr("/cert.pem: not valid yet (valid from "));
}

TEST_F(CertificateTest, AnotherAuthorityIsRefused) {
  Write(Issue(*MakeAuthority(kValid), kWorker), authority_.certificate);
  EXPECT_THAT(Problem(), HasSubstr("/cert.pem: not valid with the authorities in "));
}

TEST_F(CertificateTest, AnAuthorityIsNoCertificateOfAProcess) {
  Write(authority_, authority_.certificate);
  EXPECT_THAT(Problem(), HasSubstr("/cert.pem: no identity (expected one DNS name"));
}

TEST_F(CertificateTest, ACertificateIsNoAuthority) {
  const KeyPair worker = Issue(authority_, kWorker);
  const auto issued = IssueCertificate(worker, kWorker, kValid);
  EXPECT_THAT(std::string(issued.status().message()), HasSubstr("authority: not valid"));
}

TEST_F(CertificateTest, InvalidIdentitiesGetNoCertificate) {
  EXPECT_FALSE(IssueCertificate(authority_, {Role::kServer, "train", {}}, kValid).ok());
  EXPECT_FALSE(IssueCertificate(authority_, {Role::kViewer, "a.b", {}}, kValid).ok());
  EXPECT_FALSE(IssueCertificate(authority_, {Role::kViewer, "a,DNS:b", {}}, kValid).ok());
}

TEST_F(CertificateTest, AKeyThatOthersCanReadIsReported) {
  Write(Issue(authority_, kWorker), authority_.certificate);
  ASSERT_EQ(chmod(absl::StrCat(dir_, "/key.pem").c_str(), 0644), 0);
  EXPECT_EQ(KeyExposure(dir_),
            absl::StrCat(dir_,
                         "/key.pem: other users can read the private key (expected mode 600, "
                         "got 644)"));
}

TEST_F(CertificateTest, FilesAreReplacedOnlyIfAsked) {
  const auto files = CredentialFiles(authority_.certificate, Issue(authority_, kWorker));
  ASSERT_EQ(WritePemFiles(dir_, files, /*replace=*/false), absl::OkStatus());
  const absl::Status second = WritePemFiles(dir_, files, /*replace=*/false);
  EXPECT_EQ(second.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(std::string(second.message()),
            absl::StrCat(dir_, "/ca.pem: exists already (expected --force to replace it)"));
  EXPECT_EQ(WritePemFiles(dir_, files, /*replace=*/true), absl::OkStatus());
  size_t file_count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir_)) ++file_count;
  EXPECT_EQ(file_count, files.size());
}

}  // namespace
}  // namespace thinwire
