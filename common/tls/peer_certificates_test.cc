#include "common/tls/peer_certificates.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/tls/authority.h"
#include "common/tls/certificate.h"
#include "common/tls/identity.h"

namespace thinwire {
namespace {

constexpr absl::Duration kRefresh = absl::Seconds(2);
const Identity kWorker{Role::kWorker, "train", 3};

class PeerCertificatesTest : public testing::Test {
 protected:
  // Makes ca.pem of the folder contain AUTHORITIES.
  void Trust(const std::string& authorities) {
    ASSERT_EQ(WritePemFiles(dir_, {{kAuthorityFile, authorities}}, /*replace=*/true),
              absl::OkStatus());
  }
  static std::string Issue(const KeyPair& authority, const Validity& validity) {
    return IssueCertificate(authority, kWorker, validity)->certificate;
  }
  void ExpectRefused(const std::string& chain, absl::Time now, const std::string& reason) {
    const absl::Status status = peers_.Check(chain, now);
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), reason)) << status;
  }

  const absl::Time now_ = absl::FromUnixSeconds(1800000000);
  const Validity validity_ = {now_ - absl::Hours(1), now_ + absl::Hours(1)};
  const KeyPair authority_ = *MakeAuthority(validity_);
  const std::string dir_ = absl::StrCat(
      testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name());
  PeerCertificates peers_{dir_, kRefresh};
};

TEST_F(PeerCertificatesTest, ACertificateIsRefusedOnceItHasExpired) {
  Trust(authority_.certificate);
  const std::string chain = Issue(authority_, {validity_.begin, now_ + absl::Minutes(1)});
  EXPECT_EQ(peers_.Check(chain, now_), absl::OkStatus());
  EXPECT_EQ(peers_.Check(chain, now_ + absl::Seconds(59)), absl::OkStatus());
  ExpectRefused(chain, now_ + absl::Seconds(61), "certificate has expired");
  const std::string later = Issue(authority_, {now_ + absl::Minutes(1), validity_.end});
  ExpectRefused(later, now_, "certificate is not yet valid");
}

TEST_F(PeerCertificatesTest, ACertificateEndsWithItsAuthority) {
  Trust(authority_.certificate);
  const std::string chain = Issue(authority_, {validity_.begin, now_ + absl::Hours(9)});
  EXPECT_EQ(peers_.Check(chain, now_), absl::OkStatus());
  ExpectRefused(chain, validity_.end + absl::Seconds(1), "certificate has expired");
}

TEST_F(PeerCertificatesTest, ARemovedAuthorityIsNoticedAfterTheRefreshTime) {
  const KeyPair other = *MakeAuthority(validity_);
  Trust(authority_.certificate + other.certificate);
  const std::string chain = Issue(authority_, validity_);
  const std::string other_chain = Issue(other, validity_);
  EXPECT_EQ(peers_.Check(chain, now_), absl::OkStatus());
  EXPECT_EQ(peers_.Check(other_chain, now_), absl::OkStatus());
  Trust(other.certificate);
  EXPECT_EQ(peers_.Check(chain, now_ + kRefresh / 2), absl::OkStatus());
  ExpectRefused(chain, now_ + kRefresh, "unable to get local issuer certificate");
  EXPECT_EQ(peers_.Check(other_chain, now_ + kRefresh), absl::OkStatus());
}

TEST_F(PeerCertificatesTest, AMalformedFileLeavesTheFormerAuthorities) {
  Trust(authority_.certificate);
  const std::string chain = Issue(authority_, validity_);
  EXPECT_EQ(peers_.Check(chain, now_), absl::OkStatus());
  Trust(authority_.certificate.substr(0, 100));
  EXPECT_EQ(peers_.Check(chain, now_ + kRefresh), absl::OkStatus());
}

TEST_F(PeerCertificatesTest, OnlyAClientsCertificateIsAccepted) {
  Trust(authority_.certificate);
  for (const Identity& identity : {Identity{Role::kServer, "train", 0}, kWorker}) {
    const std::string chain = IssueCertificate(authority_, identity, validity_)->certificate;
    EXPECT_EQ(peers_.Check(chain, now_), absl::OkStatus());
  }
  EXPECT_TRUE(absl::IsInvalidArgument(peers_.Check("", now_)));
}

}  // namespace
}  // namespace thinwire
