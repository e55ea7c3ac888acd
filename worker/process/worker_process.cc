#include "worker/process/worker_process.h"

#include <glog/logging.h>
#include <systemd/sd-daemon.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/encode/worker_folder.h"
#include "client/transport/claim_number.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/files/atomic_file.h"
#include "common/spec/job_spec.h"
#include "common/time/trace.h"
#include "common/tls/credentials_watch.h"
#include "config/job.h"
#include "config/job_text.h"
#include "proto/worker_event.pb.h"
#include "worker/process/setup.h"
#include "worker/process/train.h"
#include "worker/process/worker_admin.h"
#include "worker/process/worker_summary.h"
#include "worker/trainer/events.h"
#include "worker/trainer/trainer.h"

namespace thinwire {
namespace {

// Tells systemd that the worker is ready when it has joined, and why it waits.
void NotifySystemd(const WorkerEvent& event) {
  if (event.has_joined()) sd_notify(/*unset_environment=*/0, "READY=1\nSTATUS=training");
  if (event.has_waiting()) {
    const std::string& text = event.waiting().text();
    sd_notify(/*unset_environment=*/0,
              absl::StrCat("STATUS=", text.empty() ? "training" : text).c_str());
  }
}

// Reports ERROR as an event and in the log, and returns the exit code of the process.
ExitCode Fail(const absl::Status& error, EventPrinter& events) {
  WorkerEvent event;
  event.mutable_error()->set_message(std::string(error.message()));
  events.Write(std::move(event));
  LOG(ERROR) << error.message();
  return ExitCodeOfWorker(error);
}

// Evaluates the model file and reports the result as a `done` event.
ExitCode RunEvaluate(const WorkerFlags& flags, const FieldFlags& field_flags) {
  const absl::StatusOr<JobSpec> spec = [&]() -> absl::StatusOr<JobSpec> {
    ASSIGN_OR_RETURN(JobText text, ReadJobFile(flags.config));
    RETURN_IF_ERROR(field_flags.Apply(text.config, text.places));
    return CheckJob(text.config, text.places);
  }();
  if (!spec.ok()) {
    std::cerr << "worker: " << spec.status().message() << std::endl;
    return ExitCode::kConfig;
  }
  EventPrinter events(std::cout, WorkerId{0});
  const absl::StatusOr<BatchResult> result = EvaluateModelFile(spec->task, flags.evaluate);
  if (!result.ok()) return Fail(result.status(), events);
  WorkerEvent event;
  event.mutable_done()->set_evaluator(true);
  if (const auto accuracy = result->accuracy()) {
    event.mutable_done()->set_final_test_accuracy(*accuracy);
  }
  event.mutable_done()->set_final_test_loss(result->mean_loss());
  events.Write(std::move(event));
  return ExitCode::kOk;
}

// Asks the lead for a worker number. Errors: those of ClaimNumber.
absl::StatusOr<WorkerId> AskForNumber(const Setup& setup, Clock& clock,
                                      const Termination& termination) {
  LOG(INFO) << "asks server 0 (" << setup.addresses.front() << ") for a worker number";
  const absl::Duration timeout =
      setup.wait_for_servers ? absl::InfiniteDuration() : setup.spec.start_timeout;
  return client::ClaimNumber({.lead = setup.addresses.front(),
                              .kept = client::WorkerFolder::NumbersIn(setup.state_dir),
                              .start_timeout = timeout,
                              .lease = setup.spec.lease},
                             setup.credentials, clock,
                             [&](absl::Duration time) { return !termination.WaitFor(time); });
}

// The records of a run that the flags ask for.
struct Records {
  std::unique_ptr<WorkerAdmin> admin;
  std::unique_ptr<WorkerSummary> summary;
  std::optional<Tracer> tracer;
};

// Fills in RECORDS. CREDENTIALS and the clocks must outlive them; the time of UNIX_CLOCK counts from the Unix
// epoch. Errors: those of WorkerAdmin::Start, WorkerSummary::Create and CheckReplaceable.
absl::Status StartRecords(const WorkerFlags& flags, const Setup& setup,
                          const CredentialsLog& credentials, Clock& clock, Clock& unix_clock,
                          Records& records) {
  if (!flags.admin.empty()) {
    ASSIGN_OR_RETURN(records.admin,
                     WorkerAdmin::Start(flags.admin, setup.spec.name, credentials, *setup.worker,
                                        clock, flags.bandwidth.price_per_gb));
    LOG(INFO) << "admin " << records.admin->address();
  }
  if (!flags.tensorboard.empty()) {
    auto summary = WorkerSummary::Create(flags.tensorboard, unix_clock);
    if (!summary.ok()) {
      return absl::Status(summary.status().code(),
                          absl::StrCat("--tensorboard: ", summary.status().message()));
    }
    records.summary = *std::move(summary);
  }
  if (!flags.trace.empty()) {
    // Reports the error before hours of training, not after.
    if (const absl::Status status = CheckReplaceable(flags.trace); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat("--trace: ", status.message()));
    }
    records.tracer.emplace(absl::StrCat("worker ", setup.worker->value), unix_clock);
  }
  return absl::OkStatus();
}

ExitCode ExitCodeOfEnding(Trainer::Ending ending) {
  switch (ending) {
    case Trainer::Ending::kFinished:
    case Trainer::Ending::kRetired:
      return ExitCode::kOk;
    case Trainer::Ending::kStopped:
      return ExitCode::kPreempted;
    case Trainer::Ending::kDiverged:
      return ExitCode::kDiverged;
    case Trainer::Ending::kNotWritten:
      return ExitCode::kIo;
  }
  return ExitCode::kSoftware;
}

}  // namespace

