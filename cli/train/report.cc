#include "cli/train/report.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "admin/traffic.h"
#include "cli/train/progress.h"
#include "common/files/atomic_file.h"
#include "common/spec/rule.h"
#include "config/effective.h"
#include "config/parts/consistency.h"
#include "proto/counters.h"
#include "proto/precision.pb.h"
#include "proto/precision_text.h"

namespace thinwire {
namespace {

std::string ModeName(const JobConfig& config) {
  return Consistency::Mode::Value_Name(config.consistency().mode());
}
std::string PushName(const JobConfig& config) {
  return Compression::Codec::Value_Name(config.compression().push());
}
std::string PullName(const JobConfig& config) {
  return Compression::Codec::Value_Name(config.compression().pull());
}

using nlohmann::ordered_json;
using State = WorkerRow::State;

template <typename Value>
ordered_json OrNull(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

void AddToJson(const WorkerCounters& counters, ordered_json& json) {
  ForEachCounter(counters, [&](const std::string& name, uint64_t value) { json[name] = value; });
}

ordered_json CodecsJson(const WorkerRow& row) {
  ordered_json codecs = ordered_json::array();
  for (const WorkerEvent::PushCodec& chosen : row.push_codecs) {
    codecs.push_back(
        {{"group", chosen.group()}, {"codec", chosen.codec()}, {"reason", chosen.reason()}});
  }
  return codecs;
}

ordered_json WorkerJson(const WorkerRow& row) {
  ordered_json json = {{"worker", row.worker.value},
                       {"state", StateName(row.state)},
                       {"reason", row.reason},
                       {"device", row.device},
                       {"steps", row.step},
                       {"examples", row.examples},
                       {"seconds", row.seconds},
                       {"median_step_seconds", row.median_step_seconds},
                       {"final_train_loss", OrNull(row.train_loss)},
                       {"final_test_accuracy", OrNull(row.test_accuracy)},
                       {"final_test_loss", OrNull(row.test_loss)},
                       {"evaluator", row.evaluator},
                       {"loss_scale", OrNull(row.loss_scale)},
                       {"lost_residual_l1", OrNull(row.lost_residual_l1)},
                       {"push_codecs", CodecsJson(row)}};
  AddToJson(row.counters, json);
  return json;
}

ordered_json EpochsJson(const RunRecord& record) {
  ordered_json rows = ordered_json::array();
  for (const auto& [epoch, row] : record.epochs()) {
    rows.push_back({{"epoch", epoch},
                    {"seconds", row.seconds},
                    {"train_loss", OrNull(row.train_loss)},
                    {"test_accuracy", OrNull(row.test_accuracy)},
                    {"test_loss", OrNull(row.test_loss)}});
    AddToJson(row.counters, rows.back());
  }
  return rows;
}

ordered_json LostJson(const RunRecord& record) {
  ordered_json rows = ordered_json::array();
  for (const WorkerRow& row : record.workers()) {
    if (row.state == State::kLost)
      rows.push_back({{"worker", row.worker.value}, {"reason", row.reason}});
  }
  return rows;
}

ordered_json LostServersJson(const RunRecord& record) {
  ordered_json rows = ordered_json::array();
  for (const LostServer& lost : record.lost_servers()) {
    rows.push_back({{"server", lost.server.value}, {"reason", lost.reason}});
  }
  return rows;
}

ordered_json RestartsJson(const RunRecord& record) {
  ordered_json rows = ordered_json::array();
  for (const Restart& restart : record.restarts()) {
    rows.push_back({{"process", restart.process}, {"reason", restart.reason}});
  }
  return rows;
}

// Returns the noise g of SGD (Smith and Le 2018, arXiv 1710.06451, section 4, with momentum), or
// nullopt if the optimizer is another one or no worker joined:
//
//   g = learning_rate / (1 - momentum) (N / B - 1)
//
// N / B, the examples of an epoch divided by those of an update, is the number of updates in an
// epoch. If the batch has grown, B is the last one.
std::optional<double> SgdNoise(const TrainResult& result) {
  using Optimizer = Optimization::Optimizer;
  const Optimization& optimization = result.config.optimization();
  const Consistency& consistency = result.config.consistency();
  const int optimizer = optimization.optimizer();
  const bool has_momentum = optimizer == Optimizer::momentum || optimizer == Optimizer::nesterov;
  if (result.record.planned_steps() == 0 || (optimizer != Optimizer::sgd && !has_momentum)) {
    return std::nullopt;
  }
  const double momentum = has_momentum ? optimization.momentum() : 0;
  const double rate = optimization.learning_rate() / (1 - momentum);
  if (result.totals && result.totals->batch.examples > 0) {
    const BatchStatus& batch = result.totals->batch;
    return rate * (1.0 * batch.epoch_examples / batch.examples - 1);
  }
  const Rule rule = RuleOf(consistency);
  const double pushes = rule.fold == Fold::kRound ? rule.quorum : rule.fold_every;
  const double updates = static_cast<double>(result.record.planned_steps()) /
                         result.config.task().epochs() * consistency.workers() / pushes;
  return rate * (updates - 1);
}

ordered_json DecisionsJson(const std::vector<PrecisionDecision>& decisions) {
  ordered_json list = ordered_json::array();
  for (const PrecisionDecision& decision : decisions) {
    ordered_json candidates = ordered_json::array();
    for (const auto& candidate : decision.candidate()) {
      const auto given = [](bool is_given, double value) {
        return OrNull(is_given ? std::optional(value) : std::nullopt);
      };
      const bool predicted = candidate.has_predicted_accuracy();
      candidates.push_back(
          {{"name", candidate.name()},
           {"predicted_accuracy", given(predicted, candidate.predicted_accuracy())},
           {"deviation", given(predicted, candidate.deviation())},
           {"seconds_per_step", candidate.seconds_per_step()},
           {"gain_per_second", given(predicted, candidate.gain_per_second())},
           {"gain_deviation", given(predicted, candidate.gain_deviation())},
           {"encoding_error", given(candidate.has_encoding_error(), candidate.encoding_error())}});
    }
    list.push_back({{"step", decision.step()},
                    {"next_step", decision.next_step()},
                    {"accuracy", decision.accuracy()},
                    {"chosen", decision.chosen()},
                    {"layers", decision.has_layers() ? decision.layers() : "all"},
                    {"candidates", candidates}});
  }
  return list;
}

// Adds the sums of the workers' counters and, if known, the sums of the servers' counters to
// `report`. If workers and servers have a counter of the same name, such as accepted_pushes,
// `report` contains the servers' sum.
void AddCounters(const TrainResult& result, ordered_json& report) {
  AddToJson(result.record.Totals(), report);
  report["sgd_noise"] = OrNull(SgdNoise(result));
  report["staleness"] = nullptr;
  report["final_rule"] = nullptr;
  report["noise_scale"] = nullptr;
  report["saturated_shards"] = nullptr;
  report["updates"] = nullptr;
  report["batch"] = nullptr;
  report["accumulate"] = nullptr;
  report["precision_decisions"] = nullptr;
  if (!result.totals) return;
  if (!result.totals->decisions.empty()) {
    report["precision_decisions"] = DecisionsJson(result.totals->decisions);
  }
  report["updates"] = result.totals->updates;
  if (const BatchStatus& batch = result.totals->batch; batch.examples > 0) {
    report["batch"] = batch.examples;
    report["accumulate"] = batch.accumulate;
  }
  report["saturated_shards"] = result.totals->saturated_shards;
  report["final_rule"] = {{"mode", result.totals->rule.mode},
                          {"backup", OrNull(result.totals->rule.backup)},
                          {"slack", OrNull(result.totals->rule.slack)}};
  report["noise_scale"] = OrNull(result.totals->noise.scale());
  result.totals->ForEachCounter(
      [&](const std::string& name, uint64_t value) { report[name] = value; });
  ordered_json histogram = ordered_json::object();
  for (const auto& [value, pushes] : result.totals->staleness) {
    histogram[absl::StrCat(value)] = pushes;
  }
  report["staleness"] = {{"mean", result.totals->mean_staleness()},
                         {"max", result.totals->max_staleness()},
                         {"histogram", histogram}};
}

Traffic TrafficOf(const TrainResult& result) {
  return TrafficOf(result.record.Totals(), absl::Seconds(result.record.seconds()),
                   result.price_per_gb, /*whole_run=*/true);
}

// Returns a number with its noun, such as "1 server" or "2 servers".
std::string CountText(uint32_t count, const char* noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

void AddRow(const char* name, const std::string& value, std::string& table) {
  if (!value.empty()) absl::StrAppendFormat(&table, "  %-24s %s\n", name, value);
}

std::string TrafficText(uint64_t raw, uint64_t encoded, const std::string& codec) {
  if (raw == 0) return "";
  const std::string text = absl::StrCat(BytesText(encoded), " as ", codec);
  const std::string saving = SavingText(raw, encoded);
  return saving.empty() ? text : absl::StrCat(text, " (", saving, ")");
}

std::string WorkersText(const RunRecord& record) {
  std::string text =
      absl::StrCat(record.CountOf(State::kDone), " of ", record.workers().size(), " done");
  if (const uint32_t lost = record.CountOf(State::kLost))
    absl::StrAppend(&text, ", ", lost, " lost");
  if (const uint32_t stopped = record.CountOf(State::kStopped))
    absl::StrAppend(&text, ", ", stopped, " stopped");
  if (const uint32_t diverged = record.CountOf(State::kDiverged))
    absl::StrAppend(&text, ", ", diverged, " diverged");
  return text;
}

// Returns the processes that were started again, each with its number of restarts if that is above
// one, and the workers' rejoins: "server 1 (2), worker 0; 8 rejoins".
std::string RestartsText(const RunRecord& record) {
  std::map<std::string, uint32_t> counts;
  for (const Restart& restart : record.restarts()) ++counts[restart.process];
  std::vector<std::string> processes;
  for (const auto& [process, count] : counts) {
    processes.push_back(count == 1 ? process : absl::StrCat(process, " (", count, ")"));
  }
  std::string text = absl::StrJoin(processes, ", ");
  if (const uint64_t rejoins = record.Totals().rejoins()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", rejoins,
                    rejoins == 1 ? " rejoin" : " rejoins");
  }
  return text;
}

// Returns a count with its verb in the past tense: "1 step was", "2 steps were".
std::string WereText(uint64_t count, const char* noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? " was" : "s were");
}

// Returns the work that was lost: "12 steps were repeated after 1 rollback; 3 residuals were
// dropped". Every worker follows a rollback, so the row has the numbers of the worker with the
// most. ADAPTIVE: the job has push: adaptive, so rollbacks are not only failures.
std::string RollbacksText(const RunRecord& record, bool adaptive) {
  uint64_t rollbacks = 0, steps = 0;
  for (const WorkerRow& row : record.workers()) {
    rollbacks = std::max(rollbacks, row.counters.rollbacks());
    steps = std::max(steps, row.counters.repeated_steps());
  }
  std::string text;
  if (rollbacks > 0) {
    text = absl::StrCat(WereText(steps, "step"), " repeated after ", rollbacks,
                        rollbacks == 1 ? " rollback" : " rollbacks");
  }
  if (rollbacks > 0 && adaptive) text += ", with the returns of adaptive precision";
  if (const uint64_t dropped = record.Totals().dropped_residuals()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", WereText(dropped, "residual"), " dropped");
  }
  return text;
}

// Adds a row for each decision: "fp8_e5m2 up to step 1100, predicted: fp32 71.2 +- 1.0 % at ...".
void AddDecisions(const std::vector<PrecisionDecision>& decisions, std::string& table) {
  for (const PrecisionDecision& decision : decisions) {
    AddRow(absl::StrCat("decision at ", decision.step()).c_str(),
           absl::StrCat(ChosenText(decision), " up to step ", decision.next_step(),
                        ", predicted: ", CandidatesText(decision)),
           table);
  }
}

std::string PushesText(const ServerTotals& totals) {
  const StatusReply& counters = totals.counters;
  return absl::StrCat(counters.accepted_pushes(), " accepted, ", counters.late_pushes(), " late, ",
                      counters.repeated_pushes(), " repeated, ", counters.refused_pushes(),
                      " refused");
}

void AddLossScales(const RunRecord& record, std::string& table) {
  for (const WorkerRow& row : record.workers()) {
    if (!row.loss_scale) continue;
    AddRow(absl::StrCat("worker ", row.worker.value).c_str(),
           absl::StrFormat("loss scale %.0f, %u overflowed steps", *row.loss_scale,
                           row.counters.overflowed_steps()),
           table);
  }
}

void AddLostResiduals(const RunRecord& record, std::string& table) {
  for (const WorkerRow& row : record.workers()) {
    if (row.lost_residual_l1.value_or(0) == 0) continue;
    AddRow(absl::StrCat("worker ", row.worker.value).c_str(),
           absl::StrFormat("lost a residual of L1 norm %g", *row.lost_residual_l1), table);
  }
}

absl::Status DirectWrite(const std::string& path, const std::string& text,
                         std::ios::openmode mode) {
  std::ofstream out(path, std::ios::binary | mode);
  out << text << std::flush;
  if (!out) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot write"));
  return absl::OkStatus();
}

}  // namespace

ordered_json ReportJson(const TrainResult& result) {
  const JobConfig& config = result.config;
  const RunRecord& record = result.record;
  ordered_json report = {{"mode", ModeName(config)},
                         {"workers", config.consistency().workers()},
                         {"most_workers", record.workers().size()},
                         {"servers", config.servers()},
                         {"push", PushName(config)},
                         {"pull", PullName(config)},
                         {"epochs", config.task().epochs()},
                         {"resumed_step", OrNull(result.resumed_step)},
                         {"steps", record.steps()},
                         {"seconds", record.seconds()},
                         {"median_step_seconds", record.median_step_seconds()},
                         {"final_train_loss", OrNull(record.train_loss())},
                         {"final_test_accuracy", OrNull(record.test_accuracy())},
                         {"final_test_loss", OrNull(record.test_loss())},
                         {"output", nullptr},
                         {"output_epoch", nullptr}};
  if (const WorkerRow* writer = record.writer()) {
    report["output"] = writer->output;
    report["output_epoch"] = OrNull(writer->kept_epoch);
  }
  AddCounters(result, report);
  report["traffic"] = TrafficJson(TrafficOf(result));
  report["final_parameters_crc32c"] = OrNull(result.parameters_crc32c);
  report["interrupted"] = result.interrupted;
  report["diverged"] = record.diverged();
  report["workers_lost"] = LostJson(record);
  report["servers_lost"] = LostServersJson(record);
  report["restarts"] = RestartsJson(record);
  report["problems"] = result.problems;
  report["epoch_rows"] = EpochsJson(record);
  report["worker_rows"] = ordered_json::array();
  for (const WorkerRow& row : record.workers()) report["worker_rows"].push_back(WorkerJson(row));
  report["config"] = EffectiveJson(config);
  return report;
}

std::string ReportTable(const TrainResult& result) {
  const RunRecord& record = result.record;
  const WorkerCounters totals = record.Totals();
  std::string table = absl::StrCat(ModeName(result.config), ", ",
                                   CountText(result.config.consistency().workers(), "worker"), ", ",
                                   CountText(result.config.servers(), "server"), "\n");
  AddRow("workers", WorkersText(record), table);
  AddRow("restarts", RestartsText(record), table);
  const bool adaptive = result.config.compression().push() == Compression::Codec::adaptive;
  AddRow("rollbacks", RollbacksText(record, adaptive), table);
  if (result.resumed_step) AddRow("resumed from step", absl::StrCat(*result.resumed_step), table);
  AddRow("steps", absl::StrCat(record.steps()), table);
  std::string time = absl::StrFormat("%.1f s", record.seconds());
  if (const double step = record.median_step_seconds(); step > 0) {
    absl::StrAppendFormat(&time, ", %.1f ms per step", step * 1e3);
  }
  AddRow("time", time, table);
  if (const auto loss = record.train_loss()) {
    const bool of_epoch = record.CountOf(State::kDone) > 0;
    AddRow(of_epoch ? "train loss (epoch mean)" : "train loss (last steps)",
           absl::StrFormat("%.4f", *loss), table);
  }
  if (const auto loss = record.test_loss())
    AddRow("test loss", absl::StrFormat("%.4f", *loss), table);
  if (const auto accuracy = record.test_accuracy())
    AddRow("test accuracy", absl::StrFormat("%.4f", *accuracy), table);
  if (result.config.task().loss() == Task::Loss::script)
    AddRow("test accuracy", "no accuracy (loss: script)", table);
  if (const WorkerRow* writer = record.writer()) {
    AddRow("model",
           absl::StrCat(writer->output,
                        writer->kept_epoch ? absl::StrCat(", of epoch ", *writer->kept_epoch) : ""),
           table);
  }
  AddLossScales(record, table);
  AddLostResiduals(record, table);
  AddRow("pushed",
         TrafficText(totals.push_bytes_raw(), totals.push_bytes_encoded(), PushName(result.config)),
         table);
  if (result.totals) AddDecisions(result.totals->decisions, table);
  for (const WorkerRow& row : record.workers()) {
    for (const WorkerEvent::PushCodec& chosen : row.push_codecs) {
      AddRow(absl::StrCat("worker ", row.worker.value).c_str(),
             absl::StrCat(chosen.group(), " pushed as ", chosen.codec(), ": ", chosen.reason()),
             table);
    }
  }
  AddRow("pulled",
         TrafficText(totals.pull_bytes_raw(), totals.pull_bytes_encoded(), PullName(result.config)),
         table);
  for (const auto& [name, value] : TrafficFacts(TrafficOf(result))) {
    AddRow(name.c_str(), value, table);
  }
  if (result.totals) {
    AddRow("shard pushes", PushesText(*result.totals), table);
    AddRow("staleness",
           absl::StrFormat("mean %.2f, max %u", result.totals->mean_staleness(),
                           result.totals->max_staleness()),
           table);
  }
  if (result.totals && result.totals->batch.examples > 0) {
    AddRow("updates", absl::StrCat(result.totals->updates), table);
    AddRow("last batch", BatchText(result.totals->batch), table);
  }
  if (result.totals && result.totals->counters.clipped_updates() > 0) {
    AddRow("clipped updates",
           absl::StrCat(result.totals->counters.clipped_updates(), " of ", result.totals->updates),
           table);
  }
  if (result.totals && result.totals->noise.scale()) {
    AddRow("noise scale", NoiseScaleText(result.totals->noise), table);
  }
  if (result.parameters_crc32c) {
    AddRow("parameters crc32c", absl::StrFormat("%08x", *result.parameters_crc32c), table);
  }
  for (const auto& [epoch, row] : record.epochs()) {
    std::string text =
        row.train_loss ? absl::StrFormat("train loss %.4f", *row.train_loss) : "no train loss";
    if (row.test_loss) absl::StrAppendFormat(&text, ", test loss %.4f", *row.test_loss);
    if (row.test_accuracy) absl::StrAppendFormat(&text, ", test accuracy %.4f", *row.test_accuracy);
    AddRow(absl::StrCat("epoch ", epoch).c_str(), text, table);
  }
  for (const std::string& problem : result.problems) AddRow("problem", problem, table);
  return table;
}

absl::Status CheckReportPath(const std::string& path) {
  if (IsRegularOrAbsent(path)) return AtomicFile(path).status();
  return DirectWrite(path, "", std::ios::app);
}

absl::Status WriteReport(const std::string& path, const ordered_json& report) {
  const std::string text =
      report.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  if (!IsRegularOrAbsent(path)) return DirectWrite(path, text, std::ios::trunc);
  AtomicFile file(path);
  file.Write(std::as_bytes(std::span(text)));
  return file.Commit();
}

}  // namespace thinwire
