#include "server/shards/hosted_model.h"

#include <glog/logging.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "server/core/shard_bytes.h"
#include "server/shards/convert.h"
#include "server/shards/shard_options.h"

namespace thinwire {
namespace {

// The shards of a strand have at most so many values together, unless there is only one. A thread
// updates so many in about the time in which it wakes up.
constexpr uint64_t kStrandValues = 65536;

std::string Summary(const Partition& partition) {
  return absl::StrCat(partition.tensors().size(), " tensors, ", partition.value_count(),
                      " values, shards of ", partition.shard_size(), ", hash ",
                      absl::Hex(partition.hash()));
}

// Returns true if A and B split the same tensors in the same way. Compares the tensors, because
// different tensors can have the same hash.
bool IsSame(const Partition& a, const Partition& b) {
  return a.tensors() == b.tensors() && a.shard_size() == b.shard_size();
}

}  // namespace

HostedModel::HostedModel(Partition partition, ServerId self, const ShardOptions& options,
                         const ShardHost::Shared& shared)
    : partition_(std::move(partition)), by_shard_(partition_.shard_count()) {
  uint64_t strand_values = 0;  // of the shards on the last strand
  for (ShardId shard : partition_.ShardsOf(self)) {
    strand_values += partition_.value_count(shard);
    if (strands_.empty() || strand_values > kStrandValues) {
      strands_.push_back(shared.strands.Make());
      strand_values = partition_.value_count(shard);
    }
    hosts_.push_back(std::make_unique<ShardHost>(shard, OptionsOf(partition_, shard, options),
                                                 shared, *strands_.back(),
                                                 partition_.group(shard)));
    by_shard_[shard.value] = hosts_.back().get();
  }
}

Step HostedModel::frontier() const {
  Step largest;
  for (const auto& host : hosts_) largest = std::max(largest, host->frontier());
  return largest;
}

Step HostedModel::next(WorkerId worker) const {
  if (hosts_.empty()) return Step{};
  Step smallest = hosts_.front()->next(worker);
  for (const auto& host : hosts_) smallest = std::min(smallest, host->next(worker));
  return smallest;
}

Step HostedModel::largest_next() const {
  Step largest;
  for (const auto& host : hosts_) largest = std::max(largest, host->largest_next());
  return largest;
}

void HostedModel::Finish() const {
  for (const auto& strand : strands_) strand->Finish();
}

bool HostedModel::open() const {
  return std::ranges::all_of(hosts_, [](const auto& host) { return host->open(); });
}

void HostedModel::FillIn(StatusReply& reply) const {
  uint64_t queued_event_count = 0;
  absl::Duration decode_time;
  absl::Duration encode_time;
  for (const auto& host : hosts_) {
    queued_event_count += host->queued_event_count();
    decode_time += host->decode_time();
    encode_time += host->encode_time();
  }
  reply.set_queued_events(queued_event_count);
  reply.set_decode_seconds(absl::ToDoubleSeconds(decode_time));
  reply.set_encode_seconds(absl::ToDoubleSeconds(encode_time));
}

void HostedModel::SubmitToEach(const std::function<Event(ShardId)>& event_of,
                               std::function<void(std::vector<Effects>)> done) const {
  if (hosts_.empty()) return done({});
  const auto gather = std::make_shared<Gather<Effects>>(hosts_.size(), std::move(done));
  for (size_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i]->Submit(event_of(hosts_[i]->id()), nullptr,
                      [gather, i](Effects effects) { gather->Set(i, std::move(effects)); });
  }
}

void HostedModel::AskForValues() const {
  for (const auto& host : hosts_) {
    host->Post([&host = *host](Shard&) { host.AskForValues(); });
  }
}

void HostedModel::SendWaitNotices() const {
  for (const auto& host : hosts_) {
    host->Post([&host = *host](Shard&) { host.SendWaitNotices(); });
  }
}

void HostedModel::Masters(
    const MastersRequest& request, size_t index,
    std::function<void(absl::StatusOr<std::vector<MastersChunk>>)> done) const {
  if (index >= hosts_.size()) return done(std::vector<MastersChunk>());
  ShardHost& host = *hosts_[index];
  host.Post([this, averages = request.averages(), &host, done = std::move(done)](Shard& shard) {
    if (!shard.seeded()) {
      return done(absl::FailedPreconditionError(
          absl::StrCat("shard ", host.id().value, ": has no values yet")));
    }
    done(MastersChunksOf(partition_, host.id(), averages ? shard.averages() : shard.masters()));
  });
}

