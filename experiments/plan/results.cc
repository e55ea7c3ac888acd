#include "experiments/plan/results.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/json_util.h>
#include <openssl/sha.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/files/atomic_file.h"
#include "common/files/read_file.h"
#include "common/text/quoted.h"
#include "experiments/plan/experiment_check.h"

namespace thinwire::lab {
namespace {

using nlohmann::ordered_json;

constexpr char kDescription[] = "experiment.json";
constexpr size_t kKeyBytes = 16;  // of a hash of 32 bytes

// Returns the bytes of MESSAGE. Equal messages have equal bytes, also with maps.
std::string Serialized(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&out);
  }
  return bytes;
}

ordered_json JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  return status.ok() ? ordered_json::parse(text) : ordered_json::object();
}

// Returns VALUE as text; "nan" if it is not given.
std::string NumberIfGiven(bool given, double value) {
  return ExactNumber(given ? value : std::numeric_limits<double>::quiet_NaN());
}

// Returns whether `density` determines the number of values in a push.
bool IsSparse(const PushSpec& push) {
  if (push.choose.has_value() || push.adaptive.has_value()) return false;
  return push.codec.id == CodecId::kTopK || push.codec.id == CodecId::kRandomK;
}

ordered_json Description(const Experiment& experiment) {
  ordered_json axes = ordered_json::array();
  for (const Axis& axis : experiment.axis()) {
    ordered_json settings = ordered_json::array();
    for (const Setting& setting : axis.setting()) settings.push_back(setting.name());
    axes.push_back({{"name", axis.name()}, {"settings", settings}});
  }
  ordered_json figures = ordered_json::array();
  for (const Figure& figure : experiment.figure()) figures.push_back(JsonOf(figure));
  ordered_json claims = ordered_json::array();
  for (const Claim& claim : experiment.claim()) claims.push_back(JsonOf(claim));
  return {{"name", experiment.name()},
          {"title", experiment.title()},
          {"question", experiment.question()},
          {"quality", HasLossOnly(experiment) ? "loss" : "accuracy"},
          {"target_accuracy", experiment.target_accuracy()},
          {"target_loss", experiment.target_loss()},
          {"axes", axes},
          {"figures", figures},
          {"claims", claims}};
}

// Returns the name of the experiment that the text of experiment.json describes; "" if it has none.
std::string NameIn(const std::string& text) {
  const ordered_json found = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!found.is_object() || !found.contains("name") || !found["name"].is_string()) return "";
  return found["name"];
}

std::string ResultPath(const std::string& folder, const std::string& key) {
  return absl::StrCat(folder, "/runs/", key, ".result");
}

std::string Row(const std::vector<std::string>& cells) {
  return absl::StrCat(absl::StrJoin(cells, ","), "\n");
}

std::string RunsTable(const Plan& plan, std::span<const RunResult> results) {
  std::vector<std::string> header = {kRunColumn};
  for (const Axis& axis : plan.experiment.axis()) header.push_back(axis.name());
  header.insert(header.end(), std::begin(kResultColumns), std::end(kResultColumns));
  std::string table = Row(header);
  for (size_t run = 0; run < results.size(); ++run) {
    const RunResult& result = results[run];
    const RunResult::Point last =
        result.point().empty() ? RunResult::Point() : result.point(result.point_size() - 1);
    std::vector<std::string> cells = {absl::StrCat(run)};
    for (const std::string& setting : plan.runs[run].settings) cells.push_back(setting);
    cells.push_back(absl::StrCat(plan.runs[run].seed));
    cells.push_back(ExactNumber(result.seconds()));
    cells.push_back(ExactNumber(result.median_step_seconds()));
    for (const uint64_t count : {result.steps(), result.updates(), result.examples(),
                                 result.push_bytes(), result.pull_bytes()}) {
      cells.push_back(absl::StrCat(count));
    }
    cells.push_back(ExactNumber(result.busy()));
    cells.push_back(NumberIfGiven(last.has_test_accuracy(), last.test_accuracy()));
    cells.push_back(NumberIfGiven(last.has_test_loss(), last.test_loss()));
    cells.push_back(absl::StrCat(result.late_pushes()));
    cells.push_back(absl::StrCat(result.dropped_pushes()));
    cells.push_back(absl::StrFormat("%08x", result.parameters_crc()));
    cells.push_back(NumberIfGiven(IsSparse(plan.runs[run].spec.job.push),
                                  plan.runs[run].spec.job.push.codec.density));
    cells.push_back(
        NumberIfGiven(result.has_sent_values(), static_cast<double>(result.sent_values())));
    cells.push_back(
        NumberIfGiven(result.has_model_values(), static_cast<double>(result.model_values())));
    table += Row(cells);
  }
  return table;
}

