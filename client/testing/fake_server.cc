#include "client/testing/fake_server.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/codec/codec.h"
#include "common/model/tensor_kind.h"
#include "proto/parameter_service.pb.h"

namespace thinwire {
FakeServer::FakeServer(const Partition& partition, ServerId server)
    : partition_(partition), server_(server) {
  for (const ShardId shard : partition.ShardsOf(server)) {
    shards_[shard].masters.resize(partition.value_count(shard));
  }
}

void FakeServer::set_judge(Judge judge) {
  absl::MutexLock lock(&mu_);
  judge_ = std::move(judge);
}

void FakeServer::set_answer(Answer answer) {
  absl::MutexLock lock(&mu_);
  answer_ = std::move(answer);
}

void FakeServer::HoldReads(std::vector<ShardId> shards, WorkerId worker) {
  absl::MutexLock lock(&mu_);
  held_shards_ = std::move(shards);
  held_by_ = worker;
}

void FakeServer::ReleaseReads() {
  absl::MutexLock lock(&mu_);
  held_shards_.clear();
  ServerFrame frame = NewFrame();
  for (const ReadEntry& read : std::exchange(held_reads_, {})) Take(read, frame);
  for (const auto& [stream, peer] : streams_) peer.send(WriteFrame(frame));
}

void FakeServer::BeginEpoch() {
  ++epoch_.value;
  // Reads that wait are not part of a server's state: workers send them again.
  held_reads_.clear();
  for (auto& [number, shard] : shards_) shard.unanswered.reset();
}

void FakeServer::Restart(bool keep_state) {
  absl::MutexLock lock(&mu_);
  BeginEpoch();
  if (keep_state) return;
  run_ = RunId{};
  for (auto& [number, shard] : shards_) {
    shard = {.masters = std::vector<float>(shard.masters.size())};
  }
}

void FakeServer::set_by_round() {
  absl::MutexLock lock(&mu_);
  by_round_ = true;
}

void FakeServer::set_push_candidate(uint32_t candidate, std::optional<Step> trial) {
  absl::MutexLock lock(&mu_);
  push_candidate_ = candidate;
  trial_ = trial;
}

std::optional<Step> FakeServer::stops_before() const {
  absl::MutexLock lock(&mu_);
  return stops_before_;
}

std::optional<ModelTest> FakeServer::model_test() const {
  absl::MutexLock lock(&mu_);
  return model_test_;
}

std::optional<WorkerProgress> FakeServer::progress() const {
  absl::MutexLock lock(&mu_);
  return progress_;
}

std::vector<PrecisionTest> FakeServer::tests() const {
  absl::MutexLock lock(&mu_);
  return tests_;
}

void FakeServer::SaveCheckpoint() {
  absl::MutexLock lock(&mu_);
  checkpoint_ = shards_;
}

void FakeServer::RollBack(Generation generation) {
  absl::MutexLock lock(&mu_);
  shards_ = checkpoint_;
  generation_ = generation;
  BeginEpoch();
}

void FakeServer::set_checkpoint_step(Step step) {
  absl::MutexLock lock(&mu_);
  checkpoint_step_ = step;
}

void FakeServer::set_run(RunId run) {
  absl::MutexLock lock(&mu_);
  run_ = run;
}

void FakeServer::set_generation(Generation generation) {
  absl::MutexLock lock(&mu_);
  generation_ = generation;
}

void FakeServer::set_incarnation(Incarnation incarnation) {
  absl::MutexLock lock(&mu_);
  incarnation_ = incarnation;
}

void FakeServer::FailJoins(std::deque<absl::Status> errors) {
  absl::MutexLock lock(&mu_);
  join_errors_ = std::move(errors);
}

void FakeServer::HoldJoins(bool hold) {
  absl::MutexLock lock(&mu_);
  hold_joins_ = hold;
}

void FakeServer::Fence() {
  absl::MutexLock lock(&mu_);
  fenced_ = true;
}

void FakeServer::set_others(std::vector<WorkerId> workers) {
  absl::MutexLock lock(&mu_);
  others_ = std::move(workers);
}

void FakeServer::set_lease_seconds(double lease_seconds) {
  absl::MutexLock lock(&mu_);
  lease_seconds_ = lease_seconds;
}

void FakeServer::Seed(ShardId shard, std::vector<float> values) {
  absl::MutexLock lock(&mu_);
  shards_[shard].masters = std::move(values);
  shards_[shard].seeded = true;
}

std::vector<float> FakeServer::masters(ShardId shard) const {
  absl::MutexLock lock(&mu_);
  return shards_.at(shard).masters;
}

std::vector<PushEntry> FakeServer::pushes() const {
  absl::MutexLock lock(&mu_);
  return pushes_;
}

std::vector<PushEntry> FakeServer::arrivals() const {
  absl::MutexLock lock(&mu_);
  return arrivals_;
}

std::vector<JoinRequest> FakeServer::joins() const {
  absl::MutexLock lock(&mu_);
  return joins_;
}

int FakeServer::seed_count() const {
  absl::MutexLock lock(&mu_);
  return seed_count_;
}

LeaveRequest FakeServer::last_leave() const {
  absl::MutexLock lock(&mu_);
  return last_leave_;
}

int FakeServer::leave_count() const {
  absl::MutexLock lock(&mu_);
  return leave_count_;
}

int FakeServer::heartbeat_count() const {
  absl::MutexLock lock(&mu_);
  return heartbeat_count_;
}

int FakeServer::stream_count() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int>(streams_.size());
}

