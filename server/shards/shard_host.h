// ShardHost runs one shard on a strand, which several small shards share. It applies events, sends
// verdicts and answers to the workers' streams, and stores the shard's newest encoded parameters for
// these streams.
//
//   Submit -> journal: the event is durable -> strand: Apply -> verdicts, answers -> streams
//
// An event is thus durable before any of its effects leaves the server, and the order of the log is
// the order in which the shard applies the events. In a job without a log, Submit only posts.
#ifndef THINWIRE_SERVER_SHARDS_SHARD_HOST_H_
#define THINWIRE_SERVER_SHARDS_SHARD_HOST_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/time/clock.h"
#include "common/time/executor.h"
#include "common/time/post_batch.h"
#include "common/time/trace.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/optimizer/group_updates.h"
#include "server/core/read_form.h"
#include "server/core/shard.h"
#include "server/durable/checkpoint.h"
#include "server/durable/event_log.h"
#include "server/shards/counters.h"
#include "server/shards/journal.h"
#include "server/shards/shard_observer.h"
#include "server/shards/step_times.h"
#include "server/shards/stream/published_slots.h"
#include "server/shards/stream/server_stream.h"
#include "server/shards/stream/stream_table.h"

namespace thinwire {

// Post, Submit and the const methods are thread-safe. All other methods must be called on the
// strand, by functions passed to Post. The strand is an executor.
// The times at which a shard made progress: updates and finished steps. Not thread-safe.
class ShardProgress {
 public:
  explicit ShardProgress(absl::Time start) : last_(start) {}

  void Add(absl::Time now) {
    const absl::Duration between = now - last_;
    usual_ = usual_.has_value() ? 0.9 * *usual_ + 0.1 * between : between;
    last_ = now;
  }

  // Returns the last time; the start if there was none.
  absl::Time last() const { return last_; }
  // Returns a moving average of the time between two; nullopt before the first.
  std::optional<absl::Duration> usual() const { return usual_; }

 private:
  absl::Time last_;
  std::optional<absl::Duration> usual_;
};

// The verdicts and parameters of shards of at most so many values share messages. A message takes
// more time than the update of so many values.
inline constexpr uint64_t kSmallShard = 32768;

// What the events of a frame do together. They are posted to the strands when the batch is
// destroyed, unless the job has a log. The streams send the effects of those that concern small
// shards when the last of them is applied.
struct FrameBatch {
  PostBatch posts;
  std::shared_ptr<StreamBatch> effects = std::make_shared<StreamBatch>();
};

class ShardHost {
 public:
  // The objects that all shards of a server share. They must outlive the shards.
  struct Shared {
    std::span<const GroupUpdate> groups;  // the update of each parameter group, from group 0
    ExecutorFactory& strands;
    StreamTable& streams;
    Counters& counters;
    Journal& journal;
    Clock& clock;
    Tracer* tracer = nullptr;  // null: no trace
    // Called on a shard's strand with the effects of each event.
    std::function<void(ShardId, const Effects&)> applied = [](ShardId, const Effects&) {};
    ShardObserver* observer = nullptr;  // null: nobody observes the shards
  };

  // STRAND: its tasks use the shard, so it must be stopped before the shard is destroyed. GROUP is
  // the parameter group of the shard.
  ShardHost(ShardId id, const ShardOptions& options, const Shared& shared, Executor& strand,
            uint32_t group = 0)
      : id_(id),
        value_count_(options.value_count),
        streams_(shared.streams),
        counters_(shared.counters),
        journal_(shared.journal),
        clock_(shared.clock),
        tracer_(shared.tracer),
        applied_effects_(shared.applied),
        observer_(shared.observer),
        shard_(options, *shared.groups[group].optimizer, shared.groups[group].schedule),
        next_(options.rule.max_workers),
        progress_(shared.clock.Now()),
        strand_(strand) {}

  ShardId id() const { return id_; }
  size_t value_count() const { return value_count_; }
  // Return the state after the last event that the shard has applied. The first step that WORKER
  // has not finished; the largest such step of all workers; whether the shard is open.
  Step next(WorkerId worker) const { return Step{next_[worker.value].load()}; }
  Step largest_next() const { return Step{largest_next_.load()}; }
  bool open() const { return open_.load(); }
  // Returns the shard's frontier after the last event.
  Step frontier() const { return Step{frontier_.load(std::memory_order_relaxed)}; }

  // Returns the number of submitted events that the shard has not applied yet.
  uint64_t queued_event_count() const { return queued_event_count_; }
  // Return the total time that the shard applied pushes, including the optimizer, and that it
  // encoded parameters for readers.
  absl::Duration decode_time() const { return absl::Nanoseconds(decode_nanos_.load()); }
  absl::Duration encode_time() const { return absl::Nanoseconds(encode_nanos_.load()); }

  // Calls WORK(shard) on the strand, after all work that was posted earlier.
  template <typename Work>
  void Post(Work work) {
    strand_.Post([this, work = std::move(work)]() mutable { work(shard_); });
  }

  // Applies EVENT on the strand as soon as it is durable, then calls DONE(effects) there. SENDER is
  // the stream from which EVENT arrived; null: no stream. Events are applied in the order of the
  // calls of Submit. FRAME: the frame from which EVENT arrived; null: none.
  template <typename Done>
  void Submit(Event event, std::shared_ptr<ServerStream> sender, Done done,
              FrameBatch* frame = nullptr);