ExitCode RunWorker(const WorkerFlags& flags, const FieldFlags& field_flags,
                   Termination& termination, ExecutorFactory& threads, Clock& clock,
                   Clock& unix_clock) {
  if (!flags.evaluate.empty()) return RunEvaluate(flags, field_flags);
  absl::StatusOr<Setup> setup = MakeSetup(flags, field_flags);
  if (!setup.ok()) {
    std::cerr << "worker: " << setup.status().message() << std::endl;
    return ExitCode::kConfig;
  }
  for (const std::string& warning : setup->credentials.warnings()) LOG(WARNING) << warning;
  if (flags.connection.insecure) {
    LOG(WARNING) << "INSECURE: calling " << flags.connection.addresses
                 << " without credentials. Everybody on the way can read and change the model";
  }
  if (!setup->worker.has_value()) {
    const absl::StatusOr<WorkerId> number = AskForNumber(*setup, clock, termination);
    if (!number.ok()) {
      std::cerr << "worker: " << number.status().message() << std::endl;
      return absl::IsCancelled(number.status()) ? ExitCode::kPreempted
                                                : ExitCodeOfWorker(number.status());
    }
    LOG(INFO) << "this process is worker " << *number;
    setup->worker = *number;
  }
  const CredentialsLog credentials_log(flags.connection.credentials, threads, unix_clock);
  Records records;
  if (const absl::Status started =
          StartRecords(flags, *setup, credentials_log, clock, unix_clock, records);
      !started.ok()) {
    std::cerr << "worker: " << started.message() << std::endl;
    return ExitCodeOf(started);
  }
  EventPrinter events(
      std::cout, *setup->worker,
      [&records](const WorkerEvent& event) {
        NotifySystemd(event);
        if (records.admin != nullptr) records.admin->Add(event);
        if (records.summary != nullptr) records.summary->Add(event);
      },
      setup->steps_per_event);
  Tracer* const tracer = records.tracer.has_value() ? &*records.tracer : nullptr;
  const absl::StatusOr<Trainer::Ending> ending =
      Train(*setup, threads, termination, events, tracer,
            records.admin == nullptr ? "" : records.admin->page());
  if (tracer != nullptr) {
    const absl::Status written = tracer->Write(flags.trace);
    if (!written.ok()) LOG(ERROR) << "--trace: " << written.message();
  }
  if (!ending.ok()) return Fail(ending.status(), events);
  return ExitCodeOfEnding(*ending);
}

}  // namespace thinwire
