#include "experiments/cluster/peer_exchange.h"

#include <future>

namespace thinwire::lab {

void ForEach(TaskPool& pool, size_t count, const std::function<void(size_t)>& run) {
  std::vector<std::future<void>> calls;
  calls.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    calls.push_back(pool.Submit<void>([&run, i](LearningTask&) { run(i); }));
  }
  for (std::future<void>& call : calls) call.get();
}

}  // namespace thinwire::lab