  // Restore and Replay rebuild the shard before the server uses its strand.
  absl::Status Restore(const SavedShard& saved);
  // Applies a record of the log, unless the restored state contains it.
  void Replay(LogSequence sequence, const Event& event);

  // Passes the shard's state to SAVED at once or after a later event: as soon as the frontier has
  // reached FROM and no gradient is outside an update. The state contains all events up to the log
  // record DURABLE at least.
  void SaveWhenPossible(LogSequence durable, Step from, std::function<void(SavedShard)> saved);
  // A call of SaveWhenPossible that still waits for its step no longer waits for it.
  void SaveEarly();

  // Applies EVENT and adds its effects to the counters. Sends the verdict to SENDER, the stream
  // from which EVENT arrived (null if no stream). Sends each answered read to the stream of the
  // reading worker. SEQUENCE: the record of EVENT; 0 without a log. BATCH: see
  // ServerStream::AddVerdict.
  Effects Apply(const Event& event, ServerStream* sender, LogSequence sequence = 0,
                StreamBatch* batch = nullptr);

  // Call on the strand.
  const ShardProgress& progress() const { return progress_; }

  // Begins to measure the times of the workers' steps, at the first call. Returns the times so far.
  const StepTimes& MeasureSteps();

  // Tells every worker with a waiting read why the read waits, and calls AskForValues.
  void SendWaitNotices();

  // Until the shard has values, ensures that one connected worker with a waiting read is asked to
  // send them: the same worker as before if its stream is still open, else the next one.
  void AskForValues();

 private:
  // The stream of the worker that was asked to send the shard's first values.
  struct Seeder {
    WorkerId worker;
    std::weak_ptr<ServerStream> stream;
  };

  bool IsSeeder(const std::shared_ptr<ServerStream>& stream) const {
    return stream != nullptr && seeder_.has_value() && seeder_->stream.lock() == stream;
  }
  void SaveIfPossible();
  int64_t NanosecondsSince(absl::Time begin) {
    return absl::ToInt64Nanoseconds(clock_.Now() - begin);
  }
  // Stores the progress of EVENT's worker, or of all workers, for other threads.
  void StoreProgress(const Event& event);
  void StoreProgress(WorkerId worker);
  void StoreAllProgress();
  // Counts the updates since COUNTED that left a value at the largest finite float. Logs a warning
  // when the first such update follows one without.
  void ReportSaturation(uint64_t counted);
  // Applies EVENT to the shard. A push is folded here, and may complete an update.
  Effects Fold(const Event& event);
  // Passes ANSWERS to the streams of their workers.
  void SendAnswers(const std::vector<ReadAnswer>& answers, StreamBatch* batch);

  const ShardId id_;
  const size_t value_count_;
  StreamTable& streams_;
  Counters& counters_;
  Journal& journal_;
  Clock& clock_;
  Tracer* const tracer_;
  const std::function<void(ShardId, const Effects&)> applied_effects_;
  ShardObserver* const observer_;
  Shard shard_;
  // Copies of the shard's progress, which other threads read. next_ is indexed by worker number.
  std::vector<std::atomic<uint64_t>> next_;
  std::atomic<uint64_t> largest_next_ = 0;
  std::atomic<bool> open_ = false;
  // Only the strand changes the two times.
  std::atomic<int64_t> decode_nanos_ = 0;
  std::atomic<int64_t> encode_nanos_ = 0;
  std::atomic<uint64_t> queued_event_count_ = 0;
  bool saturated_ = false;  // Shard::saturated() after the last event
  // Every unsent answer of a stream shares ownership.
  const std::shared_ptr<PublishedSlots> slots_ = std::make_shared<PublishedSlots>();
  std::optional<Seeder> seeder_;
  std::optional<StepTimes> step_times_;
  std::atomic<uint64_t> frontier_ = 0;
  ShardProgress progress_;
  LogSequence applied_ = 0;                // the last log record that the shard's state contains
  std::function<void(SavedShard)> saved_;  // set while a checkpoint waits for the shard's state
  Step save_from_;                         // the checkpoint waits until the frontier is here
  Executor& strand_;
};

template <typename Done>
void ShardHost::Submit(Event event, std::shared_ptr<ServerStream> sender, Done done,
                       FrameBatch* frame) {
  std::shared_ptr<StreamBatch> batch;
  if (frame != nullptr && value_count_ <= kSmallShard) batch = frame->effects;
  ++queued_event_count_;
  if (!journal_.logs()) {
    Executor::Task task = [this, event = std::move(event), sender = std::move(sender),
                           done = std::move(done), batch = std::move(batch)]() mutable {
      --queued_event_count_;
      done(Apply(event, sender.get(), 0, batch.get()));
      SaveIfPossible();
    };
    if (frame == nullptr) return strand_.Post(std::move(task));
    return frame->posts.Add(strand_, std::move(task));
  }
  const ShardRecord record{id_, event};
  journal_.Append(record, [this, event = std::move(event), sender = std::move(sender),
                           done = std::move(done), batch = std::move(batch)](LogSequence sequence) {
    Post([this, event, sender, done, batch, sequence](Shard&) mutable {
      --queued_event_count_;
      done(Apply(event, sender.get(), sequence, batch.get()));
      applied_ = sequence;
      SaveIfPossible();
    });
  });
}

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_SHARD_HOST_H_
