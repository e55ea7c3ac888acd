// ExchangeFixture: the objects of one worker's exchange, with two fake servers behind an in-process
// transport. Base class of the tests in client/exchange.
#ifndef THINWIRE_CLIENT_EXCHANGE_EXCHANGE_FIXTURE_H_
#define THINWIRE_CLIENT_EXCHANGE_EXCHANGE_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/exchange/exchange_parts.h"
#include "client/exchange/gtopk_returns.h"
#include "client/exchange/push_pipeline.h"
#include "client/exchange/read_path.h"
#include "client/exchange/server_link.h"
#include "client/exchange/step_progress.h"
#include "client/testing/fake_server.h"
#include "client/testing/in_process_transport.h"
#include "common/time/clock.h"
#include "common/time/thread_executor.h"
#include "proto/control.pb.h"
#include "proto/worker_event.pb.h"

namespace thinwire::client {

// A running clock. Two calls of Now() are at least a microsecond apart, so that every measured time
// is counted.
class CountableClock final : public Clock {
 public:
  absl::Time Now() override { return steady_.Now() + absl::Microseconds(++call_count_); }

 private:
  SteadyClock steady_;
  std::atomic<int64_t> call_count_ = 0;
};

// Passes messages to the push pipeline and the read path, as Exchange does. Records failures but
// continues after them.
class ExchangeFixture : public ::testing::Test, private ServerLink::Observer {
 protected:
  // The model has one tensor of SHARD_COUNT shards, each of SHARD_SIZE values. BY_ROUND: the job
  // has rounds.
  explicit ExchangeFixture(int64_t shard_count = 4, int64_t shard_size = 4096,
                           bool by_round = false)
      : partition_(*Partition::Make({{"w", {shard_count, shard_size}}}, shard_size, 2)) {
    options_.worker = WorkerId{2};
    options_.worker_count = 3;
    options_.server_count = 2;
    options_.heartbeat_interval = absl::Milliseconds(5);
    const std::vector<std::span<const float>> initial = {initial_};
    EXPECT_TRUE(replica_.Fill(initial).ok());
    ServerLink::Observer& observer = *this;
    rejoin_.set_partition_hash(partition_.hash());
    rejoin_.set_worker(options_.worker.value);
    rejoin_.set_incarnation(1);
    rejoin_.set_run(1);
    for (uint32_t s = 0; s < 2; ++s) {
      if (by_round) servers_[s].set_by_round();
      links_.push_back(std::make_unique<ServerLink>(parts_, ServerId{s}, rejoin_,
                                                    *servers_[s].Join(rejoin_),
                                                    options_.heartbeat_interval, observer));
    }
  }
  // Not in the destructor, which begins while tasks of the loop still call this observer.
  void TearDown() override {
    loop_->Run([this] {
      pushes_.Stop();
      for (const auto& link : links_) link->Close();
    });
    loop_->Stop();
  }

  // Blocks until a failure is reported, and returns the first failure.
  absl::Status WaitForFailure() {
    const auto failed = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !failure_.ok(); };
    absl::MutexLock lock(&mu_, absl::Condition(&failed));
    return failure_;
  }
  // Blocks until COUNT verdicts have arrived.
  void WaitForVerdicts(size_t count) {
    const auto arrived = [this, count]()
                             ABSL_SHARED_LOCKS_REQUIRED(mu_) { return verdicts_.size() >= count; };
    absl::MutexLock lock(&mu_, absl::Condition(&arrived));
  }
  // Returns the shards whose verdicts have arrived, in order of arrival.
  std::vector<ShardId> verdicts() {
    absl::MutexLock lock(&mu_);
    return verdicts_;
  }
  // Blocks until a rollback is reported, and returns its generation.
  Generation WaitForRollback() {
    const auto reported = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !rollbacks_.empty(); };
    absl::MutexLock lock(&mu_, absl::Condition(&reported));
    return rollbacks_[0];
  }
  WorkerCounters counters() { return report_.counters(); }

  const Partition partition_;
  ClientOptions options_ = {.works_ahead = true};
  const std::vector<float> initial_ = std::vector<float>(partition_.value_count(), 1.5f);
  FakeServer servers_[2] = {FakeServer(partition_, ServerId{0}),
                            FakeServer(partition_, ServerId{1})};
  InProcessTransport transport_{{&servers_[0], &servers_[1]}};
  CountableClock clock_;
  Replica replica_{partition_};
  const std::unique_ptr<PushEncoder> encoder_ = *PushEncoder::Make(partition_, {});
  StepProgress progress_{partition_, options_.drain, clock_};
  StatusReport report_;
  WorkerNews worker_news_;
  JobNews job_news_;
  DealBook deals_;
  WireMeter meter_;
  const std::shared_ptr<Executor> loop_ = std::make_shared<ThreadExecutor>(clock_);
  const ExchangeParts parts_ = {.options = options_,
                                .partition = partition_,
                                .transport = transport_,
                                .loop = loop_,
                                .replica = replica_,
                                .encoder = *encoder_,
                                .tuner = nullptr,
                                .meter = meter_,
                                .listener = progress_,
                                .report = report_,
                                .worker_news = worker_news_,
                                .job_news = job_news_,
                                .deals = deals_};
  JoinRequest rejoin_;
  std::vector<std::unique_ptr<ServerLink>> links_;
  GtopkReturns returns_{partition_, *encoder_, report_};
  ReadPath reads_{parts_, links_, returns_, [this](absl::Status failure) { OnFailure(failure); }};
  PushPipeline pushes_{parts_, links_, reads_, returns_,
                       [this](absl::Status failure) { OnFailure(failure); }};

 private:
  void OnMessage(ServerLink& link, const ServerFrame& message) override {
    for (const VerdictEntry& verdict : message.verdicts) pushes_.OnVerdict(link, verdict);
    for (const ParametersEntry& entry : message.parameters) reads_.OnParameters(link, entry);
    reads_.OnWaiting(link, message.waits);
    pushes_.ContinueIfPossible();
    absl::MutexLock lock(&mu_);
    for (const VerdictEntry& verdict : message.verdicts) verdicts_.push_back(verdict.shard);
  }
  void OnQueueRoom() override { pushes_.OnQueueRoom(); }
  void OnAdopted(ServerLink& link) override { reads_.DropKept(link.server()); }
  void OnFailure(absl::Status failure) override {
    absl::MutexLock lock(&mu_);
    if (failure_.ok()) failure_ = std::move(failure);
  }
  void OnRollback(Generation generation) override {
    absl::MutexLock lock(&mu_);
    rollbacks_.push_back(generation);
  }

  absl::Mutex mu_;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  std::vector<ShardId> verdicts_ ABSL_GUARDED_BY(mu_);
  std::vector<Generation> rollbacks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_EXCHANGE_FIXTURE_H_
