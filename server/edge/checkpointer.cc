#include "server/edge/checkpointer.h"

#include <glog/logging.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace thinwire {

void Checkpointer::StartIfDue(absl::Time now, const HostedModel& model,
                              std::function<Checkpoint()> head) {
  if (now - last_start_ < interval_) return;
  // The first checkpoint follows one interval after the start.
  const bool first = std::exchange(last_start_, now) == absl::InfinitePast();
  if (!first) Start(model, std::move(head));
}

void Checkpointer::Start(const HostedModel& model, std::function<Checkpoint()> head) {
  if (running_ || model.hosts().empty()) return;
  running_ = true;
  const auto saved = [this, head = std::move(head)](std::vector<SavedShard> shards) {
    post_([this, head, shards = std::move(shards)]() mutable {
      Checkpoint checkpoint = head();
      checkpoint.shards = std::move(shards);
      LogSequence applied = checkpoint.shards.front().applied;
      for (const SavedShard& shard : checkpoint.shards) applied = std::min(applied, shard.applied);
      checkpoint.next = applied + 1;
      boost::asio::post(writer_, [this, checkpoint = std::move(checkpoint)]() mutable {
        Write(std::move(checkpoint));
      });
    });
  };
  const auto gather = std::make_shared<Gather<SavedShard>>(model.hosts().size(), saved);
  const LogSequence durable = journal_.durable();
  for (size_t i = 0; i < model.hosts().size(); ++i) {
    ShardHost& host = *model.hosts()[i];
    host.Post([&host, gather, durable, i](Shard&) {
      host.SaveWhenPossible(durable,
                            [gather, i](SavedShard shard) { gather->Set(i, std::move(shard)); });
    });
  }
}

void Checkpointer::Write(Checkpoint checkpoint) {
  const absl::Status written = WriteCheckpoint(files_, folder_, checkpoint);
  if (written.ok()) {
    journal_.RemoveBefore(checkpoint.next);
    ++completed_count_;
  } else {
    LOG(ERROR) << "no checkpoint written, the older ones remain: " << written.message();
  }
  post_([this] { running_ = false; });
}

}  // namespace thinwire
