// The check and the text of a Deal (proto/control.proto): how the examples of the training set are dealt among
// the workers from a step on.
#ifndef THINWIRE_PROTO_DEAL_CHECK_H_
#define THINWIRE_PROTO_DEAL_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/control.pb.h"

namespace thinwire {

// Checks a deal of a job whose worker numbers are below WORKER_COUNT. FIRST_STEP is the step of the
// deal before it, or 0. Errors: InvalidArgument if the deal begins before FIRST_STEP or above
// kLastDealStep, has no members, names a worker twice, out of order or out of range, or states a
// number of batches above kMostAccumulated, or of only some members; also if it has no number, or begins an epoch and has departed workers.
absl::Status CheckDeal(const Deal& deal, uint32_t worker_count, uint64_t first_step);

// Returns a sentence about DEAL for the logs: "from step 40 on, the examples are dealt among 3
// workers, which take 5 to 8 batches in a step".
std::string DealText(const Deal& deal);

// The largest step of a deal. Larger steps could overflow when a reader adds to them.
inline constexpr uint64_t kLastDealStep = uint64_t{1} << 62;

// No step of a worker has more examples (common/spec/task_spec.cc).
inline constexpr uint32_t kMostAccumulated = 1048576;

// No job has more workers (common/spec/rule.cc).
inline constexpr uint32_t kMostDealtWorkers = 65536;

}  // namespace thinwire

#endif  // THINWIRE_PROTO_DEAL_CHECK_H_
