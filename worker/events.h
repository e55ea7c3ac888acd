// Events: what a worker tells, one JSON object a line, for a program that reads its standard output
// (docs/training.md lists every field). Everything for people goes to the log instead.
//
//   {"event":"step","worker":0,"step":41,"epoch":0,"loss":0.53,"examples":1312,"seconds":1.93,...}
#ifndef THINWIRE_WORKER_EVENTS_H_
#define THINWIRE_WORKER_EVENTS_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/options.h"
#include "common/ids.h"
#include "worker/loss_scale.h"
#include "worker/model.h"

namespace thinwire {

// How far a worker is. Losses are means over examples; a mean of none is null in the line.
struct StepEvent {
  Step step;
  uint64_t epoch = 0;
  BatchResult since_last;  // what was trained on since the last line
  uint64_t examples = 0;   // all that were trained on
  absl::Duration elapsed;  // of training
  ClientStatistics statistics;
  std::optional<LossScale> loss_scale;  // where the loss is scaled
  std::string waiting;
};

struct EpochEvent {
  uint64_t epoch = 0;
  BatchResult train;                // of this worker's steps of the epoch
  std::optional<BatchResult> test;  // by the evaluator alone
  absl::Duration elapsed;
  ClientStatistics statistics;  // until now
};

struct DoneEvent {
  uint64_t steps = 0;
  uint64_t examples = 0;
  absl::Duration elapsed;
  absl::Duration median_step;
  BatchResult last_train;           // of the last epoch
  std::optional<BatchResult> test;  // by the evaluator alone
  ClientStatistics statistics;
  std::optional<LossScale> loss_scale;  // where the loss is scaled
  std::vector<GroupCodec> push_codecs;  // as last chosen; empty where they are not chosen
};

// Thread-safe.
class EventLog {
 public:
  // OUT outlives the log. Each line is flushed.
  EventLog(std::ostream& out, WorkerId worker) : worker_(worker), out_(out) {}

  // DEVICE is where the model computes, for a person.
  void Joined(Step step, const std::string& device);
  void Stepped(const StepEvent& event);
  void FinishedEpoch(const EpochEvent& event);
  // TEXT is Client::waiting(); empty when nothing is waited for any more.
  void Waits(const std::string& text);
  void Done(const DoneEvent& event);
  void Failed(const absl::Status& status);

 private:
  void Write(const nlohmann::ordered_json& line);

  const WorkerId worker_;
  absl::Mutex mu_;
  std::ostream& out_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_EVENTS_H_