std::string CurvesTable(std::span<const RunResult> results) {
  std::string table =
      "run,seconds,step,examples,updates,push_bytes,pull_bytes,train_loss,test_loss,"
      "test_accuracy,noise_scale\n";
  for (size_t run = 0; run < results.size(); ++run) {
    for (const RunResult::Point& point : results[run].point()) {
      table += Row({absl::StrCat(run), ExactNumber(point.seconds()), absl::StrCat(point.step()),
                    absl::StrCat(point.examples()), absl::StrCat(point.updates()),
                    absl::StrCat(point.push_bytes()), absl::StrCat(point.pull_bytes()),
                    ExactNumber(point.train_loss()),
                    NumberIfGiven(point.has_test_loss(), point.test_loss()),
                    NumberIfGiven(point.has_test_accuracy(), point.test_accuracy()),
                    point.has_noise_scale() ? ExactNumber(point.noise_scale()) : ""});
    }
  }
  return table;
}

// Returns the table of a histogram of each run.
template <typename Histogram>
std::string HistogramTable(std::span<const RunResult> results, const char* header,
                           Histogram histogram_of) {
  std::string table = header;
  for (size_t run = 0; run < results.size(); ++run) {
    const auto& histogram = histogram_of(results[run]);
    const std::map<uint64_t, uint64_t> sorted(histogram.begin(), histogram.end());
    for (const auto& [value, count] : sorted)
      table += absl::StrCat(run, ",", value, ",", count, "\n");
  }
  return table;
}

// Returns the table of the decisions of adaptive precision. A removed candidate has no prediction.
std::string DecisionsTable(std::span<const RunResult> results) {
  std::string table =
      "run,step,next_step,seconds,accuracy,candidate,predicted_accuracy,deviation,"
      "gain_per_second,gain_deviation,seconds_per_step,encoding_error,chosen,layers\n";
  for (size_t run = 0; run < results.size(); ++run) {
    for (const PrecisionDecision& decision : results[run].decision()) {
      for (const PrecisionDecision::Candidate& candidate : decision.candidate()) {
        const bool predicted = candidate.has_predicted_accuracy();
        table += Row({absl::StrCat(run), absl::StrCat(decision.step()),
                      absl::StrCat(decision.next_step()), ExactNumber(decision.seconds()),
                      ExactNumber(decision.accuracy()), candidate.name(),
                      NumberIfGiven(predicted, candidate.predicted_accuracy()),
                      NumberIfGiven(predicted, candidate.deviation()),
                      NumberIfGiven(predicted, candidate.gain_per_second()),
                      NumberIfGiven(predicted, candidate.gain_deviation()),
                      ExactNumber(candidate.seconds_per_step()),
                      NumberIfGiven(candidate.has_encoding_error(), candidate.encoding_error()),
                      candidate.name() == decision.chosen() ? "1" : "0",
                      decision.has_layers() ? decision.layers() : "all"});
      }
    }
  }
  return table;
}

