#include "cli/doctor/doctor_report.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "admin/html.h"
#include "cli/terminal/table.h"

namespace thinwire {
namespace {

using nlohmann::ordered_json;

std::string Milliseconds(absl::Duration time) {
  return absl::StrFormat("%.1f", absl::ToDoubleMilliseconds(time));
}

std::string Megabytes(double bytes) { return absl::StrFormat("%.3g", bytes / 1e6); }

std::string MegabytesPerSecond(std::optional<double> speed) {
  return speed.has_value() ? absl::StrFormat("%.1f", *speed / 1e6) : "-";
}

// Returns "fp8_e4m3" if both directions use this codec, "onebit, delta" for its deltas, and both
// names otherwise.
std::string NameOf(const CodecCandidate& candidate) {
  if (candidate.pull == candidate.push) return candidate.push;
  const bool is_delta = candidate.pull == "delta_" + candidate.push;
  return absl::StrCat(candidate.push, ", ", is_delta ? "delta" : candidate.pull);
}

// Returns the indices of the candidates, from the shortest predicted step to the longest.
std::vector<size_t> ByStep(const DoctorReport& report) {
  std::vector<size_t> order(report.predictions.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return report.predictions[i].step; });
  return order;
}

std::string LinksText(const DoctorReport& report) {
  if (report.links.empty()) return "";
  const std::vector<std::string> columns = {"link", "round trip ms", "up MB/s", "down MB/s"};
  std::vector<std::vector<std::string>> rows;
  for (const MeasuredLink& link : report.links) {
    rows.push_back({link.address,
                    absl::StrFormat("%.2f", absl::ToDoubleMilliseconds(link.speed.round_trip)),
                    MegabytesPerSecond(link.speed.up), MegabytesPerSecond(link.speed.down)});
  }
  return TextTable(columns, rows) + "\n";
}

std::string CodecsText(const DoctorReport& report) {
  const std::vector<std::string> columns = {"push codec", "bytes/value", "encode ns/value",
                                            "decode ns/value", "error"};
  std::vector<std::vector<std::string>> rows;
  for (const CodecCandidate& candidate : report.candidates) {
    const client::CodecCost& cost = candidate.push_cost;
    rows.push_back({candidate.push, absl::StrFormat("%.4f", cost.bytes),
                    absl::StrFormat("%.2f", cost.encode_seconds * 1e9),
                    absl::StrFormat("%.2f", cost.decode_seconds * 1e9),
                    absl::StrFormat("%.4f", candidate.error)});
  }
  return TextTable(columns, rows) + "\n";
}

std::string PredictionsText(const DoctorReport& report) {
  const std::vector<std::string> columns = {"push, pull", "MB up", "encode", "wire",
                                            "decode",     "log",   "step",   "error"};
  std::vector<std::vector<std::string>> rows;
  for (const size_t i : ByStep(report)) {
    const StepPrediction& step = report.predictions[i];
    rows.push_back({NameOf(report.candidates[i]), Megabytes(step.push_bytes),
                    Milliseconds(step.encode), Milliseconds(step.wire), Milliseconds(step.decode),
                    Milliseconds(step.log), Milliseconds(step.step),
                    absl::StrFormat("%.4f", report.candidates[i].error)});
  }
  const StepConditions& conditions = *report.conditions;
  return absl::StrCat(
      "Predicted steps in ms. Parameters: ", html::CountText(conditions.value_count),
      ", workers: ", conditions.worker_count, ", servers: ", conditions.server_count,
      ",\ncomputing: ", Milliseconds(conditions.compute), " ms.\n", TextTable(columns, rows), "\n");
}

// Returns how much faster than fp32 prediction I is, as text; "" without a prediction for fp32.
std::string GainText(const DoctorReport& report, size_t i) {
  const auto fp32 = std::ranges::find_if(report.candidates, [](const CodecCandidate& candidate) {
    return candidate.push == "fp32" && candidate.pull == "fp32";
  });
  if (fp32 == report.candidates.end()) return "";
  const absl::Duration step =
      report.predictions[static_cast<size_t>(fp32 - report.candidates.begin())].step;
  return absl::StrFormat(", %.1f times faster than fp32",
                         absl::FDivDuration(step, report.predictions[i].step));
}

std::string AdviceText(const DoctorReport& report) {
  const size_t best = Recommend(report.candidates, report.predictions);
  const CodecCandidate& candidate = report.candidates[best];
  return absl::StrCat("The most exact codec within 5 % of the fastest is ", NameOf(candidate),
                      ":\n", Milliseconds(report.predictions[best].step), " ms per step",
                      GainText(report, best),
                      ".\nSet in the job file:\n  compression { push: ", candidate.push,
                      " pull: ", candidate.pull, " }\n");
}

ordered_json MillisecondsJson(absl::Duration time) { return absl::ToDoubleMilliseconds(time); }

ordered_json PredictionsJson(const DoctorReport& report) {
  ordered_json list = ordered_json::array();
  for (const size_t i : ByStep(report)) {
    const StepPrediction& step = report.predictions[i];
    list.push_back({{"push", report.candidates[i].push},
                    {"pull", report.candidates[i].pull},
                    {"push_bytes", step.push_bytes},
                    {"pull_bytes", step.pull_bytes},
                    {"encode_ms", MillisecondsJson(step.encode)},
                    {"wire_ms", MillisecondsJson(step.wire)},
                    {"decode_ms", MillisecondsJson(step.decode)},
                    {"log_ms", MillisecondsJson(step.log)},
                    {"step_ms", MillisecondsJson(step.step)}});
  }
  return list;
}

}  // namespace

