// `thinwire certs`: makes and shows the certificates of a job (docs/security.md).
//
//   init DIR     makes an authority: DIR/ca.pem, and DIR/ca-key.pem, its private key
//   issue DIR    makes a credentials folder with a new key and a certificate of that authority
//   show PATH    prints the certificates of a file, or of ca.pem and cert.pem in a folder
//
// All functions print results to the stream `out` and errors, one sentence each, to `err`.
#ifndef THINWIRE_CLI_CERTS_CERTS_COMMAND_H_
#define THINWIRE_CLI_CERTS_CERTS_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "absl/time/time.h"
#include "common/base/exit_code.h"

namespace CLI {
class App;
}

namespace thinwire {

// The flags of `thinwire certs issue`.
struct IssueOptions {
  std::string authority_dir;
  std::string role;  // server, worker, operator or viewer
  std::string job;
  std::optional<uint32_t> server;  // the number of a server
  std::optional<uint32_t> worker;  // the number of a worker; nullopt: good for every worker
  int days = 90;                   // validity, from now
  std::string out;                 // the credentials folder
  bool force = false;              // replaces existing files
};

struct CertsCommand {
  // The subcommands. AddCerts sets them.
  CLI::App* init = nullptr;
  CLI::App* issue = nullptr;
  CLI::App* show = nullptr;
  std::string path;      // of init and show
  bool force = false;    // of init
  IssueOptions options;  // of issue
};

// Adds the command with its flags to APP. COMMAND must outlive APP.
CLI::App* AddCerts(CLI::App& app, CertsCommand& command);

// Runs the subcommand of the command line.
ExitCode RunCerts(const CertsCommand& command, std::ostream& out, std::ostream& err);

// Makes an authority that is valid for ten years from NOW. FORCE replaces an existing one.
ExitCode InitAuthority(const std::string& dir, bool force, absl::Time now, std::ostream& out,
                       std::ostream& err);

// Makes a credentials folder. Returns kUsage if the flags contradict each other.
ExitCode IssueCredentials(const IssueOptions& options, absl::Time now, std::ostream& out,
                          std::ostream& err);

// Prints the identity, role, job, validity and fingerprint of each certificate at PATH.
ExitCode ShowCertificates(const std::string& path, absl::Time now, std::ostream& out,
                          std::ostream& err);

}  // namespace thinwire

#endif  // THINWIRE_CLI_CERTS_CERTS_COMMAND_H_
