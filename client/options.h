// What a client is told.
#ifndef THINWIRE_CLIENT_OPTIONS_H_
#define THINWIRE_CLIENT_OPTIONS_H_

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/codec/codec.h"
#include "common/ids.h"
#include "common/spec/push_spec.h"

namespace thinwire {

struct ClientOptions {
  std::string job = "train";
  WorkerId worker;
  uint32_t worker_count = 1;
  uint32_t server_count = 1;
  uint64_t shard_size = 0;
  uint64_t planned_examples = 0;  // of the whole run, by all workers
  uint64_t planned_steps = 0;     // of the whole run, by each; for the warm-up only
  CodecSpec push;
  // The push codec is chosen as the run goes, from CANDIDATES and raw fp32; PUSH and the warm-up
  // say nothing then. The most exact first.
  std::optional<ChoiceRule> choose;
  std::vector<CodecSpec> candidates;
  // The codec of the masters that are read; none: what the servers publish, as it changes.
  std::optional<CodecId> pull = CodecId::kFp32;
  bool error_feedback = true;
  PushWarmup warmup;
  CorrectionOptions correction;  // momentum at the worker
  double gradient_clip = 0;      // the largest norm of all workers' gradient; 0: not clipped
  std::string residual_file;  // what a worker owes outlives its process there; empty: it does not
  // Holds the arrays with an element per parameter: replica, residuals, momentum. Outlives the
  // client.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();
  absl::Duration silence = absl::Seconds(10);  // a server silent for longer is an error
  absl::Duration heartbeat_interval =
      absl::Milliseconds(500);  // at most; also what keeps gRPC's threads awake
};

// Errors: InvalidArgument with every problem of OPTIONS.
absl::Status CheckOptions(const ClientOptions& options);

// The push codec of one group of tensors, where the client chooses it.
struct GroupCodec {
  std::string group;  // matrices, convolutions or vectors
  std::string codec;
  std::string reason;  // for a person

  bool operator==(const GroupCodec&) const = default;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_OPTIONS_H_
