#include "cli/certs/certs_command.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/files/read_file.h"
#include "common/tls/authority.h"
#include "common/tls/certificate.h"
#include "common/tls/identity.h"
#include "config/command_flags.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire certs init ca\n"
    "  thinwire certs issue ca --role server --job train --server 0 --out certs/server-0\n"
    "  thinwire certs issue ca --role worker --job train --worker 3 --out certs/worker-3\n"
    "  thinwire certs issue ca --role viewer --job train --days 7 --out certs/viewer\n"
    "  thinwire certs show certs/worker-3";

constexpr int kAuthorityDays = 3650;

ExitCode Report(const absl::Status& status, std::ostream& err) {
  if (!status.ok()) err << status.message() << std::endl;
  return ExitCodeOf(status);
}

absl::StatusOr<std::string> ReadPem(const std::string& dir, const std::string& name) {
  const std::string path = absl::StrCat(dir, "/", name);
  absl::StatusOr<std::string> text = ReadWholeFile(path);
  if (text.ok()) return text;
  return absl::NotFoundError(
      absl::StrCat(text.status().message(), " (expected a folder of thinwire certs init)"));
}

// Returns the identity that the flags describe. Errors: InvalidArgument.
absl::StatusOr<Identity> IdentityOf(const IssueOptions& options) {
  ASSIGN_OR_RETURN(const Role role, ParseRole(options.role));
  if (options.server.has_value() && role != Role::kServer) {
    return absl::InvalidArgumentError(
        absl::StrCat("--server: only valid with --role server (got ", options.role, ")"));
  }
  if (options.worker.has_value() && role != Role::kWorker) {
    return absl::InvalidArgumentError(
        absl::StrCat("--worker: only valid with --role worker (got ", options.role, ")"));
  }
  Identity identity{.role = role,
                    .job = options.job,
                    .number = role == Role::kServer ? options.server : options.worker};
  const absl::Status status = identity.Validate();
  if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat("--", status.message()));
  return identity;
}

absl::Status Issue(const IssueOptions& options, const Identity& identity, absl::Time now,
                   std::ostream& out) {
  KeyPair authority;
  ASSIGN_OR_RETURN(authority.certificate, ReadPem(options.authority_dir, kAuthorityFile));
  ASSIGN_OR_RETURN(authority.key, ReadPem(options.authority_dir, kAuthorityKeyFile));
  const Validity validity = Validity::Days(now, options.days);
  ASSIGN_OR_RETURN(const KeyPair pair, IssueCertificate(authority, identity, validity));
  RETURN_IF_ERROR(
      WritePemFiles(options.out, CredentialFiles(authority.certificate, pair), options.force));
  out << options.out << ": " << identity << ", valid for " << options.days << " days" << std::endl;
  return absl::OkStatus();
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

std::string ValidityText(const Certificate& certificate, absl::Time now) {
  std::string text =
      absl::StrCat(TimeText(certificate.not_before), " to ", TimeText(certificate.not_after));
  if (now > certificate.not_after) return text + " (expired)";
  if (now < certificate.not_before) return text + " (not valid yet)";
  const int64_t days = (certificate.not_after - now) / absl::Hours(24);
  return absl::StrCat(text, " (", days, " days left)");
}

std::string RoleText(const Certificate& certificate) {
  if (certificate.authority) return "authority";
  if (!certificate.identity.has_value()) return "none";
  const Identity& identity = *certificate.identity;
  std::string text(RoleName(identity.role));
  if (identity.number.has_value()) return absl::StrCat(text, " ", *identity.number);
  return identity.role == Role::kWorker ? "every worker" : text;
}

void Show(const Certificate& certificate, const std::string& place, absl::Time now,
          std::ostream& out) {
  const auto& identity = certificate.identity;
  out << place << "\n  identity     "
      << (identity.has_value() ? identity->DnsName() : certificate.subject) << "\n  role         "
      << RoleText(certificate) << "\n";
  if (identity.has_value()) out << "  job          " << identity->job << "\n";
  out << "  valid        " << ValidityText(certificate, now) << "\n  fingerprint  sha256 "
      << certificate.fingerprint << std::endl;
}

// Returns the certificate files at PATH.
absl::StatusOr<std::vector<std::string>> FilesAt(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (const char* name : {kAuthorityFile, kCertificateFile}) {
    const std::string file = absl::StrCat(path, "/", name);
    if (std::filesystem::exists(file, error)) files.push_back(file);
  }
  if (files.empty()) {
    return absl::NotFoundError(absl::StrCat(path, ": no certificates (expected ", kAuthorityFile,
                                            " or ", kCertificateFile, ")"));
  }
  return files;
}

}  // namespace

