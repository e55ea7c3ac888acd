// TrainingSummary writes the figures of a training run for TensorBoard (summary_writer.h).
//
//   train/loss, train/learning_rate
//   train/examples_per_second, train/step_seconds     means since the previous figures
//   test/accuracy, test/loss
//   bytes/push_raw, bytes/push_encoded, bytes/pull_raw, bytes/pull_encoded     sums since the start
//   servers/staleness     histogram of the accepted pushes since the start
//
// To add a chart, add a field to TrainingFigures and a line to Add().
#ifndef THINWIRE_ADMIN_TRAINING_SUMMARY_H_
#define THINWIRE_ADMIN_TRAINING_SUMMARY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "admin/summary_writer.h"
#include "common/time/clock.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

struct TrainingFigures {
  uint64_t step = 0;
  std::optional<double> loss;
  std::optional<double> learning_rate;
  uint64_t examples = 0;  // examples trained on since the start
  double seconds = 0;     // time of training since the start, without evaluation
  WorkerCounters counters;
  // The servers' accepted pushes since the start: staleness -> number of pushes; empty: not known.
  std::map<uint64_t, uint64_t> staleness;
};

// Not thread-safe.
class TrainingSummary {
 public:
  // Arguments and errors: those of SummaryWriter::Create.
  static absl::StatusOr<std::unique_ptr<TrainingSummary>> Create(const std::string& folder,
                                                                 Clock& clock);

  // Writes the figures of a step. Skips them if step, loss and staleness are those of the previous
  // figures.
  void Add(const TrainingFigures& figures);
  // Writes the result of a test at STEP. ACCURACY is unset if the job has none (loss: script).
  void AddTest(uint64_t step, std::optional<double> accuracy, double loss);
  // Passes everything to the system. Returns the first error so far. After an error, nothing is
  // written.
  absl::Status Flush() { return writer_->Flush(); }

 private:
  explicit TrainingSummary(std::unique_ptr<SummaryWriter> writer) : writer_(std::move(writer)) {}

  const std::unique_ptr<SummaryWriter> writer_;
  std::optional<TrainingFigures> previous_;
};

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_TRAINING_SUMMARY_H_
