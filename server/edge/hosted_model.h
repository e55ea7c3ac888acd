// HostedModel: a partition and the shards of it that live on this server. Made by the first Join of
// a job.
//
// Immutable, thread-safe: what changes are the shards, each on its strand. Outlives the pool's
// threads.
#ifndef THINWIRE_SERVER_EDGE_HOSTED_MODEL_H_
#define THINWIRE_SERVER_EDGE_HOSTED_MODEL_H_

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/partition.h"
#include "common/spec/rule.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/schedule.h"
#include "server/core/shard.h"
#include "server/edge/shard_host.h"

namespace thinwire {

class HostedModel {
 public:
  // OPTIONS' value_count is each shard's own, and a selection leaves vectors alone. OPTIMIZER,
  // SCHEDULE and POOL outlive the model.
  HostedModel(Partition partition, ServerId self, ShardOptions options, const Optimizer& optimizer,
              const Schedule& schedule, boost::asio::thread_pool& pool);

  const Partition& partition() const { return partition_; }
  // In push order; empty if this server holds none.
  const std::vector<std::unique_ptr<ShardHost>>& hosts() const { return hosts_; }
  // REQUIRES: the shard lives here.
  ShardHost& host(ShardId shard) const { return *by_shard_[shard.value]; }

  // Calls ASK(host, shard) on every strand and DONE with the answers, in the order of hosts(), on
  // the strand that was last, or at once if there is no shard.
  template <typename Answer, typename Ask, typename Done>
  void AskAll(Ask ask, Done done) const;

 private:
  const Partition partition_;
  std::vector<std::unique_ptr<ShardHost>> hosts_;
  std::vector<ShardHost*> by_shard_;
};

template <typename Answer, typename Ask, typename Done>
void HostedModel::AskAll(Ask ask, Done done) const {
  if (hosts_.empty()) {
    done(std::vector<Answer>());
    return;
  }
  struct Gathering {
    Ask ask;
    Done done;
    std::vector<Answer> answers;
    std::atomic<size_t> missing_count;
  };
  auto gathering = std::make_shared<Gathering>(std::move(ask), std::move(done),
                                               std::vector<Answer>(hosts_.size()), hosts_.size());
  for (size_t i = 0; i < hosts_.size(); ++i) {
    ShardHost& host = *hosts_[i];
    host.Post([gathering, i, &host](Shard& shard) {
      gathering->answers[i] = gathering->ask(host, shard);
      if (gathering->missing_count.fetch_sub(1) == 1)
        gathering->done(std::move(gathering->answers));
    });
  }
}

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_HOSTED_MODEL_H_
