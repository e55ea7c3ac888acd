#include "cli/certs/certs_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/process/temp_dir.h"
#include "common/tls/certificate.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

class CertsCommandTest : public testing::Test {
 protected:
  std::string PathOf(const std::string& name) { return folder_->PathOf(name); }

  ExitCode Init(bool force = false) { return InitAuthority(PathOf("ca"), force, kNow, out_, err_); }
  IssueOptions Worker3() {
    return {.authority_dir = PathOf("ca"),
            .role = "worker",
            .job = "train",
            .server = {},
            .worker = 3,
            .out = PathOf("worker-3")};
  }
  ExitCode Issue(const IssueOptions& options) {
    return IssueCredentials(options, kNow, out_, err_);
  }

  const std::unique_ptr<TempDir> folder_ = TempDir::Make(testing::TempDir()).value();
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(CertsCommandTest, IssuedCredentialsAreUsable) {
  ASSERT_EQ(Init(), ExitCode::kOk) << err_.str();
  ASSERT_EQ(Issue(Worker3()), ExitCode::kOk) << err_.str();
  const auto certificate = CheckCredentials(PathOf("worker-3"), kNow);
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(certificate->identity, (Identity{Role::kWorker, "train", 3}));
  EXPECT_EQ(certificate->not_after, kNow + 90 * absl::Hours(24));
  EXPECT_THAT(out_.str(), HasSubstr("worker-3.train.thinwire, valid for 90 days"));
}

TEST_F(CertsCommandTest, OnlyTheOwnerCanReadPrivateKeys) {
  ASSERT_EQ(Init(), ExitCode::kOk);
  ASSERT_EQ(Issue(Worker3()), ExitCode::kOk);
  for (const char* key : {"ca/ca-key.pem", "worker-3/key.pem"}) {
    struct stat info = {};
    ASSERT_EQ(stat(PathOf(key).c_str(), &info), 0) << key;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << key;
  }
}

TEST_F(CertsCommandTest, FilesAreReplacedOnlyWithForce) {
  ASSERT_EQ(Init(), ExitCode::kOk);
  EXPECT_EQ(Init(), ExitCode::kConfig);
  EXPECT_THAT(err_.str(), HasSubstr("ca.pem: exists already (expected --force to replace it)"));
  IssueOptions options = Worker3();
  ASSERT_EQ(Issue(options), ExitCode::kOk);
  EXPECT_EQ(Issue(options), ExitCode::kConfig);
  options.force = true;
  EXPECT_EQ(Issue(options), ExitCode::kOk);
  EXPECT_EQ(Init(/*force=*/true), ExitCode::kOk);
}

TEST_F(CertsCommandTest, ContradictoryFlagsAreUsageErrors) {
  ASSERT_EQ(Init(), ExitCode::kOk);
  const auto expect_usage = [&](const IssueOptions& options, const std::string& message) {
    err_.str("");
    EXPECT_EQ(Issue(options), ExitCode::kUsage);
    EXPECT_EQ(err_.str(), message + "\n");
  };
  IssueOptions options = Worker3();
  options.role = "viewer";
  expect_usage(options, "--worker: only valid with --role worker (got viewer)");
  options.role = "server";
  options.worker = std::nullopt;
  expect_usage(options, "--server: missing (expected the number of the server)");
  options.role = "operator";
  options.server = 0;
  expect_usage(options, "--server: only valid with --role server (got operator)");
  options.role = "root";
  expect_usage(options,
               "role: unknown (expected server, worker, operator or viewer, got \"root\")");
  options = Worker3();
  options.job = "a.b";
  expect_usage(options,
               "--job: not a name (expected 1 to 63 of a-z, 0-9 and inner -, got \"a.b\")");
}

TEST_F(CertsCommandTest, AMissingAuthorityIsNamed) {
  EXPECT_EQ(Issue(Worker3()), ExitCode::kConfig);
  EXPECT_EQ(err_.str(), absl::StrCat(PathOf("ca"),
                                     "/ca.pem: cannot be read: No such file or directory (expected "
                                     "a folder of thinwire certs init)\n"));
}

TEST_F(CertsCommandTest, ShowPrintsTheFactsOfEachCertificate) {
  ASSERT_EQ(Init(), ExitCode::kOk);
  ASSERT_EQ(Issue(Worker3()), ExitCode::kOk);
  out_.str("");
  ASSERT_EQ(ShowCertificates(PathOf("worker-3"), kNow, out_, err_), ExitCode::kOk) << err_.str();
  const std::string text = out_.str();
  EXPECT_THAT(text, HasSubstr("ca.pem\n  identity     CN=thinwire authority "));
  EXPECT_THAT(text, HasSubstr("role         authority\n"));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("cert.pem\n  identity     worker-3.train.thinwire\n",
                                           "  role         worker 3\n  job          train\n",
                                           "  valid        2027-01-15 07:00:00 UTC to ",
                                           "2027-04-15 08:00:00 UTC (90 days left)\n",
                                           "  fingerprint  sha256 ")));
}

TEST_F(CertsCommandTest, ShowNamesAFolderWithoutCertificates) {
  EXPECT_EQ(ShowCertificates(folder_->path(), kNow, out_, err_), ExitCode::kConfig);
  EXPECT_THAT(err_.str(), HasSubstr(": no certificates (expected ca.pem or cert.pem)"));
}

}  // namespace
}  // namespace thinwire
