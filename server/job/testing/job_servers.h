// For tests of agreements of the servers: the servers of a job and the streams of its workers, in
// one process and without a disk. A test pushes gradients and waits for the parameters.
#ifndef THINWIRE_SERVER_JOB_TESTING_JOB_SERVERS_H_
#define THINWIRE_SERVER_JOB_TESTING_JOB_SERVERS_H_

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/model/partition.h"
#include "common/spec/job_spec.h"
#include "common/time/clock.h"
#include "gtest/gtest.h"
#include "proto/frame.h"
#include "server/job/job_threads.h"
#include "server/job/make_job.h"
#include "server/job/testing/direct_peers.h"
#include "server/job/testing/test_stream.h"
#include "server/protocols/relay/round_relay.h"

namespace thinwire {

class JobServersTest : public testing::Test {
 protected:
  static constexpr uint32_t kFp32 = 1;
  static constexpr Epoch kEpoch{77};

  ~JobServersTest() override {
    for (auto& streams : streams_) streams.clear();
    // The lead's calls end before the other jobs are destroyed.
    jobs_[0].reset();
  }

  // Starts the servers of a job.
  void StartServers(JobSpec spec, std::vector<TensorShape> tensors, uint64_t shard_size = 0) {
    partition_ = Partition::Make(std::move(tensors), shard_size, spec.server_count).value();
    spec.lease = absl::Hours(10);
    for (uint32_t s = 0; s < spec.server_count; ++s) {
      std::unique_ptr<Peers> peers;
      if (s == 0) {
        peers = std::make_unique<DirectPeers>([this](ServerId id) -> Job* {
          absl::MutexLock lock(&mu_);
          return unreachable_.contains(id.value) ? nullptr : jobs_[id.value].get();
        });
      }
      ServerSettings settings;
      settings.server = ServerId{s};
      settings.epoch = kEpoch;
      settings.relay = relay_;
      jobs_.push_back(
          MakeJob(spec, settings, clock_, threads_.executors(), std::move(peers)).value());
    }
    streams_.resize(spec.rule.workers);
  }
  // WORKER joins SERVER.
  absl::Status Join(uint32_t worker, uint32_t server) {
    JoinRequest request =
        JoinRequestOf(partition_, worker, server == 0 ? 0 : 1, server == 0 ? 0 : run_);
    request.set_shard_size(partition_.shard_size());
    Pending<JoinReply> joined;
    jobs_[server]->Join(
        request, [] { return false; }, joined.done());
    if (joined.Get().ok()) run_ = joined.Get()->run();
    return joined.Get().status();
  }
  // All workers join, send VALUES_OF(shard) as the first values, and have the parameters of step 0.
  void Begin(const std::function<ByteChain(ShardId)>& values_of) {
    for (uint32_t w = 0; w < streams_.size(); ++w) {
      for (uint32_t s = 0; s < jobs_.size(); ++s) {
        const absl::Status joined = Join(w, s);
        ASSERT_TRUE(joined.ok()) << joined;
        streams_[w].push_back(std::make_unique<TestStream>(*jobs_[s]));
      }
    }
    for (uint32_t w = 0; w < streams_.size(); ++w) {
      for (uint32_t s = 0; s < jobs_.size(); ++s) {
        WorkerFrame frame = FrameOf(w);
        for (const ShardId shard : partition_.ShardsOf(ServerId{s})) {
          frame.seeds.push_back({shard, values_of(shard)});
          frame.reads.push_back({shard, {0}, {0}, kFp32});
        }
        if (!frame.reads.empty()) streams_[w][s]->Send(frame);
      }
    }
    for (uint32_t w = 0; w < streams_.size(); ++w) AwaitParameters(w, 0);
  }
  // Pushes VALUES_OF(shard) for all shards of SERVER.
  void PushValues(uint32_t worker, uint32_t server, uint64_t step,
                  const std::function<ByteChain(ShardId)>& values_of) {
    WorkerFrame frame = FrameOf(worker);
    for (const ShardId shard : partition_.ShardsOf(ServerId{server})) {
      PushEntry& push = frame.pushes.emplace_back();
      push.shard = shard;
      push.step = {step};
      push.examples = 1;
      push.read_codec = kFp32;
      push.payload = values_of(shard);
    }
    if (!frame.pushes.empty()) streams_[worker][server]->Send(frame);
  }
  // Pushes VALUE for all parameters of SERVER.
  void Push(uint32_t worker, uint32_t server, uint64_t step, float value) {
    PushValues(worker, server, step, [&](ShardId shard) { return Values(shard, value); });
  }
  // Blocks until WORKER has the parameters of STEP from all servers.
  void AwaitParameters(uint32_t worker, uint64_t step) {
    for (uint32_t s = 0; s < jobs_.size(); ++s) {
      for (size_t i = 0; i < partition_.ShardsOf(ServerId{s}).size(); ++i) {
        EXPECT_EQ(streams_[worker][s]->NextParameters().step, Step{step});
      }
    }
  }
  StatusReply Status(uint32_t server) {
    Pending<StatusReply> pending;
    jobs_[server]->Call(StatusRequest(), pending.done());
    return pending.Get().value();
  }
  void Tick(uint32_t server) {
    absl::Notification done;
    jobs_[server]->Tick([&done] { done.Notify(); });
    done.WaitForNotification();
  }
  // Returns the parameters of SERVER, in the order of its shards.
  std::vector<float> Masters(uint32_t server) {
    std::string bytes;
    for (size_t i = 0; i < partition_.ShardsOf(ServerId{server}).size(); ++i) {
      Pending<std::vector<MastersChunk>> pending;
      jobs_[server]->Masters({}, i, pending.done());
      const std::vector<MastersChunk> chunks = pending.Get().value();
      for (const MastersChunk& chunk : chunks) bytes += chunk.values();
    }
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  Pending<LeaveReply> Leave(uint32_t worker, uint32_t server) {
    LeaveRequest request;
    request.set_worker(worker);
    request.set_incarnation(1);
    request.set_run(run_);
    Pending<LeaveReply> pending;
    jobs_[server]->Call(request, pending.done());
    Status(server);  // ends behind the request
    return pending;
  }
  SumRequest RequestOf(uint64_t generation = 1) const {
    SumRequest request;
    request.set_job("train");
    request.set_run(run_);
    request.set_generation(generation);
    return request;
  }
  absl::Status Sum(uint32_t server, const SumRequest& request) {
    Pending<SumReply> pending;
    jobs_[server]->Call(request, pending.done());
    return pending.Get().status();
  }
  void SetReachable(uint32_t server, bool reachable) {
    absl::MutexLock lock(&mu_);
    if (reachable) {
      unreachable_.erase(server);
    } else {
      unreachable_.insert(server);
    }
  }

  WorkerFrame FrameOf(uint32_t worker) const {
    WorkerFrame frame;
    frame.worker = {worker};
    frame.incarnation = {1};
    frame.generation = {1};
    frame.epoch = kEpoch;
    return frame;
  }
  ByteChain Values(ShardId shard, float value) const {
    return Payload(std::vector<float>(partition_.value_count(shard), value));
  }

  Partition partition_ = Partition::Make({{"w", {1}}}, 0, 1).value();
  ManualClock clock_;
  JobThreads threads_{2};
  RoundRelay* relay_ = nullptr;  // of every server
  uint64_t run_ = 0;
  absl::Mutex mu_;
  std::set<uint32_t> unreachable_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::vector<std::unique_ptr<TestStream>>> streams_;  // by worker and server
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_TESTING_JOB_SERVERS_H_
