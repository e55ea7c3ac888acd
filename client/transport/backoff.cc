#include "client/transport/backoff.h"

#include <algorithm>

namespace thinwire::client {
namespace {

constexpr absl::Duration kFirst = absl::Milliseconds(20);
constexpr absl::Duration kLongest = absl::Seconds(5);

}  // namespace

Backoff::Backoff(WorkerId worker, ServerId server) : longest_(kFirst) {
  std::seed_seq seed = {worker.value, server.value};
  random_.seed(seed);
}

absl::Duration Backoff::Next() {
  const absl::Duration wait = longest_ * std::uniform_real_distribution<double>(0, 1)(random_);
  longest_ = std::min(2 * longest_, kLongest);
  return wait;
}

void Backoff::Reset() { longest_ = kFirst; }

}  // namespace thinwire::client
