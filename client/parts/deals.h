// Deals: the part of a client that knows which worker computes which examples. A program that deals
// the examples of a data set among the workers (docs/training.md) asks it before each step.
//
//   client->deals().BeginEpoch(0, first_step);
//   const auto news = client->deals().Wait(step, known.size());
#ifndef THINWIRE_CLIENT_PARTS_DEALS_H_
#define THINWIRE_CLIENT_PARTS_DEALS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/parts/core_thread.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"

namespace thinwire::client {

class Deals {
 public:
  explicit Deals(CoreThread& thread) : thread_(thread) {}

  // Blocks until the lead has announced all deals that begin at or before STEP, and returns the
  // deals with numbers above KNOWN. A deal that begins an epoch replaces earlier ones. Errors: those
  // of Client::WaitTensor. REQUIRES: Join has succeeded.
  absl::StatusOr<std::vector<Deal>> Wait(Step step, size_t known);
  // Returns whether Wait for STEP returns at once. Thread-safe.
  bool IsDealt(Step step) const;
  // Tells the lead that the next step belongs to EPOCH of the data set, from 0, which begins at
  // BEGIN. The lead drops the deals that no epoch in progress needs. Thread-safe.
  void BeginEpoch(uint64_t epoch, Step begin);

 private:
  CoreThread& thread_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_PARTS_DEALS_H_
