// ShardHost: one shard, the strand it lives on, and its newest encoded parameters.
#ifndef THINWIRE_SERVER_EDGE_SHARD_HOST_H_
#define THINWIRE_SERVER_EDGE_SHARD_HOST_H_

#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <utility>

#include "common/ids.h"
#include "server/core/read_form.h"
#include "server/core/shard.h"
#include "server/edge/published_slots.h"

namespace thinwire {

// Thread-safe, except where said. Outlives the pool's threads.
class ShardHost {
 public:
  // OPTIMIZER, SCHEDULE and POOL outlive the host.
  ShardHost(ShardId id, const ShardOptions& options, const Optimizer& optimizer,
            const Schedule& schedule, boost::asio::thread_pool& pool)
      : id_(id),
        value_count_(options.value_count),
        strand_(pool.get_executor()),
        shard_(options, optimizer, schedule) {}

  ShardId id() const { return id_; }
  size_t value_count() const { return value_count_; }
  const PublishedSlots& slots() const { return slots_; }

  // Calls WORK(shard) on the strand, after all that was posted before.
  template <typename Work>
  void Post(Work work) {
    boost::asio::post(strand_, [this, work = std::move(work)]() mutable { work(shard_); });
  }

  // Puts what FORM is answered from, as it is now, in its slot; returns the answer itself if it is
  // of what the shard publishes. On the strand. REQUIRES: the shard is seeded.
  PublishedDeltas Publish(const ReadForm& form) {
    if (form.published) {
      slots_.PutLog(shard_.log(), shard_.frontier(), shard_.taken_list());
      return {shard_.frontier(), shard_.Deltas(form.held), shard_.taken_list()};
    }
    slots_.Put(form.codec, {shard_.version(), shard_.frontier(), shard_.Encoded(form.codec),
                            shard_.taken_list()});
    return {};
  }

 private:
  const ShardId id_;
  const size_t value_count_;
  boost::asio::strand<boost::asio::thread_pool::executor_type> strand_;
  Shard shard_;
  PublishedSlots slots_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_SHARD_HOST_H_
