#include "python/streaming.h"

#include "python/arrays.h"

namespace nb = nanobind;

namespace thinwire {

using namespace nb::literals;  // NOLINT: "name"_a

PyStreaming::PyStreaming(PyClient& client)
    : client_(client), streaming_(client.client().partition()) {
  for (uint32_t i = 0; i < client.tensors().size(); ++i) {
    replica_.push_back(client.client().replica(i));
  }
}

nb::object PyStreaming::Parameters(uint32_t tensor, nb::handle self) {
  client_.CheckTensor(tensor);
  return ArrayOf(streaming_.parameters()[tensor], client_.tensors()[tensor], self);
}

void PyStreaming::Follow() {
  client_.CheckBetweenSteps("follow");
  // After a rollback, the worker goes on from the servers' parameters.
  if (!moves_.empty() || client_.next() < streaming_.state().step.value_or(Step{})) {
    streaming_.Forget();
  }
  moves_.clear();
  streaming_.Follow(client_.next(), replica_);
}

void PyStreaming::Begin(uint32_t examples, uint32_t local_steps, bool whole) {
  client_.BeginStep(examples, 1, 1);
  const std::vector<client::FragmentMove> moves =
      client::MovesOfStep(client_.job().spec.task.local, local_steps, whole);
  moves_.assign(moves.begin(), moves.end());
}

bool PyStreaming::Move(uint32_t done) {
  bool mixed = false;
  for (; !moves_.empty() && moves_.front().local_steps <= done; moves_.pop_front()) {
    const client::FragmentMove& move = moves_.front();
    const std::vector<ShardId>& shards = client_.client().fragments().shards()[move.fragment];
    if (move.mixes) {
      client_.WaitFragment(move.fragment);
      streaming_.Mix(shards, replica_, move.own);
      mixed = true;
    } else {
      streaming_.Take(shards);
      client_.ReadyFragment(move.fragment, streaming_.differences());
    }
  }
  if (mixed && moves_.empty()) streaming_.Finish(client_.next() + 1);
  return mixed;
}

void AddStreaming(nb::module_& module) {
  nb::class_<PyStreaming>(module, "StreamingSteps",
                          "Local steps of a worker whose fragments are exchanged meanwhile "
                          "(docs/streaming.md), in this order: follow; begin, and move when it is "
                          "due, for each step, which end_step and next_step of the client end.")
      .def(nb::init<PyClient&>(), "client"_a, nb::keep_alive<1, 2>())
      .def(
          "parameters",
          [](nb::handle self, uint32_t tensor) {
            return nb::cast<PyStreaming&>(self).Parameters(tensor, self);
          },
          "tensor"_a, "Returns the worker's own parameters of TENSOR as a writable array.")
      .def("follow", &PyStreaming::Follow,
           "Makes the worker's own parameters follow those of the servers, between two steps.")
      .def("begin", &PyStreaming::Begin, "examples"_a, "local_steps"_a, "whole"_a,
           "Begins a step with LOCAL_STEPS local steps, of EXAMPLES together. WHOLE: all fragments "
           "are exchanged after the last one.")
      .def_prop_ro("due", &PyStreaming::due,
                   "The number of local steps after which move has something to do; 2**32 - 1 if "
                   "all fragments of the step are exchanged.")
      .def("move", &PyStreaming::Move, "done"_a,
           "Pushes and mixes the fragments that are due after DONE local steps. Returns whether "
           "the worker's own parameters have changed.")
      .def_prop_ro("unpushed_norm", &PyStreaming::UnpushedNorm,
                   "The L1 norm of the local updates that no push has yet.");
}

}  // namespace thinwire
