// Train makes what a worker needs to train, its device, data, model, client and Trainer, and trains.
#ifndef THINWIRE_WORKER_PROCESS_TRAIN_H_
#define THINWIRE_WORKER_PROCESS_TRAIN_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/spec/task_spec.h"
#include "common/time/executor.h"
#include "common/time/trace.h"
#include "worker/models/model.h"
#include "worker/process/setup.h"
#include "worker/process/termination.h"
#include "worker/trainer/events.h"
#include "worker/trainer/trainer.h"

namespace thinwire {

// THREADS makes the threads of the client and is the clock. TRACER may be null. Both must outlive
// the calls of the transport. PAGE: see ClientOptions. Errors: those of the device, the data, the
// model, the client and Trainer::Run. REQUIRES: setup.worker has a value.
absl::StatusOr<Trainer::Ending> Train(const Setup& setup, ExecutorFactory& threads,
                                      Termination& termination, EventPrinter& events,
                                      Tracer* tracer, const std::string& page);

// Returns the test result of the model in the file PATH.
absl::StatusOr<BatchResult> EvaluateModelFile(const TaskSpec& task, const std::string& path);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_PROCESS_TRAIN_H_
