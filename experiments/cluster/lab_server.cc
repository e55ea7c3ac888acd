#include "experiments/cluster/lab_server.h"

#include <utility>
#include <variant>

#include "client/replica/host_parameters.h"
#include "common/codec/payload.h"
#include "proto/frame.h"
#include "server/edge/model/convert.h"
#include "server/edge/model/shard_options.h"
#include "server/edge/stream/publish_newest.h"

namespace thinwire::lab {

LabServer::LabServer(const Shared& shared, ServerId id, ConstTensors initial,
                     std::span<const ShardSnapshot> snapshots)
    : shared_(shared), id_(id), streams_(shared.job.rule.workers) {
  const JobSpec& job = shared_.job;
  ShardOptions options = {.rule = job.rule,
                          .generation = kLabGeneration,
                          .planned_examples = shared_.planned_examples,
                          .sparse_updates = job.sparse_updates,
                          .staleness = job.staleness,
                          .publish = job.publish,
                          .clips = job.clip_norm > 0};
  if (shared_.imposed_staleness.has_value() && options.publish.has_value()) {
    options.publish->every = 1;
  }
  const auto pull = job.publish.has_value() ? std::nullopt : std::optional(job.pull_codec);
  const std::vector<ShardId> own = shared_.partition.ShardsOf(id_);
  if (options.clips && !own.empty()) round_sum_.emplace(std::span<const ShardId>(own));
  for (const ShardId s : own) {
    Hosted& hosted = hosted_[s];
    const GroupUpdate& update = shared_.updates[shared_.partition.group(s)];
    hosted.shard = std::make_unique<Shard>(OptionsOf(shared_.partition, s, options),
                                           *update.optimizer, update.schedule);
    hosted.slots = std::make_shared<PublishedSlots>();
    Shard& shard = *hosted.shard;
    if (!snapshots.empty()) {
      const absl::Status restored = shard.Restore(snapshots[s.value]);
      if (!restored.ok()) shared_.failed(restored);
      continue;
    }
    shard.Apply(
        SeedEvent{EncodedPayload(client::Fp32Payload(shared_.partition.segments(s), initial),
                                 shared_.partition.value_count(s))});
    for (uint32_t w = 0; w < job.rule.workers; ++w) {
      shard.Apply(JoinEvent{WorkerId{w}, kLabIncarnation});
    }
    if (!shared_.imposed_staleness.has_value()) continue;
    hosted.turns =
        std::make_unique<ShardTurns>(*shared_.imposed_staleness, job.rule.workers, pull, shard);
  }
}

void LabServer::Receive(const ByteChain& bytes) {
  absl::StatusOr<WorkerFrame> frame = ParseWorkerFrame(bytes);
  if (!frame.ok()) return shared_.failed(frame.status());
  absl::StatusOr<std::vector<ShardEvents>> groups = EventsOf(
      *std::move(frame), shared_.partition, id_, kLabGeneration, shared_.job.publish.has_value());
  if (!groups.ok()) return shared_.failed(groups.status());
  for (ShardEvents& group : *groups) {
    ShardTurns* const turns = hosted_.at(group.shard).turns.get();
    for (Event& event : group.events) {
      auto* const push = std::get_if<PushEvent>(&event);
      if (turns == nullptr || push == nullptr) {
        Submit(group.shard, std::move(event));
        continue;
      }
      for (PushEvent& ready : turns->Arrived(std::move(*push))) {
        Submit(group.shard, std::move(ready));
      }
    }
  }
  Work();
}

void LabServer::Leave(WorkerId worker) { SubmitToAll(LeaveEvent{worker, kLabIncarnation}); }

void LabServer::ChangeRule(const RuleEvent& event) { SubmitToAll(event); }

void LabServer::Clip(const ClipEvent& event) { SubmitToAll(event); }

void LabServer::SubmitToAll(const Event& event) {
  for (const ShardId shard : shared_.partition.ShardsOf(id_)) Submit(shard, event);
  Work();
}

void LabServer::Submit(ShardId shard, Event event) {
  absl::Duration cost;
  if (const auto* push = std::get_if<PushEvent>(&event)) {
    cost = shared_.costs.Decode(push->payload.bytes(), push->payload.count());
  }
  tasks_.push_back({cost, [this, shard, event = std::move(event)] { Apply(shard, event); }});
}

void LabServer::Work() {
  while (!busy_ && !tasks_.empty()) {
    if (tasks_.front().cost > absl::ZeroDuration()) {
      busy_ = true;
      shared_.queue.After(std::exchange(tasks_.front().cost, absl::ZeroDuration()), [this] {
        busy_ = false;
        Work();
      });
      break;
    }
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    task.run();
  }
  for (const WorkerId worker : std::exchange(touched_, {})) {
    streams_[worker.value].touched = false;
    Write(worker);
  }
}

void LabServer::Apply(ShardId shard, const Event& event) {
  Hosted& hosted = hosted_.at(shard);
  const Effects effects = hosted.shard->Apply(event);
  shared_.applied(shard, event, effects);
  if (const auto part = PartOf(effects); part.has_value() && round_sum_.has_value()) {
    if (const auto sum = round_sum_->Add(shard.value, *part)) shared_.full(id_, *sum);
  }
  if (effects.judgement.has_value()) {
    Touch(effects.judgement->worker).outbox.AddVerdict(VerdictEntryOf(shard, *effects.judgement));
  }
  if (hosted.turns != nullptr) return AnswerInTurn(shard, event, effects.answers);
  if (effects.answers.empty()) return;
  const absl::Duration cost = EncodeCost(shard, effects.answers[0].form);
  tasks_.push_front({cost, [this, shard, reads = effects.answers] { AnswerReads(shard, reads); }});
}

void LabServer::AnswerReads(ShardId shard, const std::vector<ReadAnswer>& reads) {
  Hosted& hosted = hosted_.at(shard);
  for (const ReadAnswer& read : reads) {
    PublishNewest(*hosted.shard, read.form, hosted.slots);
    Touch(read.worker).outbox.AddAnswer(shard, read.step, read.form, hosted.slots);
  }
}

void LabServer::AnswerInTurn(ShardId shard, const Event& event,
                             const std::vector<ReadAnswer>& reads) {
  for (ShardTurns::Answer& answer : hosted_.at(shard).turns->Applied(event, reads)) {
    const ReadAnswer& read = answer.read;
    Touch(read.worker).outbox.AddAnswer(shard, read.step, read.form, std::move(answer.slots));
  }
}

absl::Duration LabServer::EncodeCost(ShardId shard, const ReadForm& form) {
  Hosted& hosted = hosted_.at(shard);
  const Version newest = form.published ? hosted.shard->log()->newest() : hosted.shard->version();
  if (newest == hosted.encoded) return absl::ZeroDuration();
  hosted.encoded = newest;
  const size_t value_count = shared_.partition.value_count(shard);
  if (!form.published) return shared_.costs.Encode(form.codec, value_count);
  const std::optional<CodecSpec>& codec = shared_.job.publish->codec;
  return codec.has_value() ? shared_.costs.Encode(codec->id, value_count) : absl::ZeroDuration();
}

LabServer::Stream& LabServer::Touch(WorkerId worker) {
  Stream& stream = streams_[worker.value];
  if (!std::exchange(stream.touched, true)) touched_.push_back(worker);
  return stream;
}

void LabServer::Write(WorkerId worker) {
  Stream& stream = streams_[worker.value];
  while (!stream.outbox.empty() && stream.undelivered_bytes < kMessagePayloadBytes) {
    ServerFrame frame = stream.outbox.Next();
    frame.generation = kLabGeneration;
    frame.epoch = kLabEpoch;
    ByteChain bytes = WriteFrame(frame);
    const uint64_t size = bytes.size();
    stream.undelivered_bytes += size;
    shared_.send(id_, worker, std::move(bytes), [this, worker, size] {
      streams_[worker.value].undelivered_bytes -= size;
      Write(worker);
    });
  }
}

}  // namespace thinwire::lab
