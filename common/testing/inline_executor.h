// InlineExecutor runs each task within the call of Post, for tests of classes whose tasks may run
// at once. Timed tasks never run.
#ifndef THINWIRE_COMMON_TESTING_INLINE_EXECUTOR_H_
#define THINWIRE_COMMON_TESTING_INLINE_EXECUTOR_H_

#include "absl/time/time.h"
#include "common/time/executor.h"

namespace thinwire {

class InlineExecutor final : public Executor {
 public:
  absl::Time Now() override { return absl::UnixEpoch(); }
  void Post(Task task) override { task(); }
  void PostAt(absl::Time, Task) override {}
  void Stop() override {}
  void Finish() override {}
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TESTING_INLINE_EXECUTOR_H_
