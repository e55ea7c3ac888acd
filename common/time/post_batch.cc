#include "common/time/post_batch.h"

#include <algorithm>

namespace thinwire {

PostBatch::~PostBatch() {
  for (auto& [executor, tasks] : tasks_) {
    if (tasks.size() == 1) {
      executor->Post(std::move(tasks[0]));
      continue;
    }
    executor->Post([tasks = std::move(tasks)]() mutable {
      for (Executor::Task& task : tasks) {
        task();
        task = nullptr;  // releases what it owns
      }
    });
  }
}

void PostBatch::Add(Executor& executor, Executor::Task task) {
  const auto is_executor = [&](const auto& entry) { return entry.first == &executor; };
  auto place = std::ranges::find_if(tasks_, is_executor);
  if (place == tasks_.end()) {
    tasks_.emplace_back().first = &executor;
    place = tasks_.end() - 1;
  }
  place->second.push_back(std::move(task));
}

}  // namespace thinwire
