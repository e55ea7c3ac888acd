#include "server/process/server_setup.h"

#include <glog/logging.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tls/identity.h"
#include "config/addresses.h"
#include "config/connection_flags.h"
#include "config/job.h"
#include "config/job_text.h"
#include "config/recipes.h"
#include "config/site_job.h"

namespace thinwire {
namespace {

// Returns the addresses of all servers; empty if the flags do not name them. Errors:
// InvalidArgument for flags that contradict the job.
absl::StatusOr<std::vector<std::string>> ServerAddresses(const ServerFlags& flags,
                                                         const JobSpec& spec) {
  if (flags.server >= spec.server_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("--server: out of range (expected below ", spec.server_count,
                     ", the value of servers, got ", flags.server, ")"));
  }
  if (flags.connection.addresses.empty()) {
    // The lead admits the other servers to the run, so it must reach them.
    if (flags.server != 0 || spec.server_count == 1) return std::vector<std::string>();
    return absl::InvalidArgumentError(
        absl::StrCat("--addresses: missing (expected the address of each of the ",
                     spec.server_count, " servers, because server 0 calls the other ones)"));
  }
  return ParseAddresses(flags.connection.addresses, spec.server_count, ServerId{flags.server});
}

// Returns the address to listen on. Errors: InvalidArgument for a malformed address.
absl::StatusOr<std::string> ListenAddress(const ServerFlags& flags,
                                          const std::vector<std::string>& addresses) {
  std::string listen = flags.listen;
  if (listen.empty()) listen = addresses.empty() ? "127.0.0.1:0" : addresses[flags.server];
  if (!IsAddress(listen, /*least_port=*/0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen: wrong value (expected host:port with a port from 0 to 65535, got \"", listen,
        "\")"));
  }
  return listen;
}

// Checks that this server listens for other machines, and the lead calls them, only with
// credentials or --insecure. ADDRESSES: of all servers; may be empty.
absl::Status CheckExposure(const ServerFlags& flags, const std::string& listen,
                           const std::vector<std::string>& addresses) {
  const bool secure = !flags.connection.credentials.empty();
  const bool insecure = flags.connection.insecure;
  RETURN_IF_ERROR(CheckPlaintext("--listen", {listen}, secure, insecure));
  if (flags.server == 0) {
    RETURN_IF_ERROR(CheckPlaintext("--addresses", addresses, secure, insecure));
  }
  if (insecure && !IsLoopback(listen)) {
    LOG(WARNING) << "INSECURE: listening on " << listen
                 << " without credentials. Everybody who reaches this port can read and change the "
                    "model";
  }
  return absl::OkStatus();
}

// Checks that --state_dir is given if and only if the job keeps its state on disk.
absl::Status CheckStateDir(const ServerFlags& flags, const JobSpec& spec) {
  const bool durable = spec.recovery.durability != Durability::kNone;
  if (durable != flags.state_dir.empty()) return absl::OkStatus();
  if (durable) {
    return absl::InvalidArgumentError(
        "--state_dir: missing (expected a folder for the server's state, because the job file has "
        "durability: checkpoint or log)");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--state_dir: only valid with durability: checkpoint or log in the job file (got durability: "
      "none and ",
      flags.state_dir, ")"));
}

// Returns the job of CONFIG and SPEC, of which the aggregator with FLAGS is a worker. Errors:
// InvalidArgument for a flag; those of Credentials::Load.
absl::StatusOr<UpperJob> UpperJobOf(const ServerFlags& flags, JobConfig config, JobSpec spec) {
  if (flags.server != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--server: not possible with --site (expected 0, got ", flags.server, ")"));
  }
  const ConnectionFlags& connection = flags.connection;
  ASSIGN_OR_RETURN(std::vector<std::string> addresses,
                   ParseAddresses(connection.addresses, spec.server_count));
  RETURN_IF_ERROR(CheckPlaintext("--addresses", addresses, !connection.credentials.empty(),
                                 connection.insecure));
  const WorkerId worker{*flags.site.site};
  ASSIGN_OR_RETURN(
      Credentials credentials,
      Credentials::Load(connection.credentials, Identity{Role::kWorker, spec.name, worker.value}));
  return UpperJob{.config = std::move(config),
                  .spec = std::move(spec),
                  .worker = worker,
                  .addresses = std::move(addresses),
                  .credentials = std::move(credentials)};
}

}  // namespace

absl::StatusOr<ServerSetup> MakeServerSetup(const ServerFlags& given) {
  ServerFlags flags = given;
  ASSIGN_OR_RETURN(JobText text, ReadJobFile(flags.config));
  ExpandRecipe(text.config, text.places);
  ASSIGN_OR_RETURN(JobSpec spec, CheckJob(text.config, text.places));
  std::optional<UpperJob> upper;
  if (flags.site.site.has_value()) {
    ASSIGN_OR_RETURN(JobConfig site, SiteJob(text.config, flags.site, text.places));
    ASSIGN_OR_RETURN(JobSpec site_spec, CheckJob(site));
    ASSIGN_OR_RETURN(upper, UpperJobOf(flags, std::move(text.config), std::move(spec)));
    text.config = std::move(site);
    spec = std::move(site_spec);
    flags.connection.addresses.clear();
    flags.connection.credentials = flags.site_credentials;
  } else if (!flags.site_credentials.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--site_credentials: only valid with --site (got ", flags.site_credentials,
                     " and no site)"));
  }
  ASSIGN_OR_RETURN(std::vector<std::string> addresses, ServerAddresses(flags, spec));
  ASSIGN_OR_RETURN(std::string listen, ListenAddress(flags, addresses));
  RETURN_IF_ERROR(CheckExposure(flags, listen, addresses));
  RETURN_IF_ERROR(CheckStateDir(flags, spec));
  const std::string& folder = flags.connection.credentials;
  ASSIGN_OR_RETURN(Credentials credentials,
                   Credentials::Load(folder, Identity{Role::kServer, spec.name, flags.server}));
  ASSIGN_OR_RETURN(const BandwidthRates bandwidth, RatesOf(flags.bandwidth));
  const bool insecure = folder.empty() && !IsLoopback(listen);
  return ServerSetup{.flags = flags,
                     .config = std::move(text.config),
                     .spec = std::move(spec),
                     .server = ServerId{flags.server},
                     .addresses = std::move(addresses),
                     .listen = std::move(listen),
                     .credentials = std::move(credentials),
                     .bandwidth = bandwidth,
                     .insecure = insecure,
                     .upper = std::move(upper)};
}

}  // namespace thinwire
