// JobThreads: the executors of the jobs of a process, which run on threads.
#ifndef THINWIRE_SERVER_JOB_JOB_THREADS_H_
#define THINWIRE_SERVER_JOB_JOB_THREADS_H_

#include <cstdint>

#include "common/time/thread_executor.h"
#include "common/time/thread_pool.h"
#include "common/time/unix_clock.h"
#include "server/job/job.h"

namespace thinwire {

class JobThreads {
 public:
  // SHARD_THREAD_COUNT: the number of threads that run the shards; 0: one per core.
  explicit JobThreads(uint32_t shard_thread_count = 0) : shards_(shard_thread_count) {}

  // This object must outlive the jobs with these executors.
  JobExecutors executors() {
    return {.threads = threads_,
            .background = background_,
            .shards = shards_,
            .unix_clock = unix_clock_};
  }

 private:
  static constexpr int kBackgroundNice = 10;

  Threads threads_;
  Threads background_{kBackgroundNice};
  ThreadPool shards_;
  UnixClock unix_clock_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_JOB_THREADS_H_