int FakeServer::answer_count() const {
  absl::MutexLock lock(&mu_);
  return answer_count_;
}

void FakeServer::Opened(uint64_t stream, Peer peer) {
  absl::MutexLock lock(&mu_);
  streams_[stream] = std::move(peer);
}

void FakeServer::Closed(uint64_t stream) {
  absl::MutexLock lock(&mu_);
  streams_.erase(stream);
}

ServerFrame FakeServer::NewFrame() const { return {.generation = generation_, .epoch = epoch_}; }

void FakeServer::Frame(uint64_t stream, const ByteChain& bytes) {
  const absl::StatusOr<WorkerFrame> frame = ParseWorkerFrame(bytes);
  absl::MutexLock lock(&mu_);
  // Drops a frame that the worker sent before it learned that the stream had ended.
  if (!streams_.contains(stream)) return;
  if (!frame.ok() || frame->epoch != epoch_) {
    streams_.at(stream).close(frame.ok() ? absl::FailedPreconditionError("join again")
                                         : frame.status());
    streams_.erase(stream);
    return;
  }
  ServerFrame reply = NewFrame();
  for (const SeedEntry& seed : frame->seeds) Take(seed, reply);
  for (const PushEntry& push : frame->pushes) Take(push, reply);
  for (const ReadEntry& read : frame->reads) Take(read, reply);
  streams_.at(stream).send(WriteFrame(reply));
}

void FakeServer::Take(const SeedEntry& seed, ServerFrame& reply) {
  Shard& shard = shards_.at(seed.shard);
  ++seed_count_;
  if (shard.seeded) return;
  const auto payload = CheckPayload(seed.payload, shard.masters.size());
  if (!payload.ok()) return;
  DecodePayload(*payload, shard.masters);
  shard.seeded = true;
  if (shard.unanswered.has_value()) Take(*std::exchange(shard.unanswered, std::nullopt), reply);
}

void FakeServer::Take(const PushEntry& push, ServerFrame& reply) {
  Shard& shard = shards_.at(push.shard);
  PushEntry kept = push;
  kept.payload = ByteChain(push.payload.ToVector());
  arrivals_.push_back(kept);
  if (const auto known = shard.verdicts.find(push.step); known != shard.verdicts.end()) {
    VerdictEntry again = known->second;
    again.again = true;
    reply.verdicts.push_back(again);
  } else {
    VerdictEntry verdict{.kind = PushVerdict::ACCEPT, .frontier = push.step + 1};
    if (judge_ != nullptr) verdict = judge_(push);
    verdict.shard = push.shard;
    verdict.step = push.step;
    const bool accept = verdict.kind == PushVerdict::ACCEPT && push.examples > 0;
    const auto payload = CheckPayload(push.payload, shard.masters.size());
    if (accept && payload.ok()) {
      DecodePayloadAdd(*payload, -1, shard.masters);
      ++shard.version;
    }
    shard.last = verdict;
    shard.verdicts[push.step] = verdict;
    pushes_.push_back(std::move(kept));
    reply.verdicts.push_back(verdict);
  }
  Take(ReadEntry{.shard = push.shard,
                 .step = push.step + 1,
                 .held_version = push.held_version,
                 .read_codec = push.read_codec},
       reply);
}

