#include "common/time/trace.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files/atomic_file.h"

namespace thinwire {
namespace {

using nlohmann::ordered_json;

ordered_json NameEvent(const char* kind, int process, int thread, const std::string& name) {
  return {
      {"name", kind}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

ordered_json SpanEvent(const Tracer::Span& span, int process, int thread) {
  const int64_t begin = absl::ToUnixMicros(span.begin);
  ordered_json labels = ordered_json::object();
  if (span.labels.step) labels["step"] = span.labels.step->value;
  if (span.labels.shard) labels["shard"] = span.labels.shard->value;
  if (span.labels.worker) labels["worker"] = span.labels.worker->value;
  return {{"name", span.name},
          {"cat", span.lane},
          {"ph", "X"},
          {"ts", begin},
          {"dur", absl::ToUnixMicros(span.end) - begin},
          {"pid", process},
          {"tid", thread},
          {"args", std::move(labels)}};
}

}  // namespace

void Tracer::Add(const Span& span) {
  absl::MutexLock lock(&mu_);
  if (spans_.size() < max_span_count_) {
    spans_.push_back(span);
  } else {
    spans_[added_count_ % max_span_count_] = span;
  }
  ++added_count_;
}

void Tracer::AddClockSample(const std::string& peer, absl::Time sent, absl::Time received,
                            absl::Time peer_time) {
  const ClockOffset sample = {.offset = peer_time - (sent + (received - sent) / 2),
                              .round_trip = received - sent,
                              .measured = received};
  absl::MutexLock lock(&mu_);
  const auto [known, is_new] = offsets_.try_emplace(peer, sample);
  const bool is_better = sample.round_trip < known->second.round_trip ||
                         received - known->second.measured > kOffsetAge;
  if (!is_new && is_better) known->second = sample;
}

std::string Tracer::Json() const {
  absl::MutexLock lock(&mu_);
  ordered_json clocks = ordered_json::array();
  for (const auto& [peer, offset] : offsets_) {
    clocks.push_back({{"process", peer},
                      {"offset_us", absl::ToInt64Microseconds(offset.offset)},
                      {"round_trip_us", absl::ToInt64Microseconds(offset.round_trip)}});
  }
  const ordered_json about = {{"process", process_},
                              {"dropped_spans", added_count_ - spans_.size()},
                              {"clocks", std::move(clocks)}};
  const int process = getpid();
  // Only one event at a time is a JSON object, which needs more memory than its text.
  std::string text =
      absl::StrCat("{\"displayTimeUnit\":\"ms\",\"otherData\":", about.dump(), ",\"traceEvents\":[",
                   NameEvent("process_name", process, 0, process_).dump());
  std::map<std::pair<std::string, uint64_t>, int> lanes;
  for (const Span& span : spans_) lanes.try_emplace({span.lane, span.lane_number});
  int lane_count = 0;
  for (auto& [lane, thread] : lanes) {
    thread = ++lane_count;
    const std::string name = absl::StrCat(lane.first, " ", lane.second);
    absl::StrAppend(&text, ",\n", NameEvent("thread_name", process, thread, name).dump());
  }
  for (const Span& span : spans_) {
    const int lane = lanes.at({span.lane, span.lane_number});
    absl::StrAppend(&text, ",\n", SpanEvent(span, process, lane).dump());
  }
  text += "]}\n";
  return text;
}

absl::Status Tracer::Write(const std::string& path) const {
  const std::string text = Json();
  AtomicFile file(path);
  file.Write(std::as_bytes(std::span(text)));
  return file.Commit();
}

void TraceSpan::Begin(const char* lane, const char* name, const SpanLabels& labels) {
  span_ = {.lane = lane,
           .lane_number = static_cast<uint64_t>(gettid()),
           .name = name,
           .begin = tracer_->Now(),
           .end = {},
           .labels = labels};
}

void TraceSpan::End() {
  span_.end = tracer_->Now();
  tracer_->Add(span_);
}

}  // namespace thinwire
