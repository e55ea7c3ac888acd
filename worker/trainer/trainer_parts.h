// TrainerOptions and TrainerParts: the settings and the objects that a Trainer (trainer.h) and its
// parts use.
#ifndef THINWIRE_WORKER_TRAINER_TRAINER_PARTS_H_
#define THINWIRE_WORKER_TRAINER_TRAINER_PARTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "client/client.h"
#include "common/base/ids.h"
#include "common/spec/local_steps_spec.h"
#include "common/time/clock.h"
#include "common/time/trace.h"
#include "worker/batches/sampler.h"
#include "worker/datasets/dataset.h"
#include "worker/models/model.h"
#include "worker/trainer/events.h"
#include "worker/trainer/loss_scale.h"
#include "worker/trainer/model_output.h"

namespace thinwire {

struct TrainerOptions {
  WorkerId worker;
  uint64_t epochs = 1;
  std::string device = "cpu";  // name of the model's device, for messages
  absl::Duration delay;        // artificial delay before each step's first push
  // The sampler's batch is that of a step: batch_size * accumulate * local.count examples, unless a
  // deal changes the number of accumulated batches.
  uint32_t batch_size = 0;  // examples of one forward and backward pass; 0: those of a step
  uint32_t accumulate = 1;  // passes per gradient
  LocalStepsSpec local;
  // The servers and this worker keep state that a later run continues from.
  bool keeps_state = false;
  bool averages = false;  // the servers keep averages of the parameters, which the evaluator tests
  std::string job = "train";                // the job's name, for the loss-scale file
  std::optional<LossScaling> loss_scaling;  // unset: the loss is not scaled
  bool stop_on_divergence = true;
  std::string divergence_advice;                  // what usually helps; "" if unknown
  uint64_t trial_steps = 0;                       // with push: adaptive, the steps of a trial
  std::optional<ModelOutputOptions> output;       // unset: no model file is written
  absl::Duration write_again = absl::Seconds(5);  // after a failed attempt to write it
};

// The objects that a Trainer uses. All of them must outlive the Trainer.
struct TrainerParts {
  Client& client;  // without a device if there are local steps
  Model& model;
  const Dataset& train;
  const Dataset& test;
  Sampler& sampler;
  EventPrinter& events;
  Clock& clock;
  // Blocks until a stop was requested or LONGEST has passed, and returns whether it was requested.
  // Called before each step with 0; if it returns true, the worker leaves the job before its last
  // step. If Client::Stop was called as well, the worker also leaves during a wait.
  std::function<bool(absl::Duration longest)> stop;
  Tracer* tracer = nullptr;  // null: no trace
};

// The lane of the training thread in a trace.
inline constexpr char kTrainingLane[] = "training";

enum class TrainingEnding {
  kFinished,
  kStopped,     // `stop` returned true, and the worker left the job
  kDiverged,    // the run diverged, and the worker left the job
  kRetired,     // an operator has removed the worker, and it left the job
  kNotWritten,  // `stop` returned true after a failed attempt to write the model file
};

// Stopwatch measures the time between Start() and Stop(). A new Stopwatch is stopped. Not
// thread-safe.
class Stopwatch {
 public:
  // `clock` must outlive the Stopwatch.
  explicit Stopwatch(Clock& clock) : clock_(clock) {}

  void Start() {
    started_ = clock_.Now();
    running_ = true;
  }
  void Stop() {
    before_ = elapsed();
    running_ = false;
  }
  // Returns the total time between calls of Start() and Stop(), up to now.
  absl::Duration elapsed() const {
    return running_ ? before_ + (clock_.Now() - started_) : before_;
  }

 private:
  Clock& clock_;
  absl::Time started_;
  absl::Duration before_;
  bool running_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_TRAINER_PARTS_H_
