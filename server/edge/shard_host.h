// ShardHost runs one shard on its strand. It applies events, sends verdicts and answers to the
// workers' streams, and stores the shard's newest encoded parameters for these streams.
#ifndef THINWIRE_SERVER_EDGE_SHARD_HOST_H_
#define THINWIRE_SERVER_EDGE_SHARD_HOST_H_

#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <utility>

#include "common/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"
#include "server/core/read_form.h"
#include "server/core/shard.h"
#include "server/edge/counters.h"
#include "server/edge/published_slots.h"
#include "server/edge/server_stream.h"
#include "server/edge/stream_table.h"

namespace thinwire {

// Post and the const methods are thread-safe. All other methods must be called on the strand, by
// functions passed to Post. Must outlive the threads of the pool.
class ShardHost {
 public:
  // The objects that all shards of a server share. They must outlive the shards.
  struct Shared {
    const Optimizer& optimizer;
    const Schedule& schedule;
    boost::asio::thread_pool& pool;
    StreamTable& streams;
    Counters& counters;
  };

  ShardHost(ShardId id, const ShardOptions& options, const Shared& shared)
      : id_(id),
        value_count_(options.value_count),
        streams_(shared.streams),
        counters_(shared.counters),
        strand_(shared.pool.get_executor()),
        shard_(options, shared.optimizer, shared.schedule) {}

  ShardId id() const { return id_; }
  size_t value_count() const { return value_count_; }

  // Calls WORK(shard) on the strand, after all work that was posted earlier.
  template <typename Work>
  void Post(Work work) {
    boost::asio::post(strand_, [this, work = std::move(work)]() mutable { work(shard_); });
  }

  // Applies EVENT and adds its effects to the counters. Sends the verdict to SENDER, the stream
  // from which EVENT arrived (null if no stream). Sends each answered read to the stream of the
  // reading worker.
  Effects Apply(const Event& event, ServerStream* sender);

  // Sends a Waiting entry to every worker whose read waits.
  void SendWaitNotices();

 private:
  // Stores the current answer to reads of FORM in slots_. Returns the deltas of the answer if FORM
  // requests published parameters.
  PublishedDeltas Publish(const ReadForm& form);

  const ShardId id_;
  const size_t value_count_;
  StreamTable& streams_;
  Counters& counters_;
  boost::asio::strand<boost::asio::thread_pool::executor_type> strand_;
  Shard shard_;
  PublishedSlots slots_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_SHARD_HOST_H_
