#include "cli/rpc/call_error.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/rpc/call_server.h"
#include "cli/rpc/fake_control_server.h"
#include "common/tls/authority.h"
#include "common/tls/identity.h"
#include "proto/grpc_credentials.h"

namespace thinwire {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class CallErrorTest : public testing::Test {
 protected:
  // Writes the credentials of a process of AUTHORITY and returns their folder.
  static std::string Write(const std::string& name, const KeyPair& authority,
                           const Identity& identity) {
    const std::string dir = absl::StrCat(testing::TempDir(), "/", name);
    const KeyPair pair = *IssueCertificate(authority, identity, Validity::Days(absl::Now(), 1));
    EXPECT_TRUE(WritePemFiles(dir, CredentialFiles(authority.certificate, pair), true).ok());
    return dir;
  }
  static absl::Status Drain(const std::string& address, const std::string& credentials) {
    return CallServer({.addresses = address, .credentials = credentials}, ServerId{0},
                      DrainRequest())
        .status();
  }

  const KeyPair authority_ = *MakeAuthority(Validity::Days(absl::Now(), 1));
  const KeyPair other_ = *MakeAuthority(Validity::Days(absl::Now(), 1));
  const Identity server_ = {Role::kServer, "train", 0};
  const Identity operator_ = {Role::kOperator, "train", {}};
};

TEST_F(CallErrorTest, ACallWithoutCredentialsNamesTheFlag) {
  const auto credentials = *Credentials::Load(Write("server", authority_, server_), server_);
  FakeControlServer server("w", "abcd", credentials.ForServer());
  const absl::Status status = Drain(server.address(), "");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(StartsWith(absl::StrCat("server 0 (", server.address(), "): ")),
                             HasSubstr("requires a certificate: --credentials DIR")));
  EXPECT_TRUE(Drain(server.address(), Write("operator", authority_, operator_)).ok());
}

TEST_F(CallErrorTest, WrongCredentialsAreNamed) {
  const auto credentials = *Credentials::Load(Write("server", authority_, server_), server_);
  FakeControlServer secure("w", "abcd", credentials.ForServer());
  FakeControlServer plain("w", "abcd");
  const std::string other = Write("other", other_, operator_);
  for (const std::string& address : {secure.address(), plain.address()}) {
    EXPECT_THAT(std::string(Drain(address, other).message()),
                HasSubstr("server probably listens without mutual TLS, or the certificates"))
        << address;
  }
}

TEST_F(CallErrorTest, AServerOfAnotherJobIsAWrongSetting) {
  const auto credentials = *Credentials::Load(Write("server", authority_, server_), server_);
  FakeControlServer server("w", "abcd", credentials.ForServer());
  const absl::Status status =
      Drain(server.address(), Write("operator", authority_, {Role::kOperator, "other", {}}));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("certificate of another job or server (expected one of job other,"));
}

TEST_F(CallErrorTest, AServerThatDoesNotListenNeedsNoHint) {
  FakeControlServer server("w", "abcd");
  server.Stop();
  const std::string message(Drain(server.address(), "").message());
  EXPECT_THAT(message, EndsWith("): connection refused"));
  EXPECT_THAT(message, Not(HasSubstr("probably")));
}

}  // namespace
}  // namespace thinwire
