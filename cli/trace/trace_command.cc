#include "cli/trace/trace_command.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/files/atomic_file.h"
#include "config/command_flags.h"

namespace thinwire {
namespace {

using nlohmann::ordered_json;

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire trace merge job.json server-0.json worker-0.json worker-1.json";

constexpr char kLead[] = "server 0";

struct ProcessTrace {
  std::string process;
  ordered_json trace;
};

// The clock of `to` minus the clock of `from`.
struct Offset {
  std::string from;
  std::string to;
  int64_t offset_us = 0;
  int64_t round_trip_us = 0;
};

// The number to add to the times of a process.
struct Shift {
  int64_t shift_us = 0;
  int64_t round_trip_us = 0;  // the sum over the chain
};

bool IsClock(const ordered_json& clock) {
  return clock.is_object() && clock.contains("process") && clock["process"].is_string() &&
         clock.contains("offset_us") && clock["offset_us"].is_number_integer() &&
         clock.contains("round_trip_us") && clock["round_trip_us"].is_number_unsigned();
}

bool IsEvent(const ordered_json& event) {
  return event.is_object() && event.contains("ph") &&
         (event["ph"] == "M" || (event.contains("ts") && event["ts"].is_number_integer()));
}

bool IsTrace(const ordered_json& trace) {
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace.contains("otherData")) {
    return false;
  }
  const ordered_json& about = trace["otherData"];
  return about.is_object() && about.contains("process") && about["process"].is_string() &&
         about.contains("dropped_spans") && about["dropped_spans"].is_number_unsigned() &&
         about.contains("clocks") && about["clocks"].is_array() &&
         std::ranges::all_of(about["clocks"], IsClock) && trace["traceEvents"].is_array() &&
         std::ranges::all_of(trace["traceEvents"], IsEvent);
}

absl::StatusOr<ProcessTrace> ReadTrace(const std::string& path) {
  std::ifstream in(path);
  if (!in) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be read"));
  ordered_json trace = ordered_json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!IsTrace(trace)) {
    const bool merged = trace.is_object() && trace.contains("otherData") &&
                        trace["otherData"].contains("processes");
    const char* got = trace.is_discarded() ? "no JSON, such as an incomplete file"
                      : merged             ? "a merged trace"
                                           : "other JSON";
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": not the trace of a process (expected a file of --trace of server or "
                     "worker, got ",
                     got, ")"));
  }
  std::string process = trace["otherData"]["process"].get<std::string>();
  return ProcessTrace{std::move(process), std::move(trace)};
}

std::vector<Offset> OffsetsOf(const std::vector<ProcessTrace>& traces) {
  std::vector<Offset> offsets;
  for (const ProcessTrace& trace : traces) {
    for (const ordered_json& clock : trace.trace["otherData"]["clocks"]) {
      offsets.push_back({.from = trace.process,
                         .to = clock["process"].get<std::string>(),
                         .offset_us = clock["offset_us"].get<int64_t>(),
                         .round_trip_us = clock["round_trip_us"].get<int64_t>()});
    }
  }
  return offsets;
}

// Returns the shifts to the clock of server 0, by process, with the shortest chains.
std::map<std::string, Shift> ShiftsOf(const std::vector<Offset>& offsets) {
  std::map<std::string, Shift> shifts = {{kLead, Shift()}};
  const auto improve = [&](const std::string& process, const Shift& shift) {
    const auto [known, is_new] = shifts.try_emplace(process, shift);
    if (is_new) return true;
    if (known->second.round_trip_us <= shift.round_trip_us) return false;
    known->second = shift;
    return true;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const Offset& offset : offsets) {
      // A copy of the found shift, because `improve` may change the map.
      if (const auto to = shifts.find(offset.to); to != shifts.end()) {
        const Shift shift = {to->second.shift_us + offset.offset_us,
                             to->second.round_trip_us + offset.round_trip_us};
        changed = improve(offset.from, shift) || changed;
      }
      if (const auto from = shifts.find(offset.from); from != shifts.end()) {
        const Shift shift = {from->second.shift_us - offset.offset_us,
                             from->second.round_trip_us + offset.round_trip_us};
        changed = improve(offset.to, shift) || changed;
      }
    }
  }
  return shifts;
}

}  // namespace