CLI::App* AddCerts(CLI::App& app, CertsCommand& command) {
  CLI::App* certs =
      CommandFlags(app).AddSubcommand("certs", "Makes and shows certificates for mutual TLS");
  CommandFlags flags(*certs);
  flags.RequireSubcommand();
  flags.Footer(kExamples);
  command.init = flags.AddSubcommand("init", "Makes an authority, which issues certificates");
  CommandFlags init(*command.init);
  init.Add("DIR", command.path, "The folder of the authority").Required();
  init.AddSwitch("--force", command.force, "Replaces an existing authority");
  IssueOptions& options = command.options;
  command.issue = flags.AddSubcommand("issue", "Makes a key and a certificate for one process");
  CommandFlags issue(*command.issue);
  issue.Add("DIR", options.authority_dir, "The folder of the authority").Required();
  issue.Add("--role", options.role, "The role of the process, which decides its rights")
      .Type("server|worker|operator|viewer")
      .OneOf({"server", "worker", "operator", "viewer"})
      .Required();
  issue.Add("--job", options.job, "The name of the job, as in the job file")
      .Type("NAME")
      .Required();
  issue.Add("--server", options.server, "The number of the server").Type("NUMBER");
  issue
      .Add("--worker", options.worker,
           "The number of the worker. Without it, the certificate is good for every worker "
           "of the job")
      .Type("NUMBER");
  issue.Add("--days", options.days, "The validity in days, from now. Default: 90")
      .Type("COUNT")
      .Between(1, 3650);
  issue.Add("--out", options.out, "The credentials folder to write").Type("DIR").Required();
  issue.AddSwitch("--force", options.force,
                  "Replaces existing files. Running processes read them within seconds");
  command.show = flags.AddSubcommand("show", "Prints the facts of certificates");
  CommandFlags show(*command.show);
  show.Add("PATH", command.path, "A certificate file, or a folder").Required();
  return certs;
}

ExitCode RunCerts(const CertsCommand& command, std::ostream& out, std::ostream& err) {
  const absl::Time now = absl::Now();
  if (IsParsed(*command.init)) return InitAuthority(command.path, command.force, now, out, err);
  if (IsParsed(*command.issue)) return IssueCredentials(command.options, now, out, err);
  return ShowCertificates(command.path, now, out, err);
}

ExitCode InitAuthority(const std::string& dir, bool force, absl::Time now, std::ostream& out,
                       std::ostream& err) {
  const absl::StatusOr<KeyPair> pair = MakeAuthority(Validity::Days(now, kAuthorityDays));
  if (!pair.ok()) return Report(pair.status(), err);
  const absl::Status status = WritePemFiles(
      dir, {{kAuthorityFile, pair->certificate}, {kAuthorityKeyFile, pair->key, /*secret=*/true}},
      force);
  if (!status.ok()) return Report(status, err);
  out << dir << ": an authority, valid for " << kAuthorityDays << " days. Anybody with "
      << kAuthorityKeyFile << " can make certificates of every role" << std::endl;
  return ExitCode::kOk;
}

ExitCode IssueCredentials(const IssueOptions& options, absl::Time now, std::ostream& out,
                          std::ostream& err) {
  const absl::StatusOr<Identity> identity = IdentityOf(options);
  if (!identity.ok()) {
    Report(identity.status(), err);
    return ExitCode::kUsage;
  }
  return Report(Issue(options, *identity, now, out), err);
}

ExitCode ShowCertificates(const std::string& path, absl::Time now, std::ostream& out,
                          std::ostream& err) {
  const absl::StatusOr<std::vector<std::string>> files = FilesAt(path);
  if (!files.ok()) return Report(files.status(), err);
  for (const std::string& file : *files) {
    const absl::StatusOr<std::vector<Certificate>> certificates = ReadCertificates(file);
    if (!certificates.ok()) return Report(certificates.status(), err);
    for (const Certificate& certificate : *certificates) Show(certificate, file, now, out);
  }
  return ExitCode::kOk;
}

}  // namespace thinwire
