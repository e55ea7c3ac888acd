#include "worker/process/setup.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/files/atomic_file.h"
#include "common/tls/identity.h"
#include "config/addresses.h"
#include "config/connection_flags.h"
#include "config/job.h"
#include "config/job_text.h"
#include "config/site_job.h"

namespace thinwire {

namespace {

// Returns the value of --worker; nullopt for auto. Errors: InvalidArgument for another value.
absl::StatusOr<std::optional<WorkerId>> NumberOf(const WorkerFlags& flags, const JobSpec& spec) {
  if (flags.worker == "auto") return std::nullopt;
  WorkerId number;
  if (!absl::SimpleAtoi(flags.worker, &number.value)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--worker: wrong value (expected a whole number, or auto, got ", flags.worker, ")"));
  }
  if (number.value >= spec.rule.max_workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("--worker: out of range (expected below ", spec.rule.max_workers,
                     ", the value of max_workers, got ", number.value, ")"));
  }
  return number;
}

// Returns the value of --delay. Errors: InvalidArgument if it is not valid.
absl::StatusOr<std::optional<absl::Duration>> DelayOf(const WorkerFlags& flags) {
  if (flags.delay.empty()) return std::nullopt;
  absl::Duration delay;
  if (!absl::ParseDuration(flags.delay, &delay) || delay < absl::ZeroDuration() ||
      delay > absl::Hours(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--delay: wrong value (expected a duration of at most 1h, such as 50ms, got ",
                     flags.delay, ")"));
  }
  return delay;
}

// Returns N of --log_events every=N, and 1 for "all". Errors: InvalidArgument for another value.
absl::StatusOr<uint32_t> StepsPerEventOf(const WorkerFlags& flags) {
  uint32_t every = 1;
  absl::string_view number = flags.log_events;
  const bool counts = absl::ConsumePrefix(&number, "every=");
  if (flags.log_events == "all" || (counts && absl::SimpleAtoi(number, &every) && every > 0)) {
    return every;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--log_events: wrong value (expected all, or every=N with N from 1, got ",
                   flags.log_events, ")"));
}

// Returns the settings of the model file. Errors: those of CheckReplaceable.
absl::StatusOr<std::optional<ModelOutputOptions>> OutputOf(const WorkerFlags& flags,
                                                           const JobSpec& spec) {
  if (flags.output.empty()) return std::nullopt;
  // Reports the error before hours of training, not after.
  const absl::Status status = CheckReplaceable(flags.output);
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat("--output: ", status.message()));
  }
  using Keep = ModelOutputOptions::Keep;
  return ModelOutputOptions{.path = flags.output,
                            .keep = flags.keep == "best" ? Keep::kBest : Keep::kLast,
                            .job = spec.name};
}

}  // namespace

absl::StatusOr<Setup> MakeSetup(const WorkerFlags& flags, const FieldFlags& field_flags) {
  ASSIGN_OR_RETURN(const uint32_t steps_per_event, StepsPerEventOf(flags));
  ASSIGN_OR_RETURN(JobText text, ReadJobFile(flags.config));
  RETURN_IF_ERROR(field_flags.Apply(text.config, text.places));
  ASSIGN_OR_RETURN(JobSpec spec, CheckJob(text.config, text.places));
  SiteShare share;
  if (flags.site.site.has_value()) {
    share = {.site = *flags.site.site, .sites = spec.rule.workers};
    ASSIGN_OR_RETURN(text.config, SiteJob(text.config, flags.site, text.places));
    ASSIGN_OR_RETURN(spec, CheckJob(text.config));
  }
  ASSIGN_OR_RETURN(const std::optional<WorkerId> number, NumberOf(flags, spec));
  if (Traits(spec.optimizer.kind).holds_average) {
    return absl::InvalidArgumentError(
        "optimizer: average needs workers in Python (expected another, got average)");
  }
  if (spec.members > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("members: needs workers in Python (expected 1, got ", spec.members, ")"));
  }
  if (spec.push.adaptive.has_value() && flags.state_dir.empty() && flags.evaluate.empty()) {
    return absl::InvalidArgumentError(
        "--state_dir: missing (expected a folder for the worker's state, to which push: adaptive "
        "returns, got none)");
  }
  ASSIGN_OR_RETURN(std::vector<std::string> addresses,
                   ParseAddresses(flags.connection.addresses, spec.server_count));
  RETURN_IF_ERROR(CheckPlaintext("--addresses", addresses, !flags.connection.credentials.empty(),
                                 flags.connection.insecure));
  Identity identity{Role::kWorker, spec.name};
  if (number.has_value()) identity.number = number->value;
  ASSIGN_OR_RETURN(Credentials credentials,
                   Credentials::Load(flags.connection.credentials, identity));
  ASSIGN_OR_RETURN(const BandwidthRates bandwidth, RatesOf(flags.bandwidth));
  ASSIGN_OR_RETURN(const std::optional<absl::Duration> delay, DelayOf(flags));
  ASSIGN_OR_RETURN(std::optional<ModelOutputOptions> output, OutputOf(flags, spec));
  // Makes the task field present even if all its fields have their defaults. Servers compare the
  // tasks of all workers and skip a worker that sends no task.
  text.config.mutable_task();
  return Setup{.config = std::move(text.config),
               .spec = std::move(spec),
               .share = share,
               .worker = number,
               .addresses = std::move(addresses),
               .wait_for_servers = flags.wait_for_servers,
               .credentials = std::move(credentials),
               .bandwidth = bandwidth,
               .delay = delay,
               .steps_per_event = steps_per_event,
               .state_dir = flags.state_dir,
               .output = std::move(output)};
}

}  // namespace thinwire
