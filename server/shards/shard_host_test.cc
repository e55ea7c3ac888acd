#include "server/shards/shard_host.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/memory/live_bytes.h"
#include "common/time/clock.h"
#include "common/time/virtual_time.h"
#include "proto/frame.h"
#include "server/core/testing/fakes.h"
#include "server/shards/shard_observer.h"

namespace thinwire {
namespace {

constexpr uint32_t kReaders = 8;
constexpr size_t kCount = 65536;
constexpr size_t kFullBytes = kCount * sizeof(float);

// Each call of Now() is one second after the last one.
class SecondsClock final : public Clock {
 public:
  absl::Time Now() override { return absl::UnixEpoch() + absl::Seconds(++call_count_); }

 private:
  std::atomic<int> call_count_ = 0;
};

// The stream of a reader that never reads: its first write does not end before Unblock().
class StuckReader {
 public:
  explicit StuckReader(WorkerId number) : worker_{.worker = number} {
    StreamLink link;
    link.read = [] {};
    link.write = [this](const ByteChain& bytes) { frame_ = ParseServerFrame(bytes).value(); };
    link.finish = [](const absl::Status&) {};
    stream_ = std::make_shared<ServerStream>(std::move(link), Generation{}, Epoch{},
                                             [](uint64_t, uint64_t) {});
  }

  const FakeWorker& worker() const { return worker_; }
  const std::shared_ptr<ServerStream>& stream() const { return stream_; }
  void Block() { stream_->AddVerdict({}); }
  // Ends the current write. Returns the parameters in the newest message.
  std::vector<ParametersEntry> Unblock() {
    stream_->OnWritten(true);
    return frame_.parameters;
  }

 private:
  const FakeWorker worker_;
  std::shared_ptr<ServerStream> stream_;
  ServerFrame frame_;
};

// Notes the record and the version of each applied event, and the record of a restored checkpoint.
class RecordingObserver final : public ShardObserver {
 public:
  void OnApplied(ShardId, const Event&, const Effects& effects, const Shard& shard,
                 LogSequence sequence) override {
    applied.emplace_back(sequence, shard.version());
    accepted += effects.judgement.has_value();
  }
  void OnRestored(ShardId, const Shard& shard, LogSequence record) override {
    restored.emplace_back(record, shard.version());
  }

  std::vector<std::pair<LogSequence, Version>> applied;
  std::vector<std::pair<LogSequence, Version>> restored;
  int accepted = 0;
};

// A shard that publishes every update as a delta, a worker that pushes, and the readers.
class ShardHostTest : public testing::Test {
 protected:
  // Calls TEST on the strand of an open shard with seeded values, whose readers are blocked.
  void OnStrand(const PublishOptions& publish, absl::FunctionRef<void(ShardHost&, Shard&)> test) {
    const std::unique_ptr<Executor> strand = strands_.Make();
    ShardHost host({0},
                   {.value_count = kCount, .rule = Rule::Async(kReaders + 1), .publish = publish},
                   {updates_, strands_, streams_, counters_, journal_, clock_}, *strand);
    for (uint32_t i = 0; i < kReaders; ++i) {
      readers_.push_back(std::make_unique<StuckReader>(WorkerId{i + 1}));
    }
    host.Post([&](Shard& shard) {
      host.Apply(SeedEvent{Fp32Payload(std::vector<float>(kCount))}, nullptr);
      host.Apply(pusher_.Join(), nullptr);
      host.Apply(pusher_.Read(0), nullptr);
      for (const auto& reader : readers_) {
        const FakeWorker& worker = reader->worker();
        host.Apply(worker.Join(), nullptr);
        host.Apply(worker.Read(0), nullptr);
        streams_.Admit(worker.worker, worker.incarnation);
        EXPECT_TRUE(streams_.Register(worker.worker, worker.incarnation, reader->stream()).ok());
        reader->Block();
      }
      EXPECT_TRUE(shard.open());
      test(host, shard);
    });
    strand->Finish();
  }

  // Pushes a gradient that changes the first CHANGED values.
  void Push(ShardHost& host, size_t changed) {
    std::vector<float> gradient(kCount);
    std::fill_n(gradient.begin(), changed, 0.37f);
    PushEvent push = pusher_.PushNothing(step_++);
    push.examples = 1;
    push.payload = Fp32Payload(gradient);
    host.Apply(push, nullptr);
  }

  void Read(ShardHost& host, const StuckReader& reader, uint64_t step, const ReadForm& form) {
    ReadEvent read = reader.worker().Read(step);
    read.form = form;
    host.Apply(read, nullptr);
  }

