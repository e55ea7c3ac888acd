#include "proto/config_check.h"

#include <bit>
#include <cstdint>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/partition.h"
#include "proto/compression_check.h"
#include "proto/diverging_pairs.h"
#include "proto/loss_scaling.h"

namespace thinwire {
namespace {

// A server keeps a row per worker and shard: a number beyond this is a slip of the hand.
constexpr uint32_t kMostWorkers = 65536;
// As server/core/optimizer/schedule.cc has it.
constexpr double kLargestPower = 1e6;

void CheckConsistency(const Consistency& c, Findings& findings) {
  findings.WantName("mode", c.mode(), kModeNames);
  findings.WantAtLeast(1, "workers", c.workers(), kMostWorkers);
  findings.WantAtLeast(1, "fold_every", c.fold_every());
  findings.WantSeconds("lease_seconds", c.lease_seconds());
  findings.WantSeconds("start_timeout_seconds", c.start_timeout_seconds());
  if (!findings.whole()) return;
  const auto only_in = [&](bool unset, const std::string& field, const char* value,
                           const char* modes) {
    findings.Want(unset, field, absl::StrCat(value, ", for it is of mode ", modes, " only"),
                  absl::StrCat("it in mode ", c.mode()));
  };
  const bool by_push = c.mode() == "ssp" || c.mode() == "async";
  only_in(c.backup() == 0 || c.mode() == "backup", "backup", "0", "backup");
  only_in(c.slack() == 0 || c.mode() == "ssp", "slack", "0", "ssp");
  only_in(c.fold_every() <= 1 || by_push, "fold_every", "1", "ssp and async");
  only_in(!c.ordered_fold() || c.mode() == "sync", "ordered_fold", "false", "sync");
  findings.Want(c.mode() != "backup" || c.backup() < c.workers(), "backup",
                absl::StrCat("less than workers (", c.workers(), ")"), c.backup());
}

void CheckDecay(const Optimization& o, Findings& findings) {
  for (int i = 0; i < o.decay_at_size(); ++i) {
    const std::string field = absl::StrCat("decay_at[", i, "]");
    findings.WantPart(field, o.decay_at(i));
    if (i > 0) {
      findings.Want(o.decay_at(i) >= o.decay_at(i - 1), field,
                    absl::StrCat("no less than the one before (", o.decay_at(i - 1), ")"),
                    o.decay_at(i));
    }
  }
  if (!findings.whole()) return;
  findings.Want(o.decay_at_size() == 0 || o.schedule() == "step", "decay_at",
                "nothing, for it is of schedule step only", absl::StrCat("it with ", o.schedule()));
}

void CheckOptimization(const Optimization& o, Findings& findings) {
  const auto decay = [&](const std::string& field, double value) {
    findings.Want(value >= 0 && value < 1, field, "a number from 0 to below 1", value);
  };
  // The servers compute in fp32; what it cannot hold would become zero or infinite there.
  using Float = std::numeric_limits<float>;
  const auto not_negative = [&](const std::string& field, double value) {
    findings.Want(value >= 0 && value <= Float::max(), field,
                  "a number of 0 or more that a float holds", value);
  };
  findings.WantName("optimizer", o.optimizer(), kOptimizerNames);
  not_negative("learning_rate", o.learning_rate());
  decay("momentum", o.momentum());
  decay("beta1", o.beta1());
  decay("beta2", o.beta2());
  findings.Want(o.epsilon() >= Float::min() && o.epsilon() <= Float::max(), "epsilon",
                "a number above 0 that a float holds", o.epsilon());
  not_negative("weight_decay", o.weight_decay());
  findings.WantName("schedule", o.schedule(), kScheduleNames);
  findings.WantPart("warmup", o.warmup());
  CheckDecay(o, findings);
  findings.WantPart("decay_factor", o.decay_factor());
  findings.Want(o.power() >= 0 && o.power() <= kLargestPower, "power", "a number from 0 to 1000000",
                o.power());
  findings.WantName("gradient_selection", o.gradient_selection(), kGradientSelectionNames);
  findings.WantDensity("selection_density", o.selection_density());
  findings.WantName("selection_rest", o.selection_rest(), kSelectionRestNames);
  if (!findings.whole()) return;
  const double unset = Optimization::default_instance().selection_density();
  findings.Want(o.selection_density() == unset || o.gradient_selection() == "gtopk",
                "selection_density", "nothing, for it is of gradient_selection gtopk only",
                absl::StrCat("it with ", o.gradient_selection()));
  findings.Want(o.selection_rest() == "server" || o.gradient_selection() == "gtopk",
                "selection_rest", "server, for workers is of gradient_selection gtopk only",
                absl::StrCat("workers with ", o.gradient_selection()));
}

void CheckPairs(const Consistency& consistency, const Optimization& optimization,
                const Compression& compression, Findings& findings) {
  if (!findings.whole()) return;
  // Elsewhere a push is in no round, or its worker reads past the round's answer.
  findings.Want(optimization.selection_rest() == "server" || consistency.mode() == "sync",
                "selection_rest", "server, for workers is of mode sync only",
                absl::StrCat("workers with mode ", consistency.mode()));
  for (const PairProblem& problem : DivergingPairs(consistency, optimization, compression)) {
    findings.Add(problem.field, problem.text);
  }
}

bool IsDevice(const std::string& device) {
  uint32_t number = 0;
  if (absl::StartsWith(device, "cuda:")) return absl::SimpleAtoi(device.substr(5), &number);
  return device == "auto" || device == "cpu";
}

void CheckLossScale(const Task& t, Findings& findings) {
  const uint32_t scale = t.loss_scale();
  findings.Want(scale == 0 || (std::has_single_bit(scale) && scale <= kLargestLossScale),
                "loss_scale", "0 or a power of two up to 16777216", scale);
  findings.WantAtLeast(1, "loss_scale_interval", t.loss_scale_interval());
  if (!findings.whole()) return;
  const uint32_t unset = Task::default_instance().loss_scale_interval();
  findings.Want(t.loss_scale_interval() == unset || LossScalingOf(t).has_value(),
                "loss_scale_interval", "nothing, for it is of precision fp16 or a loss_scale only",
                absl::StrCat("it with precision ", t.precision()));
}

void CheckTask(const Task& t, Findings& findings) {
  findings.WantName("model", t.model(), kModelNames);
  findings.WantName("dataset", t.dataset(), kDatasetNames);
  findings.Want(!t.data_dir().empty(), "data_dir", "a folder", "\"\"");
  findings.WantAtLeast(1, "batch_size", t.batch_size(), 1u << 20);
  findings.WantAtLeast(1, "epochs", t.epochs());
  findings.Want(IsDevice(t.device()), "device", "auto, cpu or cuda:N",
                absl::StrCat("\"", t.device(), "\""));
  findings.WantAtLeast(1, "threads", t.threads(), 1024);
  findings.WantName("precision", t.precision(), kPrecisionNames);
  CheckLossScale(t, findings);
  if (!findings.whole()) return;
  if (t.model() == "torchscript") {
    findings.Want(!t.model_file().empty(), "model_file", "a file, for model torchscript", "\"\"");
  } else {
    findings.Want(t.model_file().empty(), "model_file",
                  "nothing, for it is of model torchscript only",
                  absl::StrCat("it with ", t.model()));
  }
}

void CheckJob(const std::string& job, Findings& findings) {
  bool good = !job.empty() && job.size() <= 63 && job.front() != '-' && job.back() != '-';
  for (char c : job) good = good && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-');
  findings.Want(good, "job", "1 to 63 of a-z, 0-9 and inner -", absl::StrCat("\"", job, "\""));
}

// "host:port" or "[::1]:port".
void CheckAddress(const std::string& field, const std::string& address, uint32_t least_port,
                  Findings& findings) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  const bool good = colon != std::string::npos && colon > 0 &&
                    absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= least_port &&
                    port <= 65535;
  findings.Want(good, field, absl::StrCat("host:port, the port from ", least_port, " to 65535"),
                absl::StrCat("\"", address, "\""));
}

absl::Status AsStatus(const std::vector<std::string>& problems) {
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

}  // namespace

std::vector<std::string> ConfigProblems(const ServerConfig& config, const FieldPlaces& places,
                                        CheckScope scope) {
  Findings findings(places, scope);
  CheckJob(config.job(), findings);
  findings.WantAtLeast(1, "servers", config.servers(), kMostServers);
  if (findings.whole()) {
    findings.Want(config.server() < config.servers(), "server",
                  absl::StrCat("less than servers (", config.servers(), ")"), config.server());
  }
  CheckAddress("listen", config.listen(), 0, findings);
  findings.WantAtLeast(0, "threads", config.threads(), 1024);
  CheckConsistency(config.consistency(), findings);
  CheckOptimization(config.optimization(), findings);
  CheckCompression(config.compression(), findings);
  CheckPairs(config.consistency(), config.optimization(), config.compression(), findings);
  return findings.Take();
}

std::vector<std::string> ConfigProblems(const WorkerConfig& config, const FieldPlaces& places,
                                        CheckScope scope) {
  Findings findings(places, scope);
  CheckJob(config.job(), findings);
  findings.WantAtLeast(1, "workers", config.workers(), kMostWorkers);
  if (findings.whole()) {
    findings.Want(config.worker() < config.workers(), "worker",
                  absl::StrCat("less than workers (", config.workers(), ")"), config.worker());
    findings.Want(config.servers_size() > 0, "servers", "the address of every server", "none");
  }
  for (int i = 0; i < config.servers_size(); ++i) {
    CheckAddress(absl::StrCat("servers[", i, "]"), config.servers(i), 1, findings);
  }
  findings.WantSeconds("silence_seconds", config.silence_seconds());
  findings.Want(config.delay_seconds() >= 0 && config.delay_seconds() <= 3600, "delay_seconds",
                "a number of seconds from 0 to 3600", config.delay_seconds());
  CheckTask(config.task(), findings);
  CheckCompression(config.compression(), findings);
  return findings.Take();
}

std::vector<std::string> ConfigProblems(const TrainConfig& config, const FieldPlaces& places,
                                        CheckScope scope) {
  Findings findings(places, scope);
  findings.WantAtLeast(1, "servers", config.servers(), kMostServers);
  CheckConsistency(config.consistency(), findings);
  CheckOptimization(config.optimization(), findings);
  CheckCompression(config.compression(), findings);
  CheckPairs(config.consistency(), config.optimization(), config.compression(), findings);
  CheckTask(config.task(), findings);
  for (int i = 0; i < config.straggler_size(); ++i) {
    const std::string field = absl::StrCat("straggler[", i, "]");
    const auto straggler = ParseStraggler(config.straggler(i));
    if (!straggler.ok()) {
      findings.Add(field, absl::StrCat(": ", straggler.status().message()));
    } else if (findings.whole()) {
      findings.Want(straggler->worker.value < config.consistency().workers(), field,
                    absl::StrCat("a worker below workers (", config.consistency().workers(), ")"),
                    straggler->worker.value);
    }
  }
  findings.WantSeconds("silence_seconds", config.silence_seconds());
  return findings.Take();
}

absl::Status CheckServerConfig(const ServerConfig& config, const FieldPlaces& places) {
  return AsStatus(ConfigProblems(config, places, CheckScope::kWhole));
}

absl::Status CheckWorkerConfig(const WorkerConfig& config, const FieldPlaces& places) {
  return AsStatus(ConfigProblems(config, places, CheckScope::kWhole));
}

absl::Status CheckTrainConfig(const TrainConfig& config, const FieldPlaces& places) {
  return AsStatus(ConfigProblems(config, places, CheckScope::kWhole));
}

absl::StatusOr<Straggler> ParseStraggler(std::string_view given) {
  const std::string text(given);
  const size_t colon = text.find(':');
  Straggler straggler;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(text.substr(0, colon), &straggler.worker.value) ||
      !absl::ParseDuration(text.substr(colon + 1), &straggler.delay) ||
      straggler.delay < absl::ZeroDuration() || straggler.delay > absl::Hours(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("want WORKER:DELAY, such as 3:50ms, got \"", text, "\""));
  }
  return straggler;
}

}  // namespace thinwire