CLI::App* AddTrace(CLI::App& app, TraceCommand& command) {
  CLI::App* trace = CommandFlags(app).AddSubcommand("trace", "Combines the trace files of a job");
  CommandFlags flags(*trace);
  flags.RequireSubcommand();
  flags.Footer(kExamples);
  CommandFlags merge(
      *flags.AddSubcommand("merge", "Writes one trace, with all times on the clock of server 0"));
  merge.Add("OUT", command.out, "The file to write").Required();
  merge.Add("FILE", command.files, "The files of --trace of servers and workers").Required();
  return trace;
}

absl::StatusOr<MergedTrace> MergeTraces(const std::vector<std::string>& files,
                                        const std::string& path) {
  std::vector<ProcessTrace> traces;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(ProcessTrace trace, ReadTrace(file));
    traces.push_back(std::move(trace));
  }
  std::ranges::sort(traces, {}, &ProcessTrace::process);
  const std::map<std::string, Shift> shifts = ShiftsOf(OffsetsOf(traces));
  MergedTrace merged = {.process_count = traces.size(), .unaligned = {}};
  ordered_json processes = ordered_json::array();
  int64_t first = std::numeric_limits<int64_t>::max();  // the time of the first span
  for (size_t i = 0; i < traces.size(); ++i) {
    const auto shift = shifts.find(traces[i].process);
    const bool is_aligned = shift != shifts.end();
    if (!is_aligned) merged.unaligned.push_back(traces[i].process);
    const Shift applied = is_aligned ? shift->second : Shift();
    for (ordered_json& event : traces[i].trace["traceEvents"]) {
      event["pid"] = i + 1;  // processes of several machines may have the same number
      if (event["ph"] == "M") continue;
      const int64_t time = event["ts"].get<int64_t>() + applied.shift_us;
      event["ts"] = time;
      first = std::min(first, time);
    }
    const ordered_json& about = traces[i].trace["otherData"];
    processes.push_back({{"process", traces[i].process},
                         {"dropped_spans", about["dropped_spans"]},
                         {"aligned", is_aligned},
                         {"shift_us", applied.shift_us},
                         {"round_trip_us", applied.round_trip_us}});
  }
  std::string text =
      absl::StrCat("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"processes\":", processes.dump(),
                   "},\"traceEvents\":[");
  const char* separator = "\n";
  for (ProcessTrace& trace : traces) {
    for (ordered_json& event : trace.trace["traceEvents"]) {
      if (event["ph"] != "M") event["ts"] = event["ts"].get<int64_t>() - first;
      absl::StrAppend(&text, std::exchange(separator, ",\n"),
                      event.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    }
  }
  text += "]}\n";
  AtomicFile file(path);
  file.Write(std::as_bytes(std::span(text)));
  RETURN_IF_ERROR(file.Commit());
  return merged;
}

std::string TextOf(const MergedTrace& merged, const std::string& path) {
  std::string text = absl::StrCat(path, ": the trace of ", merged.process_count,
                                  merged.process_count == 1 ? " process" : " processes");
  if (!merged.unaligned.empty()) {
    absl::StrAppend(&text, "; the clocks of ", absl::StrJoin(merged.unaligned, ", "),
                    " are not aligned, because no worker has measured them");
  }
  return text;
}

ExitCode RunTraceMerge(const TraceCommand& command, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<MergedTrace> merged = MergeTraces(command.files, command.out);
  if (!merged.ok()) {
    err << "error: " << merged.status().message() << std::endl;
    return ExitCodeOf(merged.status());
  }
  out << TextOf(*merged, command.out) << std::endl;
  return ExitCode::kOk;
}

}  // namespace thinwire
