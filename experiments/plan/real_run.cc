#include "experiments/plan/real_run.h"

#include <google/protobuf/text_format.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/process/process.h"
#include "common/base/status_macros.h"
#include "common/files/read_file.h"
#include "experiments/plan/results.h"

namespace thinwire::lab {
namespace {

using nlohmann::json;

// Returns the number NAME of OBJECT, or 0 if it has none.
template <typename Number>
Number NumberIn(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<Number>() : Number{};
}

// Returns the mean part of the workers' time in which they did not wait.
double BusyPart(const json& workers) {
  double sum = 0;
  for (const json& worker : workers) {
    double waited = 0;
    for (const char* cause : {"wait_pushes_micros", "wait_parameters_micros", "wait_workers_micros",
                              "wait_servers_micros"}) {
      waited += NumberIn<double>(worker, cause) * 1e-6;
    }
    const double seconds = NumberIn<double>(worker, "seconds");
    if (seconds > 0) sum += 1 - waited / seconds;
  }
  return workers.empty() ? 0 : sum / static_cast<double>(workers.size());
}

void AddPoints(const json& epochs, RunResult& result) {
  for (size_t i = 0; i < epochs.size(); ++i) {
    const json& epoch = epochs[i];
    RunResult::Point& point = *result.add_point();
    // All epochs have the same number of examples and steps.
    const auto part = [&](uint64_t all) { return all * (i + 1) / epochs.size(); };
    point.set_seconds(NumberIn<double>(epoch, "seconds"));
    point.set_step(part(result.steps()));
    point.set_examples(part(result.examples()));
    point.set_push_bytes(NumberIn<uint64_t>(epoch, "sent_bytes"));
    point.set_pull_bytes(NumberIn<uint64_t>(epoch, "received_bytes"));
    point.set_train_loss(NumberIn<double>(epoch, "train_loss"));
    const auto is_tested = [&epoch](const char* name) {
      return epoch.value(name, json()).is_number();
    };
    if (is_tested("test_loss")) point.set_test_loss(epoch["test_loss"]);
    if (is_tested("test_accuracy")) point.set_test_accuracy(epoch["test_accuracy"]);
  }
}

void AddDecisions(const json& decisions, RunResult& result) {
  for (const json& row : decisions) {
    PrecisionDecision& decision = *result.add_decision();
    decision.set_step(NumberIn<uint64_t>(row, "step"));
    decision.set_next_step(NumberIn<uint64_t>(row, "next_step"));
    decision.set_accuracy(NumberIn<double>(row, "accuracy"));
    decision.set_chosen(row.value("chosen", ""));
    const std::string layers = row.value("layers", "all");
    if (layers != "all") decision.set_layers(layers);
    for (const json& cell : row.value("candidates", json::array())) {
      PrecisionDecision::Candidate& candidate = *decision.add_candidate();
      candidate.set_name(cell.value("name", ""));
      if (cell.value("predicted_accuracy", json()).is_number()) {
        candidate.set_predicted_accuracy(NumberIn<double>(cell, "predicted_accuracy"));
        candidate.set_deviation(NumberIn<double>(cell, "deviation"));
        candidate.set_gain_per_second(NumberIn<double>(cell, "gain_per_second"));
        candidate.set_gain_deviation(NumberIn<double>(cell, "gain_deviation"));
      }
      if (cell.value("encoding_error", json()).is_number()) {
        candidate.set_encoding_error(NumberIn<double>(cell, "encoding_error"));
      }
      candidate.set_seconds_per_step(NumberIn<double>(cell, "seconds_per_step"));
    }
  }
}

// Blocks until the process ends. Process::Poll() returns its exit status afterwards.
void AwaitEnd(const Process& process) {
  siginfo_t ignored;
  while (waitid(P_PID, static_cast<id_t>(process.pid()), &ignored, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
}

}  // namespace

absl::Status CheckReal(const RunSpec& spec) {
  const Machines& machines = spec.machines;
  const ComputeTime& compute = machines.compute();
  const auto has_limit = [](const Link& link) {
    return link.megabits_per_second() > 0 || link.latency_ms() > 0;
  };
  const std::pair<bool, const char*> simulated[] = {
      {machines.exchange() != Machines::Exchange::servers, "exchange"},
      {machines.has_synthetic(), "synthetic"},
      {machines.has_imposed_staleness(), "imposed_staleness"},
      {compute.distribution() != ComputeTime::Distribution::constant, "compute.distribution"},
      {compute.slow_workers() > 0, "compute.slow_workers"},
      {compute.pause_every_seconds() > 0, "compute.pause_every_seconds"},
      {machines.site_size() > 0, "site"},
      {has_limit(machines.worker_link()), "worker_link"},
      {has_limit(machines.server_link()), "server_link"}};
  for (const auto& [given, field] : simulated) {
    if (!given) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("machines.", field, ": only simulated machines have it"));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunResult> RunReal(const RunSpec& spec, const RealRunOptions& options,
                                  Termination& termination) {
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) return absl::UnavailableError(absl::StrCat(options.folder, ": ", error.message()));
  const std::string job = options.folder + "/job.textproto";
  const std::string report = options.folder + "/report.json";
  const std::string log = options.folder + "/log.txt";
  std::string text;
  google::protobuf::TextFormat::PrintToString(spec.config, &text);
  RETURN_IF_ERROR(WriteText(job, text));
  std::filesystem::remove(report, error);
  // The shell sends the output to the log; Process has pipes, which nobody would read.
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Process> process,
      Process::Start({"/bin/sh", "-c", "log=$1; shift; exec \"$@\" >\"$log\" 2>&1", "sh", log,
                      options.thinwire, "train", "--config", job, "--report", report}));
  termination.SetCallback([&process] { process->Signal(SIGTERM); });
  AwaitEnd(*process);
  termination.SetCallback(nullptr);
  const ExitStatus exit = process->Poll().value_or(ExitStatus());
  if (termination.requested()) return absl::CancelledError("stopped");
  if (!exit.ok()) {
    return absl::UnavailableError(
        absl::StrCat("thinwire train: ", exit.ToString(), " (its messages are in ", log, ")"));
  }
  ASSIGN_OR_RETURN(const std::string written, ReadWholeFile(report));
  return ResultOfReport(written);
}

absl::StatusOr<RunResult> ResultOfReport(std::string_view text) {
  const json report = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object() || !report.contains("worker_rows") || !report.contains("epoch_rows")) {
    return absl::InvalidArgumentError("not a report of thinwire train");
  }
  RunResult result;
  result.set_seconds(NumberIn<double>(report, "seconds"));
  result.set_median_step_seconds(NumberIn<double>(report, "median_step_seconds"));
  result.set_steps(NumberIn<uint64_t>(report, "steps"));
  for (const json& worker : report["worker_rows"]) {
    result.set_examples(result.examples() + NumberIn<uint64_t>(worker, "examples"));
  }
  result.set_push_bytes(NumberIn<uint64_t>(report, "sent_bytes"));
  result.set_pull_bytes(NumberIn<uint64_t>(report, "received_bytes"));
  result.set_late_pushes(NumberIn<uint64_t>(report, "late_pushes"));
  result.set_parameters_crc(NumberIn<uint32_t>(report, "final_parameters_crc32c"));
  result.set_busy(BusyPart(report["worker_rows"]));
  const json staleness = report.value("staleness", json());
  const json histogram =
      staleness.is_object() ? staleness.value("histogram", json::object()) : json::object();
  for (const auto& [name, pushes] : histogram.items()) {
    uint64_t value = 0;
    if (absl::SimpleAtoi(name, &value) && pushes.is_number()) {
      (*result.mutable_staleness())[value] = pushes.get<uint64_t>();
    }
  }
  AddPoints(report["epoch_rows"], result);
  AddDecisions(report.value("precision_decisions", json()), result);
  return result;
}

}  // namespace thinwire::lab
