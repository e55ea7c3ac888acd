// WorkerEvent: a line of a worker's standard output, one JSON object:
// {"event":"step","worker":0,"step":41,...}
//
//   joined    step device
//   step      step epoch loss examples seconds late_pushes waiting, the byte counts so far, and
//             loss_scale and overflowed_steps where the loss is scaled
//   epoch     epoch train_loss seconds, the byte counts so far, and from the worker that evaluates
//             test_accuracy and test_loss
//   waiting   text: whom it waits for
//   done      all totals, and push_codecs where they were chosen
//   error     message
#ifndef THINWIRE_CLI_WORKER_EVENT_H_
#define THINWIRE_CLI_WORKER_EVENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"

namespace thinwire {

// Since the worker started.
struct WorkerCounts {
  uint64_t push_bytes_raw = 0;
  uint64_t push_bytes_encoded = 0;
  uint64_t pull_bytes_raw = 0;
  uint64_t pull_bytes_encoded = 0;
  uint64_t sent_bytes = 0;  // whole messages, headers too
  uint64_t received_bytes = 0;
  uint64_t accepted_pushes = 0;
  uint64_t late_pushes = 0;
  uint64_t repeated_pushes = 0;
  uint64_t refused_pushes = 0;
  uint64_t nonfinite_gradients = 0;
  uint64_t jumped_steps = 0;
  uint64_t lost_put_backs = 0;
  uint64_t differing_replicas = 0;
  uint64_t reconnects = 0;
  uint64_t overflowed_steps = 0;  // where the loss is scaled

  WorkerCounts& operator+=(const WorkerCounts& other);
  bool operator==(const WorkerCounts&) const = default;
};

// What the pushes of a group of tensors went in, where that was chosen, and why.
struct ChosenCodec {
  std::string group;
  std::string codec;
  std::string reason;

  bool operator==(const ChosenCodec&) const = default;
};

// Only the fields of the event's kind are set.
struct WorkerEvent {
  enum class Kind { kJoined, kStep, kEpoch, kWaiting, kDone, kError };

  Kind kind = Kind::kJoined;
  WorkerId worker;
  uint64_t step = 0;   // done: how many it made
  std::string device;  // joined: where its model computes
  uint64_t epoch = 0;
  uint64_t examples = 0;  // so far
  double seconds = 0;     // so far; epoch: of that epoch
  double median_step_seconds = 0;
  double train_loss = 0;                // of the step, of the epoch, or the final one
  std::optional<double> test_accuracy;  // of the epoch, or the final one
  std::optional<double> test_loss;
  bool evaluator = false;
  std::optional<double> loss_scale;  // where the loss is scaled
  WorkerCounts counts;
  std::vector<ChosenCodec> push_codecs;
  std::string text;  // waiting, error; step: whom it waits for
};

// Errors: InvalidArgument that says what is wrong with the line.
absl::StatusOr<WorkerEvent> ParseWorkerEvent(const std::string& line);

}  // namespace thinwire

#endif  // THINWIRE_CLI_WORKER_EVENT_H_
