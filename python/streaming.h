// StreamingSteps of the Python module thinwire._client: local steps of a worker whose fragments are
// exchanged meanwhile (client/encode/streaming_steps.h, docs/streaming.md).
#ifndef THINWIRE_PYTHON_STREAMING_H_
#define THINWIRE_PYTHON_STREAMING_H_

#include <nanobind/nanobind.h>

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "client/encode/streaming_steps.h"
#include "python/py_client.h"

namespace thinwire {

// Not thread-safe, as PyClient. The GIL is held in all calls.
class [[gnu::visibility("hidden")]] PyStreaming {  // as the classes of nanobind
 public:
  // CLIENT, whose job has streaming local steps, must outlive this object.
  explicit PyStreaming(PyClient & client);

  // Returns the worker's own parameters of TENSOR as a writable array, in which local steps are
  // taken. SELF: the Python object of this one.
  nanobind::object Parameters(uint32_t tensor, nanobind::handle self);
  // Makes the worker's own parameters follow those of the servers. REQUIRES: the replica has those of
  // the next step, and no step has begun.
  void Follow();
  // Begins a step with LOCAL_STEPS local steps, of EXAMPLES together. WHOLE: all fragments are
  // exchanged after the last one.
  void Begin(uint32_t examples, uint32_t local_steps, bool whole);
  // Returns the number of local steps after which Move has something to do; UINT32_MAX if all
  // fragments of the step are exchanged.
  uint32_t due() const { return moves_.empty() ? UINT32_MAX : moves_.front().local_steps; }
  // Pushes and mixes the fragments that are due after DONE local steps. Returns whether the worker's
  // own parameters have changed. Raises as PyClient::WaitAll.
  bool Move(uint32_t done);
  // Returns the L1 norm of the local updates that no push has yet.
  double UnpushedNorm() const { return streaming_.UnpushedNorm(); }

 private:
  PyClient& client_;
  std::vector<std::span<float>> replica_;
  client::StreamingSteps streaming_;
  std::deque<client::FragmentMove> moves_;  // of the present step
};

void AddStreaming(nanobind::module_& module);

}  // namespace thinwire

#endif  // THINWIRE_PYTHON_STREAMING_H_
