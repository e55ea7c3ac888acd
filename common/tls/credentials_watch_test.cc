#include "common/tls/credentials_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/time/clock.h"
#include "common/time/virtual_time.h"
#include "common/tls/authority.h"
#include "common/tls/certificate.h"
#include "common/tls/identity.h"

namespace thinwire {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

class CredentialsWatchTest : public testing::Test {
 protected:
  CredentialsWatchTest() {
    std::filesystem::remove_all(dir_);
    Replace(kNow);
  }
  ~CredentialsWatchTest() override { std::filesystem::remove_all(dir_); }

  // Writes a new certificate of the authority, which is valid for a day from BEGIN.
  void Replace(absl::Time begin) {
    const auto pair =
        IssueCertificate(authority_, {Role::kWorker, "train", 3}, Validity::Days(begin, 1));
    ASSERT_TRUE(pair.ok()) << pair.status();
    ASSERT_EQ(WritePemFiles(dir_, CredentialFiles(authority_.certificate, *pair),
                            /*replace=*/true),
              absl::OkStatus());
  }
  // Looks twice, and returns the finding of the second time.
  std::optional<CredentialsWatch::Finding> LookTwice(CredentialsWatch& watch, absl::Time now) {
    EXPECT_EQ(watch.Look(now), std::nullopt);
    return watch.Look(now);
  }

  const std::string dir_ = absl::StrCat(testing::TempDir(), "/credentials_watch");
  const KeyPair authority_ = MakeAuthority(Validity::Days(kNow, 3650)).value();
};

TEST_F(CredentialsWatchTest, AnUnchangedFolderIsNoFinding) {
  CredentialsWatch watch(dir_, kNow);
  EXPECT_EQ(LookTwice(watch, kNow), std::nullopt);
}

TEST_F(CredentialsWatchTest, ANewCertificateIsNamedOnce) {
  CredentialsWatch watch(dir_, kNow);
  Replace(kNow);
  const auto finding = LookTwice(watch, kNow);
  ASSERT_TRUE(finding.has_value());
  EXPECT_FALSE(finding->error);
  EXPECT_EQ(finding->text, dir_ + "/cert.pem: read again, valid until 2027-01-16 08:00:00 UTC");
  EXPECT_EQ(LookTwice(watch, kNow), std::nullopt);
}

TEST_F(CredentialsWatchTest, ANewListOfAuthoritiesIsAChange) {
  CredentialsWatch watch(dir_, kNow);
  std::ofstream(dir_ + "/ca.pem", std::ios::app) << authority_.certificate;
  EXPECT_TRUE(LookTwice(watch, kNow).has_value());
}

TEST_F(CredentialsWatchTest, AKeyOfAnotherCertificateIsNamedUntilItIsReplaced) {
  CredentialsWatch watch(dir_, kNow);
  const auto other =
      IssueCertificate(authority_, {Role::kWorker, "train", 3}, Validity::Days(kNow, 1));
  std::ofstream(dir_ + "/key.pem") << other->key;
  const auto finding = LookTwice(watch, kNow);
  ASSERT_TRUE(finding.has_value());
  EXPECT_TRUE(finding->error);
  EXPECT_THAT(finding->text,
              StartsWith(dir_ + "/key.pem: does not match the certificate in cert.pem; new "));
  Replace(kNow);
  EXPECT_FALSE(LookTwice(watch, kNow)->error);
}

TEST_F(CredentialsWatchTest, AMissingFileAndTheEndOfACertificateAreErrors) {
  CredentialsWatch watch(dir_, kNow);
  EXPECT_THAT(LookTwice(watch, kNow + absl::Hours(25))->text, HasSubstr("/cert.pem: expired"));
  std::filesystem::remove(dir_ + "/ca.pem");
  EXPECT_THAT(LookTwice(watch, kNow)->text, HasSubstr("/ca.pem: "));
}

TEST_F(CredentialsWatchTest, FilesInTheMiddleOfAReplacementAreNoFinding) {
  CredentialsWatch watch(dir_, kNow);
  std::filesystem::remove(dir_ + "/key.pem");
  EXPECT_EQ(watch.Look(kNow), std::nullopt);
  Replace(kNow);
  EXPECT_FALSE(LookTwice(watch, kNow)->error);
}

TEST_F(CredentialsWatchTest, TheLogKnowsWhenValidFilesReplacedTheOnesInUse) {
  ManualClock unix_clock;
  unix_clock.Advance(kNow - absl::UnixEpoch());
  VirtualTime time;
  const CredentialsLog log(dir_, time, unix_clock);
  EXPECT_EQ(log.dir(), dir_);
  const auto read_time_after = [&](absl::Duration duration) {
    unix_clock.Advance(duration);
    for (int i = 0; i < 2; ++i) time.RunNext();
    return log.read_time();
  };
  EXPECT_EQ(read_time_after(absl::Minutes(1)), kNow);
  Replace(kNow);
  EXPECT_EQ(read_time_after(absl::Minutes(1)), kNow + absl::Minutes(2));
  std::ofstream(dir_ + "/key.pem") << "torn";
  EXPECT_EQ(read_time_after(absl::Minutes(1)), kNow + absl::Minutes(2));
  Replace(kNow);
  EXPECT_EQ(read_time_after(absl::Minutes(1)), kNow + absl::Minutes(4));
}

}  // namespace
}  // namespace thinwire
