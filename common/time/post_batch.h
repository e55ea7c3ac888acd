// PostBatch: posts tasks to some executors, with one call of Post for all tasks of an executor. A
// call wakes a thread, which takes more time than many short tasks.
#ifndef THINWIRE_COMMON_TIME_POST_BATCH_H_
#define THINWIRE_COMMON_TIME_POST_BATCH_H_

#include <utility>
#include <vector>

#include "common/time/executor.h"

namespace thinwire {

// Not thread-safe.
class PostBatch {
 public:
  PostBatch() = default;
  // Posts the tasks. Those of one executor keep their order.
  ~PostBatch();
  PostBatch(const PostBatch&) = delete;
  PostBatch& operator=(const PostBatch&) = delete;

  // EXECUTOR must live until the batch is destroyed.
  void Add(Executor& executor, Executor::Task task);

 private:
  std::vector<std::pair<Executor*, std::vector<Executor::Task>>> tasks_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TIME_POST_BATCH_H_
