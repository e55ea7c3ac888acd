#include "python/owned_client.h"

#include <glog/logging.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/encode/worker_folder.h"
#include "client/options/client_options.h"
#include "client/options/job_client_options.h"
#include "client/transport/claim_number.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/tls/identity.h"
#include "config/addresses.h"
#include "config/job_text.h"

namespace thinwire {
namespace {

// Returns whether pushes in the first part of a run have another codec or density.
bool WarmsUp(const PushWarmup& warmup) { return warmup.density.part > 0 || warmup.first_part > 0; }

// Checks that SETTINGS fit the job.
absl::Status CheckSettings(const PythonJob& job, const WorkerSettings& settings) {
  const JobSpec& spec = job.spec;
  if (settings.worker >= spec.rule.max_workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker: out of range (expected below ", spec.rule.max_workers,
                     ", the value of max_workers, got ", settings.worker, ")"));
  }
  if (settings.addresses.empty()) {
    return absl::InvalidArgumentError(
        "addresses: missing (expected host:port of every server, from THINWIRE_ADDRESSES or "
        "init(addresses=...), got none)");
  }
  if (settings.owned_tensors.empty() && spec.members > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "members: each process must own a part of the model (expected DistributedOptimizer(..., "
        "members=tw.local_group()), or members: 1, got members: ",
        spec.members, ")"));
  }
  if (settings.planned_steps > 0) return absl::OkStatus();
  const JobSpec& described = job.described();
  std::string dependent;
  if (described.push.warmup.first_part > 0) dependent = "first_push_part depends";
  if (described.push.warmup.density.part > 0) dependent = "density_warmup depends";
  if (described.schedule.kind != ScheduleKind::kConstant || described.schedule.warmup > 0) {
    dependent = "the schedule of the learning rate depends";
  }
  if (dependent.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("steps: missing (expected the number of steps of the run, on which ", dependent,
                   ", got none)"));
}

}  // namespace

KeptMemory::~KeptMemory() {
  for (const Array& array : kept_) arena_.deallocate(array.start, array.bytes, array.alignment);
}

void KeptMemory::Keep() {
  absl::MutexLock lock(&mu_);
  keeps_ = true;
}

void* KeptMemory::do_allocate(size_t bytes, size_t alignment) {
  return arena_.allocate(bytes, alignment);
}

void KeptMemory::do_deallocate(void* array, size_t bytes, size_t alignment) {
  absl::MutexLock lock(&mu_);
  if (keeps_) return kept_.push_back({array, bytes, alignment});
  arena_.deallocate(array, bytes, alignment);
}

absl::StatusOr<WorkerId> ClaimWorkerNumber(const std::string& config,
                                           const WorkerSettings& settings, Clock& clock,
                                           absl::FunctionRef<bool(absl::Duration)> pause) {
  JobSpec spec;
  if (!config.empty()) {
    ASSIGN_OR_RETURN(const PythonJob job, MakePythonJob(config, {}));
    spec = job.spec;
  }
  const std::string lead = settings.addresses.substr(0, settings.addresses.find(','));
  RETURN_IF_ERROR(
      CheckPlaintext("addresses", {lead}, !settings.credentials.empty(), settings.insecure));
  ASSIGN_OR_RETURN(const Credentials credentials,
                   Credentials::Load(settings.credentials, std::nullopt));
  return client::ClaimNumber({.lead = lead,
                              .kept = client::WorkerFolder::NumbersIn(settings.state_dir),
                              .start_timeout = spec.start_timeout,
                              .lease = spec.lease},
                             credentials, clock, pause);
}

absl::StatusOr<std::unique_ptr<OwnedClient>> OwnedClient::Make(const PythonJob& job,
                                                               const WorkerSettings& settings,
                                                               std::vector<TensorShape> tensors,
                                                               ExecutorFactory& threads) {
  RETURN_IF_ERROR(CheckSettings(job, settings));
  absl::StatusOr<std::vector<std::string>> addresses =
      ParseAddresses(settings.addresses, job.spec.server_count);
  if (!addresses.ok()) {
    // The message names the flag of the programs.
    return absl::InvalidArgumentError(absl::StripPrefix(addresses.status().message(), "--"));
  }
  RETURN_IF_ERROR(
      CheckPlaintext("addresses", *addresses, !settings.credentials.empty(), settings.insecure));
  ASSIGN_OR_RETURN(const Credentials credentials,
                   Credentials::Load(settings.credentials,
                                     Identity{Role::kWorker, job.spec.name, settings.worker}));
  const absl::StatusOr<BandwidthRates> rates = RatesOf(settings.bandwidth);
  if (!rates.ok()) {
    return absl::InvalidArgumentError(absl::StripPrefix(rates.status().message(), "--"));
  }
  for (const std::string& warning : credentials.warnings()) LOG(WARNING) << warning;
  ClientOptions options =
      MakeClientOptions(job.spec, {.worker = WorkerId{settings.worker},
                                   .planned_examples = settings.planned_steps * settings.examples *
                                                       job.spec.rule.workers * job.site_count(),
                                   .planned_steps = settings.planned_steps,
                                   .state_dir = settings.state_dir});
  // A Python program steps its own optimizer between two steps of the servers.
  options.works_ahead = false;
  options.member = settings.member;
  options.owned_tensors = settings.owned_tensors;
  options.config = job.config;
  if (!settings.task.empty()) {
    ASSIGN_OR_RETURN(const JobText task,
                     ParseJobText(absl::StrCat("task { ", settings.task, " }"), "task"));
    options.config->MergeFrom(task.config);
  } else if (job.upper.has_value() && WarmsUp(job.upper->push.warmup)) {
    // The aggregator, which makes the pushes, computes the number of steps from the batch size.
    options.config->mutable_task()->set_batch_size(settings.examples);
  }
  std::unique_ptr<OwnedClient> owned(
      new OwnedClient(*std::move(addresses), credentials, Bandwidth(*rates, threads)));
  options.memory = &owned->memory_;
  ASSIGN_OR_RETURN(owned->client_, Client::Make(std::move(options), std::move(tensors),
                                                *owned->transport_, threads));
  owned->tensors_ = owned->client_->partition().tensors();
  for (uint32_t i = 0; i < owned->tensors_.size(); ++i) {
    owned->replicas_.push_back(owned->client_->replica(i));
  }
  owned->caller_ = threads.Make();
  return owned;
}

void OwnedClient::Close() {
  caller_ = nullptr;
  memory_.Keep();
  client_ = nullptr;
  transport_ = nullptr;
}

}  // namespace thinwire