uint64_t HostedModel::NeededBytes(const Partition& partition, ServerId self,
                                  const ShardOptions& options,
                                  std::span<const GroupUpdate> groups) {
  uint64_t bytes = 0;
  for (ShardId shard : partition.ShardsOf(self)) {
    bytes +=
        ShardBytes(OptionsOf(partition, shard, options), *groups[partition.group(shard)].optimizer);
  }
  return bytes;
}

absl::Status ModelSlot::MakeOrCompare(const JoinRequest& request) {
  absl::MutexLock lock(&mu_);
  if (model_ != nullptr) return Compare(request, *model_);
  ASSIGN_OR_RETURN(Partition partition, PartitionOf(request, server_count_, groups_));
  RETURN_IF_ERROR(CheckSharedTensors(partition, settings_));
  ASSIGN_OR_RETURN(frame_bytes_, SharedFrameBytes(partition, plan_.worker_count));
  ShardOptions options = options_;
  options.planned_examples = request.planned_examples();
  planned_examples_ = request.planned_examples();
  try {
    model_ = std::make_shared<const HostedModel>(std::move(partition), self_, options, shared_);
  } catch (const std::bad_alloc&) {
    return absl::InvalidArgumentError(
        absl::StrCat("model: server ", self_.value,
                     " has too little memory; set --memory_budget to the memory that it has"));
  }
  LOG(INFO) << "model: " << model_->partition().value_count() << " values in "
            << model_->partition().shard_count() << " shards, " << model_->hosts().size()
            << " of them on this server";
  frames_.Add(frame_bytes_);
  return absl::OkStatus();
}

void ModelSlot::AwaitPlan() {
  absl::MutexLock lock(&mu_);
  awaits_plan_ = true;
}

std::optional<uint64_t> ModelSlot::NewPlan(const JoinRequest& request) {
  absl::MutexLock lock(&mu_);
  if (!std::exchange(awaits_plan_, false)) return std::nullopt;
  planned_examples_ = request.planned_examples();
  return planned_examples_;
}

Step ModelSlot::frontier() const {
  const std::shared_ptr<const HostedModel> model = Get();
  return model == nullptr ? Step{} : model->frontier();
}

std::optional<Step> ModelSlot::LargestNext() const {
  const std::shared_ptr<const HostedModel> model = Get();
  if (model == nullptr || model->hosts().empty()) return std::nullopt;
  return model->largest_next();
}

void ModelSlot::ApplyToEach(const std::function<Event(ShardId)>& event_of,
                            std::function<void()> then) {
  const std::shared_ptr<const HostedModel> model = Get();
  if (model == nullptr) return then();
  model->SubmitToEach(event_of, [then = std::move(then)](const std::vector<Effects>&) { then(); });
}

absl::Status ModelSlot::Reserve(uint32_t workers) {
  absl::MutexLock lock(&mu_);
  ASSIGN_OR_RETURN(const int64_t frame_bytes, SharedFrameBytes(model_->partition(), workers));
  frames_.Add(frame_bytes - frame_bytes_);
  frame_bytes_ = frame_bytes;
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ModelSlot::SharedFrameBytes(const Partition& partition,
                                                    uint32_t workers) const {
  const uint64_t state = HostedModel::NeededBytes(partition, self_, options_, shared_.groups);
  const size_t shard_count = partition.ShardsOf(self_).size();
  ASSIGN_OR_RETURN(const uint64_t bytes,
                   plan_.SharedFrameBytes(self_, state, shard_count, workers));
  // The clamp keeps sums of an unlimited budget finite.
  return static_cast<int64_t>(std::min(bytes, uint64_t{1} << 50));
}

absl::Status ModelSlot::Compare(const JoinRequest& request, const HostedModel& model) const {
  const Partition& ours = model.partition();
  ASSIGN_OR_RETURN(const Partition theirs, PartitionOf(request, server_count_, groups_));
  if (!IsSame(theirs, ours)) {
    return absl::FailedPreconditionError(absl::StrCat("worker ", request.worker(),
                                                      ": another model (expected ", Summary(ours),
                                                      ", got ", Summary(theirs), ")"));
  }
  if (!awaits_plan_ && request.planned_examples() != planned_examples_) {
    // A worker can repeat its Join at any rate.
    LOG_EVERY_T(WARNING, 1)
        << "worker " << request.worker()
        << ": planned_examples differs from the first worker's, which the schedule uses "
           "(expected "
        << planned_examples_ << ", got " << request.planned_examples() << ")";
  }
  return absl::OkStatus();
}

std::shared_ptr<const HostedModel> ModelSlot::Get() const {
  absl::MutexLock lock(&mu_);
  return model_;
}

}  // namespace thinwire
