#include "tests/processes/test_authority.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace thinwire {

TestAuthority::TestAuthority(std::string folder)
    : folder_(std::move(folder)), pair_(*MakeAuthority(Validity::Days(absl::Now(), 1))) {}

KeyPair TestAuthority::Issue(const Identity& identity, absl::Duration validity) {
  const absl::Time now = absl::Now();
  const auto pair = IssueCertificate(pair_, identity, {now - absl::Hours(2), now + validity});
  EXPECT_TRUE(pair.ok()) << pair.status();
  return pair.ok() ? *pair : KeyPair();
}

std::string TestAuthority::Write(const Identity& identity, const std::string& authorities) {
  const std::string dir = DirOf(identity);
  const absl::Status status = WritePemFiles(
      dir, CredentialFiles(authorities.empty() ? pair_.certificate : authorities, Issue(identity)),
      /*replace=*/true);
  EXPECT_EQ(status, absl::OkStatus());
  return dir;
}

std::string TestAuthority::DirOf(const Identity& identity) const {
  return absl::StrCat(folder_, "/", identity.DnsName());
}

Credentials TestAuthority::Load(const Identity& identity) {
  auto credentials = Credentials::Load(Write(identity), identity);
  EXPECT_TRUE(credentials.ok()) << credentials.status();
  return credentials.ok() ? *std::move(credentials) : Credentials();
}

}  // namespace thinwire
