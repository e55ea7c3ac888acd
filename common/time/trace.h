// Tracer records the times of a process's activities (spans) and writes them as a trace file: JSON
// in the Trace Event Format, which https://ui.perfetto.dev shows.
//
//   TraceSpan span(tracer, "training", "step", {.step = step});   // from here to the end of the block
//
// A span belongs to a lane, which the viewer shows as one line: a thread, or a numbered activity of
// its own. Spans of a lane must be nested or apart. The file also has the offsets to the clocks of
// other processes, with which `thinwire trace merge` aligns the files of a job. A process that
// writes no trace has no Tracer, so a span then costs a comparison with null.
#ifndef THINWIRE_COMMON_TIME_TRACE_H_
#define THINWIRE_COMMON_TIME_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/time/clock.h"

namespace thinwire {

// The step, the shard and the worker of a span, as far as it has them.
struct SpanLabels {
  std::optional<Step> step;
  std::optional<ShardId> shard;
  std::optional<WorkerId> worker;
};

// Thread-safe.
class Tracer {
 public:
  // When this many spans are recorded, each new span replaces the oldest one. They take about 12
  // MB.
  static constexpr size_t kMaxSpanCount = 131'072;
  // A measured clock offset is used for this long, unless one with a shorter round trip follows.
  static constexpr absl::Duration kOffsetAge = absl::Minutes(1);

  struct Span {
    const char* lane = "";  // `lane` and `name` are literals
    uint64_t lane_number = 0;
    const char* name = "";
    absl::Time begin;
    absl::Time end;
    SpanLabels labels;
  };

  // PROCESS is a name such as "worker 3". The time of CLOCK counts from the Unix epoch; CLOCK must
  // outlive the tracer.
  Tracer(std::string process, Clock& clock, size_t max_span_count = kMaxSpanCount)
      : process_(std::move(process)), clock_(clock), max_span_count_(max_span_count) {
    spans_.reserve(max_span_count);  // so that no span waits until the others are moved
  }

  absl::Time Now() { return clock_.Now(); }

  void Add(const Span& span) ABSL_LOCKS_EXCLUDED(mu_);
  // Records that PEER, a name as PROCESS, answered at its time PEER_TIME a call that lasted from
  // SENT to RECEIVED.
  void AddClockSample(const std::string& peer, absl::Time sent, absl::Time received,
                      absl::Time peer_time) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the content of the trace file.
  std::string Json() const ABSL_LOCKS_EXCLUDED(mu_);
  // Writes the trace file. Errors: those of the file system, with the path.
  absl::Status Write(const std::string& path) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // The clock of a peer minus the clock of this process. The error is at most half of the round
  // trip.
  struct ClockOffset {
    absl::Duration offset;
    absl::Duration round_trip;
    absl::Time measured;
  };

  const std::string process_;
  Clock& clock_;
  const size_t max_span_count_;

  mutable absl::Mutex mu_;
  std::vector<Span> spans_ ABSL_GUARDED_BY(mu_);  // a ring when it is full
  uint64_t added_count_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, ClockOffset> offsets_ ABSL_GUARDED_BY(mu_);  // by the name of the peer
};

// Records a span of the calling thread, from the construction to the destruction of this object.
class TraceSpan {
 public:
  // TRACER may be null; it must outlive the span.
  TraceSpan(Tracer* tracer, const char* lane, const char* name, const SpanLabels& labels = {})
      : tracer_(tracer) {
    if (tracer_ != nullptr) Begin(lane, name, labels);
  }
  ~TraceSpan() {
    if (tracer_ != nullptr) End();
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  void Begin(const char* lane, const char* name, const SpanLabels& labels);
  void End();

  Tracer* const tracer_;
  Tracer::Span span_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TIME_TRACE_H_