void FakeServer::Take(const ReadEntry& read, ServerFrame& reply) {
  Shard& shard = shards_.at(read.shard);
  if (std::find(held_shards_.begin(), held_shards_.end(), read.shard) != held_shards_.end()) {
    held_reads_.push_back(read);
    reply.waits.push_back({.shard = read.shard, .step = read.step, .workers = {held_by_}});
    return;
  }
  if (!shard.seeded) {
    shard.unanswered = read;
    reply.waits.push_back({.shard = read.shard, .step = read.step, .unseeded = true, .seed = true});
    return;
  }
  ++answer_count_;
  const auto codec = *MakeCodec({.id = static_cast<CodecId>(read.read_codec)});
  std::vector<std::byte> payload(codec->MaxPayloadBytes(shard.masters.size()));
  payload.resize(codec->Encode(shard.masters, RandomKeys(), payload));
  reply.parameters.push_back({.shard = read.shard,
                              .step = read.step,
                              .version = shard.version,
                              .payload = ByteChain(std::move(payload))});
  if (answer_ != nullptr) answer_(reply.parameters.back());
}

absl::StatusOr<JoinReply> FakeServer::Join(const JoinRequest& request) {
  absl::MutexLock lock(&mu_);
  joins_.push_back(request);
  const auto released = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !hold_joins_; };
  mu_.Await(absl::Condition(&released));
  if (!join_errors_.empty()) {
    const absl::Status error = join_errors_.front();
    join_errors_.pop_front();
    return error;
  }
  if (request.partition_hash() != partition_.hash()) {
    return absl::FailedPreconditionError("another model");
  }
  if (run_ == RunId{}) {
    return absl::FailedPreconditionError(absl::StrCat("server ", server_.value, " lost its state"));
  }
  JoinReply reply;
  reply.set_incarnation(incarnation_.value);
  reply.set_generation(generation_.value);
  reply.set_epoch(epoch_.value);
  reply.set_run(run_.value);
  reply.set_lease_seconds(lease_seconds_);
  reply.set_workers(1);
  reply.set_by_round(by_round_);
  for (size_t i = 0; i < kTensorKinds; ++i) reply.add_push_candidates(push_candidate_);
  if (trial_.has_value()) reply.set_trial_step(trial_->value);
  for (const auto& [number, shard] : shards_) {
    ShardState* state = reply.add_shards();
    state->set_shard(number.value);
    state->set_seeded(shard.seeded);
    if (!by_round_) continue;
    const uint64_t next = shard.last.has_value() ? shard.last->step.value + 1 : 0;
    state->set_open(shard.seeded);
    state->set_frontier(next);
    state->set_predecessor_next(next);
  }
  return reply;
}

void FakeServer::set_unix_micros(int64_t unix_micros) {
  absl::MutexLock lock(&mu_);
  unix_micros_ = unix_micros;
}

absl::StatusOr<HeartbeatReply> FakeServer::Heartbeat(const HeartbeatRequest& request) {
  absl::MutexLock lock(&mu_);
  ++heartbeat_count_;
  tests_.assign(request.tests().begin(), request.tests().end());
  model_test_ = request.has_test() ? std::optional(request.test()) : std::nullopt;
  progress_ = request.has_progress() ? std::optional(request.progress()) : std::nullopt;
  stops_before_.reset();
  if (request.has_stops_before()) stops_before_ = Step{request.stops_before()};
  HeartbeatReply reply;
  reply.set_generation(generation_.value);
  reply.set_epoch(epoch_.value);
  reply.set_fenced(fenced_);
  reply.set_unix_micros(unix_micros_);
  reply.add_live(request.worker());
  for (const WorkerId other : others_) reply.add_live(other.value);
  if (request.asks_evaluator()) reply.set_evaluator(*std::ranges::min_element(reply.live()));
  if (checkpoint_step_.has_value()) reply.set_checkpoint_step(checkpoint_step_->value);
  return reply;
}

absl::StatusOr<LeaveReply> FakeServer::Leave(const LeaveRequest& request) {
  absl::MutexLock lock(&mu_);
  ++leave_count_;
  last_leave_ = request;
  return LeaveReply();
}

absl::StatusOr<std::vector<MastersChunk>> FakeServer::Masters(const MastersRequest&) {
  absl::MutexLock lock(&mu_);
  std::vector<MastersChunk> chunks;
  for (const auto& [number, shard] : shards_) {
    uint64_t at = 0;
    for (const Segment& segment : partition_.segments(number)) {
      MastersChunk& chunk = chunks.emplace_back();
      chunk.set_tensor(partition_.tensors()[segment.tensor].name);
      chunk.set_offset(segment.offset);
      chunk.set_values(shard.masters.data() + at, segment.count * sizeof(float));
      at += segment.count;
    }
  }
  return chunks;
}

}  // namespace thinwire