  const std::vector<GroupUpdate> updates_ = {{std::make_shared<PlainDescent>(), ConstantRate()}};
  VirtualTime strands_;
  StreamTable streams_{kReaders + 1};
  Counters counters_;
  Journal journal_;
  SecondsClock clock_;
  const FakeWorker pusher_;
  std::vector<std::unique_ptr<StuckReader>> readers_;
  uint64_t step_ = 0;
};

TEST_F(ShardHostTest, ReadersThatNeverReadShareOneFullCopy) {
  OnStrand({.every = 1}, [this](ShardHost& host, Shard& shard) {
    size_t with_one_reader = 0;
    for (const auto& reader : readers_) {
      Push(host, kCount);
      Read(host, *reader, 1, ReadForm::Published());
      if (with_one_reader == 0) with_one_reader = LiveBytes();
    }
    EXPECT_LT(LiveBytes(), with_one_reader + kFullBytes / 2);
    for (const auto& reader : readers_) {
      const std::vector<ParametersEntry> entries = reader->Unblock();
      ASSERT_EQ(entries.size(), 1u);
      EXPECT_EQ(entries[0].version, shard.version());
      EXPECT_EQ(entries[0].step, Step{1});
      EXPECT_EQ(entries[0].payload.size(), kFullBytes + 1);
    }
  });
}

TEST_F(ShardHostTest, ReadersThatNeverReadDoNotKeepDroppedDeltas) {
  // The log has room for one delta of a quarter of the values.
  OnStrand({.log_bytes = kFullBytes / 4, .every = 1}, [this](ShardHost& host, Shard& shard) {
    Push(host, kCount / 4);
    size_t with_one_reader = 0;
    for (const auto& reader : readers_) {
      const Version held = shard.version();
      Push(host, kCount / 4);
      Read(host, *reader, 1, ReadForm::Since(held));
      if (with_one_reader == 0) with_one_reader = LiveBytes();
    }
    // One full copy is added when the log drops the version of the first reader.
    EXPECT_LT(LiveBytes(), with_one_reader + kFullBytes * 3 / 2);
    for (size_t i = 0; i < readers_.size(); ++i) {
      const std::vector<ParametersEntry> entries = readers_[i]->Unblock();
      ASSERT_FALSE(entries.empty());
      const bool last = i + 1 == readers_.size();
      EXPECT_EQ(entries[0].kind == 0, !last) << "only the last reader's version is in the log";
      EXPECT_EQ(entries.back().version, shard.version());
      for (size_t e = 1; e < entries.size(); ++e) {
        EXPECT_EQ(entries[e].base_version, entries[e - 1].version);
      }
    }
  });
}

TEST_F(ShardHostTest, WithoutUnsentAnswersNoFullCopyIsKept) {
  OnStrand({.every = 1}, [this](ShardHost& host, Shard& shard) {
    for (const auto& reader : readers_) {
      reader->Unblock();
      reader->Unblock();  // the answer to the read of step 0, if there was one
    }
    StuckReader& reader = *readers_[0];
    Push(host, 1);
    Read(host, reader, 1, ReadForm::Published());
    reader.Unblock();
    const size_t with_full_copy = LiveBytes();
    const Version held = shard.version();
    Push(host, 1);
    Read(host, reader, 2, ReadForm::Since(held));
    EXPECT_EQ(reader.Unblock().size(), 1u);
    EXPECT_LT(LiveBytes(), with_full_copy - kFullBytes / 2);
  });
}

TEST_F(ShardHostTest, TheTimesOfPushesAndAnswersAreCounted) {
  OnStrand({.every = 1}, [this](ShardHost& host, Shard&) {
    EXPECT_EQ(host.decode_time(), absl::ZeroDuration());
    const absl::Duration encode_time = host.encode_time();
    Push(host, 1);
    Push(host, 1);
    EXPECT_EQ(host.decode_time(), absl::Seconds(2));
    EXPECT_EQ(host.encode_time(), encode_time);
    Read(host, *readers_[0], 1, ReadForm::Published());
    EXPECT_EQ(host.decode_time(), absl::Seconds(2));
    EXPECT_EQ(host.encode_time(), encode_time + absl::Seconds(1));
  });
}

TEST_F(ShardHostTest, SubmittedEventsAreQueuedUntilTheyAreApplied) {
  OnStrand({.every = 1}, [this](ShardHost& host, Shard&) {
    // The strand runs this function, so it applies the events afterwards.
    for (const uint64_t left : {2, 1}) {
      host.Submit(pusher_.PushNothing(step_++), nullptr, [&host, left](const Effects&) {
        EXPECT_EQ(host.queued_event_count(), left - 1);
      });
    }
    EXPECT_EQ(host.queued_event_count(), 2u);
  });
}

TEST_F(ShardHostTest, AnObserverHearsAppliedReplayedAndRestoredEvents) {
  RecordingObserver observer;
  const ShardHost::Shared shared = {.groups = updates_,
                                    .strands = strands_,
                                    .streams = streams_,
                                    .counters = counters_,
                                    .journal = journal_,
                                    .clock = clock_,
                                    .observer = &observer};
  const ShardOptions options = {.value_count = kCount, .rule = Rule::Async(1)};
  const std::unique_ptr<Executor> strand = strands_.Make();
  ShardHost host({0}, options, shared, *strand);
  std::optional<SavedShard> saved;
  host.Post([&](Shard&) {
    host.Apply(SeedEvent{Fp32Payload(std::vector<float>(kCount))}, nullptr);
    host.Apply(pusher_.Join(), nullptr);
    host.Apply(pusher_.Read(0), nullptr);
    Push(host, 1);
    host.SaveWhenPossible(7, Step{}, [&](SavedShard shard) { saved = std::move(shard); });
  });
  strand->Finish();
  EXPECT_EQ(observer.applied,
            (std::vector<std::pair<LogSequence, Version>>{
                {0, Version{0}}, {0, Version{0}}, {0, Version{0}}, {0, Version{1}}}));
  EXPECT_EQ(observer.accepted, 1);
  ASSERT_TRUE(saved.has_value());

  observer = RecordingObserver();
  ShardHost next({0}, options, shared, *strand);
  ASSERT_TRUE(next.Restore(*saved).ok());
  PushEvent push = pusher_.PushNothing(1);
  push.examples = 1;
  push.payload = Fp32Payload(std::vector<float>(kCount));
  next.Replay(7, push);
  next.Replay(8, push);
  EXPECT_EQ(observer.restored, (std::vector<std::pair<LogSequence, Version>>{{7, Version{1}}}));
  EXPECT_EQ(observer.applied, (std::vector<std::pair<LogSequence, Version>>{{8, Version{2}}}));
}

}  // namespace
}  // namespace thinwire