// Returns the table of the changes of the rule.
std::string RuleChangesTable(std::span<const RunResult> results) {
  std::string table = "run,step,seconds,backup,slack\n";
  for (size_t run = 0; run < results.size(); ++run) {
    for (const RuleChange& change : results[run].rule_change()) {
      table += Row({absl::StrCat(run), absl::StrCat(change.step()), ExactNumber(change.seconds()),
                    change.has_backup() ? absl::StrCat(change.backup()) : "",
                    change.has_slack() ? absl::StrCat(change.slack()) : ""});
    }
  }
  return table;
}

}  // namespace

absl::Status PrepareFolder(const std::string& folder, const Experiment& experiment) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::UnavailableError(absl::StrCat(folder, ": ", error.message()));
  const std::string path = absl::StrCat(folder, "/", kDescription);
  const absl::StatusOr<std::string> text = ReadWholeFile(path);
  if (!text.ok() && !std::filesystem::is_empty(folder, error)) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder, ": has other files (expected an empty folder or one with ", kDescription, ")"));
  }
  if (text.ok()) {
    const std::string name = NameIn(*text);
    if (name != experiment.name()) {
      return absl::FailedPreconditionError(
          absl::StrCat(folder, ": the folder of another experiment (expected ",
                       Quoted(experiment.name()), ", got ", Quoted(name), ")"));
    }
  }
  std::filesystem::create_directories(folder + "/runs", error);
  if (error) return absl::UnavailableError(absl::StrCat(folder, "/runs: ", error.message()));
  return WriteText(path, Description(experiment).dump(2) + "\n");
}

std::string ResultKey(const RunSpec& spec, std::string_view identity) {
  std::vector<std::string> parts = {Serialized(spec.config), Serialized(spec.machines),
                                    absl::StrCat(spec.tests), std::string(identity)};
  if (const std::string& trace = spec.machines.compute().trace(); !trace.empty()) {
    parts.push_back(ReadWholeFile(std::filesystem::path(spec.folder) / trace).value_or(""));
  }
  std::string text;
  for (const std::string& part : parts) absl::StrAppend(&text, part.size(), " ", part);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), kKeyBytes));
}

std::optional<RunResult> StoredResult(const std::string& folder, const std::string& key) {
  const absl::StatusOr<std::string> bytes = ReadWholeFile(ResultPath(folder, key));
  RunResult result;
  if (!bytes.ok() || !result.ParseFromString(*bytes)) return std::nullopt;
  return result;
}

absl::Status StoreResult(const std::string& folder, const std::string& key,
                         const RunResult& result) {
  return WriteText(ResultPath(folder, key), Serialized(result));
}

absl::Status WriteTables(const std::string& folder, const Plan& plan,
                         std::span<const RunResult> results) {
  RETURN_IF_ERROR(WriteText(folder + "/runs.csv", RunsTable(plan, results)));
  RETURN_IF_ERROR(WriteText(folder + "/curves.csv", CurvesTable(results)));
  RETURN_IF_ERROR(
      WriteText(folder + "/staleness.csv",
                HistogramTable(
                    results, "run,staleness,pushes\n",
                    [](const RunResult& result) -> const auto& { return result.staleness(); })));
  RETURN_IF_ERROR(WriteText(folder + "/decisions.csv", DecisionsTable(results)));
  RETURN_IF_ERROR(WriteText(folder + "/rule_changes.csv", RuleChangesTable(results)));
  return WriteText(folder + "/value_age.csv",
                   HistogramTable(
                       results, "run,age,values\n",
                       [](const RunResult& result) -> const auto& { return result.value_age(); }));
}

absl::Status WriteText(const std::string& path, absl::string_view text) {
  AtomicFile file(path);
  file.Write(std::as_bytes(std::span(text.data(), text.size())));
  return file.Commit();
}

std::string ExactNumber(double value) {
  if (std::isnan(value)) return "nan";  // without the sign, which has no meaning
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), value);
  return std::string(text, end.ptr);
}

}  // namespace thinwire::lab
