#include "cli/report.h"

#include <cerrno>
#include <cmath>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/field_value.h"
#include "cli/progress.h"

namespace thinwire {
namespace {

using nlohmann::ordered_json;
using State = WorkerRow::State;

template <typename Value>
ordered_json OrNull(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

void AddTraffic(const WorkerCounts& counts, ordered_json& json) {
  json["push_bytes_raw"] = counts.push_bytes_raw;
  json["push_bytes_encoded"] = counts.push_bytes_encoded;
  json["pull_bytes_raw"] = counts.pull_bytes_raw;
  json["pull_bytes_encoded"] = counts.pull_bytes_encoded;
  json["sent_bytes"] = counts.sent_bytes;
  json["received_bytes"] = counts.received_bytes;
}

ordered_json CodecsJson(const WorkerRow& row) {
  ordered_json codecs = ordered_json::array();
  for (const ChosenCodec& chosen : row.push_codecs) {
    codecs.push_back({{"group", chosen.group}, {"codec", chosen.codec}, {"reason", chosen.reason}});
  }
  return codecs;
}

ordered_json WorkerJson(const WorkerRow& row) {
  return {{"worker", row.worker.value},
          {"state", StateName(row.state)},
          {"reason", row.reason},
          {"device", row.device},
          {"steps", row.step},
          {"seconds", row.seconds},
          {"median_step_seconds", row.median_step_seconds},
          {"final_train_loss", row.train_loss},
          {"final_test_accuracy", OrNull(row.test_accuracy)},
          {"evaluator", row.evaluator},
          {"push_bytes_raw", row.counts.push_bytes_raw},
          {"push_bytes_encoded", row.counts.push_bytes_encoded},
          {"pull_bytes_raw", row.counts.pull_bytes_raw},
          {"pull_bytes_encoded", row.counts.pull_bytes_encoded},
          {"sent_bytes", row.counts.sent_bytes},
          {"received_bytes", row.counts.received_bytes},
          {"accepted_pushes", row.counts.accepted_pushes},
          {"late_pushes", row.counts.late_pushes},
          {"repeated_pushes", row.counts.repeated_pushes},
          {"refused_pushes", row.counts.refused_pushes},
          {"nonfinite_gradients", row.counts.nonfinite_gradients},
          {"jumped_steps", row.counts.jumped_steps},
          {"lost_put_backs", row.counts.lost_put_backs},
          {"differing_replicas", row.counts.differing_replicas},
          {"reconnects", row.counts.reconnects},
          {"loss_scale", OrNull(row.loss_scale)},
          {"overflowed_steps", row.counts.overflowed_steps},
          {"push_codecs", CodecsJson(row)}};
}

ordered_json EpochsJson(const RunRecord& record) {
  ordered_json rows = ordered_json::array();
  for (const auto& [epoch, row] : record.epochs()) {
    rows.push_back({{"epoch", epoch},
                    {"train_loss", row.train_loss},
                    {"test_accuracy", OrNull(row.test_accuracy)},
                    {"test_loss", OrNull(row.test_loss)}});
    AddTraffic(row.counts, rows.back());
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

// The servers' counts, where they could be asked; else what the workers were told.
void AddCounts(const RunResult& result, ordered_json& report) {
  if (!result.totals) {
    const WorkerCounts counts = result.record.Totals();
    report["accepted_pushes"] = counts.accepted_pushes;
    report["late_pushes"] = counts.late_pushes;
    report["repeated_pushes"] = counts.repeated_pushes;
    report["refused_pushes"] = counts.refused_pushes;
    report["staleness"] = nullptr;
    return;
  }
  const ServerTotals& totals = *result.totals;
  report["accepted_pushes"] = totals.accepted_pushes;
  report["late_pushes"] = totals.late_pushes;
  report["repeated_pushes"] = totals.repeated_pushes;
  report["refused_pushes"] = totals.refused_pushes;
  report["fenced_pushes"] = totals.fenced_pushes;
  report["stale_pushes"] = totals.stale_pushes;
  report["early_pushes"] = totals.early_pushes;
  report["lease_expirations"] = totals.lease_expirations;
  report["split_steps"] = totals.split_steps;
  ordered_json histogram = ordered_json::object();
  for (const auto& [value, pushes] : totals.staleness) histogram[absl::StrCat(value)] = pushes;
  report["staleness"] = {
      {"mean", totals.mean_staleness()}, {"max", totals.max_staleness()}, {"histogram", histogram}};
}

void AddRow(const char* name, const std::string& value, std::string& table) {
  if (!value.empty()) absl::StrAppendFormat(&table, "  %-20s %s\n", name, value);
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
  return text;
}

std::string PushesText(const ServerTotals& totals) {
  return absl::StrCat(totals.accepted_pushes, " accepted, ", totals.late_pushes, " late, ",
                      totals.repeated_pushes, " repeated, ", totals.refused_pushes, " refused");
}

void AddLossScales(const RunRecord& record, std::string& table) {
  for (const WorkerRow& row : record.workers()) {
    if (!row.loss_scale) continue;
    AddRow(absl::StrCat("worker ", row.worker.value).c_str(),
           absl::StrFormat("loss scale %.0f, steps that overflowed: %u", *row.loss_scale,
                           row.counts.overflowed_steps),
           table);
  }
}

}  // namespace

ordered_json ReportJson(const RunResult& result) {
  const TrainConfig& config = result.config;
  const RunRecord& record = result.record;
  const WorkerCounts counts = record.Totals();
  ordered_json report = {{"mode", config.consistency().mode()},
                         {"workers", config.consistency().workers()},
                         {"servers", config.servers()},
                         {"push", config.compression().push()},
                         {"pull", config.compression().pull()},
                         {"epochs", config.task().epochs()},
                         {"steps", record.steps()},
                         {"seconds", record.seconds()},
                         {"median_step_seconds", record.median_step_seconds()},
                         {"final_train_loss", OrNull(record.train_loss())},
                         {"final_test_accuracy", OrNull(record.test_accuracy())}};
  AddTraffic(counts, report);
  AddCounts(result, report);
  report["final_parameters_crc32c"] = OrNull(result.parameters_crc32c);
  report["interrupted"] = result.interrupted;
  report["workers_lost"] = LostJson(record);
  report["servers_lost"] = LostServersJson(record);
  report["problems"] = result.problems;
  report["epoch_rows"] = EpochsJson(record);
  report["worker_rows"] = ordered_json::array();
  for (const WorkerRow& row : record.workers()) report["worker_rows"].push_back(WorkerJson(row));
  report["config"] = EffectiveJson(config);
  return report;
}

std::string ReportTable(const RunResult& result) {
  const RunRecord& record = result.record;
  const WorkerCounts counts = record.Totals();
  const Compression& compression = result.config.compression();
  std::string table =
      absl::StrFormat("%s, workers %u, servers %u\n", result.config.consistency().mode(),
                      result.config.consistency().workers(), result.config.servers());
  AddRow("workers", WorkersText(record), table);
  AddRow("steps", absl::StrCat(record.steps()), table);
  std::string time = absl::StrFormat("%.1f s", record.seconds());
  if (const double step = record.median_step_seconds(); step > 0) {
    absl::StrAppendFormat(&time, ", %.1f ms a step", step * 1e3);
  }
  AddRow("time", time, table);
  if (const auto loss = record.train_loss())
    AddRow("train loss", absl::StrFormat("%.4f", *loss), table);
  if (const auto accuracy = record.test_accuracy())
    AddRow("test accuracy", absl::StrFormat("%.4f", *accuracy), table);
  AddLossScales(record, table);
  AddRow("pushed",
         TrafficText(counts.push_bytes_raw, counts.push_bytes_encoded, compression.push()), table);
  for (const WorkerRow& row : record.workers()) {
    for (const ChosenCodec& chosen : row.push_codecs) {
      AddRow(absl::StrCat("worker ", row.worker.value).c_str(),
             absl::StrCat(chosen.group, " pushed in ", chosen.codec, ", ", chosen.reason), table);
    }
  }
  AddRow("pulled",
         TrafficText(counts.pull_bytes_raw, counts.pull_bytes_encoded, compression.pull()), table);
  if (result.totals) {
    AddRow("pushes (shards)", PushesText(*result.totals), table);
    AddRow("staleness",
           absl::StrFormat("%.2f on average, %u at most", result.totals->mean_staleness(),
                           result.totals->max_staleness()),
           table);
  }
  if (result.parameters_crc32c) {
    AddRow("parameters crc32c", absl::StrFormat("%08x", *result.parameters_crc32c), table);
  }
  for (const auto& [epoch, row] : record.epochs()) {
    std::string text = absl::StrFormat("train loss %.4f", row.train_loss);
    if (row.test_accuracy) absl::StrAppendFormat(&text, ", test accuracy %.4f", *row.test_accuracy);
    AddRow(absl::StrCat("epoch ", epoch).c_str(), text, table);
  }
  for (const std::string& problem : result.problems) AddRow("problem", problem, table);
  return table;
}

absl::Status WriteReport(const std::string& path, const ordered_json& report) {
  std::ofstream out(path, std::ios::binary);
  out << report.dump(2, ' ', false, ordered_json::error_handler_t::replace) << '\n' << std::flush;
  if (!out) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": the report cannot be written"));
  return absl::OkStatus();
}

}  // namespace thinwire
