// StreamingSteps: the parameters of a worker whose local steps go on while fragments of the model are
// exchanged (Streaming DiLoCo, Douillard et al. 2025, sections 2.2 and 2.3; docs/streaming.md).
//
//   Follow      x = base = r                      the first time; r: the servers' parameters
//               x = r + (x - base), base = r      after a step whose exchanges were not all mixed
//   (LocalSteps::Apply changes x)
//   Take        difference = base - x, base = x   of a fragment, before it is pushed
//   Mix         x    = a x    + (1 - a) r         of a fragment, when its r has arrived
//               base = a base + (1 - a) r         a: the weight of the worker's own parameters
//
// base - x is the sum of the local updates that no push has yet. Mix gives them the weight a, as it
// does x. Every local update is thus pushed once, and only the residual has the part of it that a
// codec loses. With a = 0 and one fragment, this is LocalSteps::Begin and Finish.
//
// r is in the client's replica, which no local step changes: the servers may send their next
// parameters as a change of it.
#ifndef THINWIRE_CLIENT_ENCODE_STREAMING_STEPS_H_
#define THINWIRE_CLIENT_ENCODE_STREAMING_STEPS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/spec/local_steps_spec.h"

namespace thinwire::client {

// A push of a fragment, or its mixing with the servers' parameters.
struct FragmentMove {
  uint32_t local_steps = 0;  // of the step that are done before
  uint32_t fragment = 0;
  bool mixes = false;  // or else pushes
  float own = 0;       // when it mixes: the weight of the worker's own parameters

  bool operator==(const FragmentMove&) const = default;
};

// Returns the moves of a step with LOCAL_STEPS local steps, which deals may have made fewer than
// those of SPEC. WHOLE: all fragments are pushed after the last local step, and the servers'
// parameters are taken over as they are.
std::vector<FragmentMove> MovesOfStep(const LocalStepsSpec& spec, uint32_t local_steps, bool whole);

// All arrays are in the host's memory. Not thread-safe.
class StreamingSteps {
 public:
  // One span of values per tensor.
  using Tensors = std::span<const std::span<float>>;
  // The state between two steps. The arrays have all tensors, one after the other.
  struct State {
    // The step for which all fragments of x were mixed with the servers' parameters; nullopt: x has
    // no values yet.
    std::optional<Step> step;
    std::vector<float> x, base;

    bool operator==(const State&) const = default;
  };

  // PARTITION must outlive this object.
  explicit StreamingSteps(const Partition& partition);
  StreamingSteps(const StreamingSteps&) = delete;
  StreamingSteps& operator=(const StreamingSteps&) = delete;

  // Makes x follow REPLICA, the parameters of STEP. Does nothing if all fragments were mixed with
  // them.
  void Follow(Step step, Tensors replica);
  // Returns x.
  Tensors parameters() const { return x_; }
  // Sets the differences of SHARDS and regards them as pushed.
  void Take(std::span<const ShardId> shards);
  // Returns the differences. Values of shards that were not taken are undefined.
  Tensors differences() const { return difference_; }
  // Mixes the values of SHARDS with those of REPLICA. OWN: the weight of x, from 0 to 1. A value
  // that is not finite becomes that of REPLICA.
  void Mix(std::span<const ShardId> shards, Tensors replica, float own);
  // Returns the L1 norm of the local updates that no push has yet.
  double UnpushedNorm() const;
  // Records that all fragments were mixed with the parameters of STEP.
  void Finish(Step step) { state_.step = step; }

  const State& state() const { return state_; }
  // Sets the state to STATE, that of another object with the same partition.
  void Restore(State state);
  // Makes x follow the servers' next parameters, whatever its values are.
  void Forget() { state_.step.reset(); }

 private:
  void Split();

  const Partition& partition_;
  State state_;
  std::vector<float> differences_;
  // One span per tensor.
  std::vector<std::span<float>> x_, base_, difference_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_STREAMING_STEPS_H_
