#include "server/edge/model/checkpointer.h"

#include <glog/logging.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cmath>
#include <memory>

namespace thinwire {
namespace {

constexpr absl::Duration kFirstInterval = absl::Seconds(10);
constexpr absl::Duration kShortestInterval = absl::Seconds(1);
constexpr int kWriterNice = 10;

// Lowers the priority of the calling thread, so that a checkpoint uses processor time that training
// leaves. On Linux, a nice value belongs to a thread.
void LowerPriority() {
  if (setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kWriterNice) != 0) {
    PLOG(WARNING) << "cannot lower the priority of the checkpoint writer";
  }
}

}  // namespace

absl::Duration AutomaticInterval(std::optional<absl::Duration> cost,
                                 absl::Duration failure_interval) {
  if (!cost.has_value()) return kFirstInterval;
  const double seconds =
      std::sqrt(2 * absl::ToDoubleSeconds(*cost) * absl::ToDoubleSeconds(failure_interval));
  return std::max(kShortestInterval, absl::Seconds(seconds));
}

Checkpointer::Checkpointer(Files& files, Options options, Journal& journal, Clock& clock, Post post,
                           std::function<Checkpoint()> head)
    : files_(files),
      options_(std::move(options)),
      journal_(journal),
      clock_(clock),
      post_(std::move(post)),
      head_(std::move(head)),
      steps_(ReadSteps()) {
  boost::asio::post(writer_, LowerPriority);
}

absl::Duration Checkpointer::interval() const {
  if (options_.interval > absl::ZeroDuration()) return options_.interval;
  return AutomaticInterval(cost_, options_.failure_interval);
}

void Checkpointer::StartIfDue(absl::Time now, const HostedModel& model) {
  if (now - last_start_ < interval() || queued_count_ > 0) return;
  // The first checkpoint follows one interval after the start.
  const bool first = std::exchange(last_start_, now) == absl::InfinitePast();
  if (!first) Start(model, Step{});
}

void Checkpointer::StartLast(const HostedModel& model) {
  // A checkpoint without shards belongs to an announced step.
  if (model.hosts().empty()) return;
  if (!saving_) {
    Start(model, Step{});
    return;
  }
  for (const auto& host : model.hosts()) {
    host->Post([&host = *host](Shard&) { host.SaveEarly(); });
  }
}

bool Checkpointer::Start(const HostedModel& model, Step from) {
  if (saving_ || rolled_back_) return false;
  if (model.hosts().empty() && journal_.logs()) return false;
  saving_ = true;
  const auto saved = [this, from](std::vector<SavedShard> shards) {
    post_(
        [this, from, shards = std::move(shards)]() mutable { Complete(std::move(shards), from); });
  };
  if (model.hosts().empty()) {
    saved({});
    return true;
  }
  const auto gather = std::make_shared<Gather<SavedShard>>(model.hosts().size(), saved);
  const LogSequence durable = journal_.durable();
  for (size_t i = 0; i < model.hosts().size(); ++i) {
    ShardHost& host = *model.hosts()[i];
    host.Post([&host, gather, durable, from, i](Shard&) {
      host.SaveWhenPossible(durable, from,
                            [gather, i](SavedShard shard) { gather->Set(i, std::move(shard)); });
    });
  }
  return true;
}

void Checkpointer::Complete(std::vector<SavedShard> shards, Step from) {
  saving_ = false;
  if (rolled_back_) return;
  Checkpoint checkpoint = head_();
  checkpoint.shards = std::move(shards);
  // A server without shards is in the state of every step.
  checkpoint.step = checkpoint.shards.empty() ? from : CommonFrontier(checkpoint.shards);
  LogSequence applied = checkpoint.shards.empty() ? 0 : checkpoint.shards.front().applied;
  for (const SavedShard& shard : checkpoint.shards) applied = std::min(applied, shard.applied);
  checkpoint.next = applied + 1;
  ++queued_count_;
  boost::asio::post(writer_, [this, checkpoint = std::move(checkpoint),
                              start = clock_.Now()]() mutable { Write(checkpoint, start); });
}

void Checkpointer::Write(const Checkpoint& checkpoint, absl::Time start) {
  const TraceSpan span(options_.tracer, "checkpoints", "write checkpoint",
                       {.step = checkpoint.step});
  const absl::Status written = WriteCheckpoint(files_, options_.folder, checkpoint, options_.kept);
  if (written.ok()) {
    if (!options_.keep_log) journal_.RemoveBefore(checkpoint.next);
  } else {
    if (const auto more = failure_lines_.Next(clock_.Now())) {
      LOG(ERROR) << "no checkpoint written, the older ones remain: " << written.message() << *more;
    }
  }
  post_([this, ok = written.ok(), cost = clock_.Now() - start, bytes = NewestBytes(),
         steps = ReadSteps()] {
    --queued_count_;
    steps_ = steps;
    if (!ok) {
      ++failed_count_;
      return;
    }
    ++completed_count_;
    cost_ = cost;
    total_time_ += cost;
    total_bytes_ += bytes;
  });
}

void Checkpointer::FillIn(StatusReply& reply) const {
  reply.set_checkpoints(completed_count_);
  reply.set_failed_checkpoints(failed_count_);
  reply.set_checkpoint_seconds(absl::ToDoubleSeconds(total_time_));
  reply.set_checkpoint_bytes(total_bytes_);
}

void Checkpointer::RollBack(Step step, Generation generation,
                            std::function<void(const absl::Status&)> done) {
  rolled_back_ = true;
  boost::asio::post(writer_, [this, step, generation, done = std::move(done)] {
    const absl::Status status = ContinueFrom(files_, options_.folder, step, generation);
    post_([done, status] { done(status); });
  });
}

uint64_t Checkpointer::NewestBytes() const {
  const auto name = NewestCheckpoint(files_, options_.folder);
  if (!name.ok()) return 0;
  const auto manifest = ReadManifest(files_, options_.folder, *name);
  if (!manifest.ok()) return 0;
  uint64_t bytes = 0;
  for (const auto& shard : manifest->shards()) bytes += shard.file_bytes();
  return bytes;
}

std::vector<Step> Checkpointer::ReadSteps() {
  std::vector<Step> steps;
  const auto aligned = ListAlignedCheckpoints(files_, options_.folder);
  if (!aligned.ok()) {
    if (const auto more = failure_lines_.Next(clock_.Now())) {
      LOG(WARNING) << "cannot list the checkpoints: " << aligned.status().message() << *more;
    }
    return steps;
  }
  for (const AlignedCheckpoint& checkpoint : *aligned) steps.push_back(checkpoint.step);
  return steps;
}

}  // namespace thinwire