std::string DoctorText(const DoctorReport& report) {
  std::string text = LinksText(report);
  if (report.disk.has_value()) {
    absl::StrAppendFormat(&text, "disk: %.2f ms per flush, %.0f MB/s\n\n",
                          absl::ToDoubleMilliseconds(report.disk->flush),
                          report.disk->bytes_per_second / 1e6);
  }
  if (report.measured_step.has_value()) {
    absl::StrAppend(&text, "step of the running job: ", Milliseconds(*report.measured_step),
                    " ms\n\n");
  }
  if (!report.conditions.has_value()) absl::StrAppend(&text, CodecsText(report));
  for (const std::string& note : report.notes) absl::StrAppend(&text, note, "\n");
  if (!report.conditions.has_value()) return text;
  if (!report.notes.empty()) text += "\n";
  return absl::StrCat(text, PredictionsText(report), AdviceText(report));
}

ordered_json DoctorJson(const DoctorReport& report) {
  ordered_json links = ordered_json::array();
  for (const MeasuredLink& link : report.links) {
    ordered_json entry = {{"address", link.address},
                          {"round_trip_ms", MillisecondsJson(link.speed.round_trip)}};
    if (link.speed.up.has_value()) entry["up_bytes_per_second"] = *link.speed.up;
    if (link.speed.down.has_value()) entry["down_bytes_per_second"] = *link.speed.down;
    links.push_back(std::move(entry));
  }
  ordered_json codecs = ordered_json::array();
  for (const CodecCandidate& candidate : report.candidates) {
    codecs.push_back({{"push", candidate.push},
                      {"pull", candidate.pull},
                      {"push_bytes_per_value", candidate.push_cost.bytes},
                      {"pull_bytes_per_value", candidate.pull_cost.bytes},
                      {"push_encode_ns", candidate.push_cost.encode_seconds * 1e9},
                      {"push_decode_ns", candidate.push_cost.decode_seconds * 1e9},
                      {"pull_encode_ns", candidate.pull_cost.encode_seconds * 1e9},
                      {"pull_decode_ns", candidate.pull_cost.decode_seconds * 1e9},
                      {"error", candidate.error}});
  }
  ordered_json json = {{"links", std::move(links)}, {"codecs", std::move(codecs)}};
  if (report.disk.has_value()) {
    json["disk"] = {{"flush_ms", MillisecondsJson(report.disk->flush)},
                    {"bytes_per_second", report.disk->bytes_per_second}};
  }
  if (report.measured_step.has_value()) {
    json["measured_step_ms"] = MillisecondsJson(*report.measured_step);
  }
  if (report.conditions.has_value()) {
    const CodecCandidate& best =
        report.candidates[Recommend(report.candidates, report.predictions)];
    json["parameters"] = report.conditions->value_count;
    json["compute_ms"] = MillisecondsJson(report.conditions->compute);
    json["predictions"] = PredictionsJson(report);
    json["recommended"] = {{"push", best.push}, {"pull", best.pull}};
  }
  json["notes"] = report.notes;
  return json;
}

}  // namespace thinwire
