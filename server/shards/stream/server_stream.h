// ServerStream is the server's side of one worker's stream. It queues verdicts, answers and waiting
// notices until they are sent, and ends the stream exactly once. At most one write and one read are
// in progress.
//
// A ServerStream uses the network only through a StreamLink. It never calls two functions of the
// link at the same time, and calls `finish` last.
//
// Thread-safe. REQUIRES: every caller holds a shared_ptr to the stream during the call.
#ifndef THINWIRE_SERVER_SHARDS_STREAM_SERVER_STREAM_H_
#define THINWIRE_SERVER_SHARDS_STREAM_SERVER_STREAM_H_

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "common/memory/byte_chain.h"
#include "proto/frame.h"
#include "server/core/read_form.h"
#include "server/shards/stream/published_slots.h"
#include "server/shards/stream/stream_outbox.h"

namespace thinwire {

// SerialExecutor runs functions one at a time, in the order of the calls of Run(), on the calling
// threads.
//
// Unlike a strand, a SerialExecutor has no threads of its own: a call to an idle executor runs its
// function at once, then the functions that other threads have added meanwhile. The executor holds
// no lock while a function runs.
//
// Thread-safe.
class SerialExecutor {
 public:
  // Runs WORK now if no function is running. Otherwise the thread that runs the current function
  // runs WORK later, possibly after this call has returned. REQUIRES: the executor lives until the
  // call returns, even if WORK releases the owner of the executor.
  void Run(absl::AnyInvocable<void()> work) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  bool running_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<absl::AnyInvocable<void()>> waiting_ ABSL_GUARDED_BY(mu_);
};

// The functions with which a ServerStream uses its network connection.
struct StreamLink {
  std::function<void()> read;                       // requests one more frame
  std::function<void(const ByteChain&)> write;      // starts a write, which ends with OnWritten
  std::function<void(const absl::Status&)> finish;  // ends the stream; called last
  // Call their argument, on another thread, when the bandwidth limit of the process permits a
  // further message. Null: no limit. The first message of a stream in each direction does not wait.
  std::function<void(absl::AnyInvocable<void()>)> await_write = nullptr;
  std::function<void(absl::AnyInvocable<void()>)> await_read = nullptr;
  // Returns OK if the peer may act as this process of a worker. Called for each message.
  std::function<absl::Status(WorkerId, Incarnation)> check_sender = [](WorkerId, Incarnation) {
    return absl::OkStatus();
  };
};

class ServerStream;

// StreamBatch makes streams send the entries of many small shards together: all that are added
// until the batch is destroyed. The streams send in the order in which they were added first.
// Thread-safe.
class StreamBatch {
 public:
  StreamBatch() = default;
  ~StreamBatch();
  StreamBatch(const StreamBatch&) = delete;
  StreamBatch& operator=(const StreamBatch&) = delete;

  void Add(std::shared_ptr<ServerStream> stream) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  std::vector<std::shared_ptr<ServerStream>> streams_ ABSL_GUARDED_BY(mu_);  // each once
};

class ServerStream : public std::enable_shared_from_this<ServerStream> {
 public:
  // COUNT_SENT is called for each message, on any thread, with its size and the number of payload
  // bytes of its parameters.
  ServerStream(StreamLink link, Generation generation, Epoch epoch,
               std::function<void(uint64_t, uint64_t)> count_sent);

  // Adds a verdict, which the stream sends at once, or at the end of BATCH.
  void AddVerdict(const VerdictEntry& verdict, StreamBatch* batch = nullptr);
  // Adds the answer to a read; StreamOutbox::AddAnswer explains the arguments. The stream sends it
  // at once, or at the end of BATCH.
  void AddAnswer(ShardId shard, Step step, const ReadForm& form,
                 std::shared_ptr<const PublishedSlots> slots, StepsAhead ahead = {},
                 StreamBatch* batch = nullptr);
  // Sends what was added.
  void Send();
  void AddWaiting(const WaitingEntry& wait);

  // Allows the stream to read one more frame, and returns without waiting. The stream requests the
  // frame once the number of queued verdicts, answers and waiting notices is below a limit. The
  // limit bounds the memory used for a peer that writes but never reads. The session calls
  // AllowRead when all payloads of the last frame are released.
  void AllowRead();
  // Must be called when a write of the link has finished. If OK is false, the stream cannot write
  // any more.
  void OnWritten(bool ok);

  // Sends the queued verdicts, answers and waiting notices, then ends the stream with STATUS. Only
  // the first call to EndAfterFlush or End sets the status.
  void EndAfterFlush(absl::Status status);
  // Drops the queue and ends the stream with STATUS as soon as no write is in progress.
  void End(absl::Status status);

 private:
  // Whether the bandwidth limit permits a message.
  enum class Turn { kNone, kAwaited, kHeld };

  // Uses the turn, if it is held. Otherwise awaits it with AWAIT, and then calls Advance. Returns
  // whether a message may begin.
  bool TakeTurn(Turn ServerStream::*turn,
                const std::function<void(absl::AnyInvocable<void()>)>& await);
  // TakeTurn, Advance, WriteNext and all members after serial_ are used only by functions that
  // serial_ runs.
  void Advance();
  void WriteNext();

  const StreamLink link_;
  const Generation generation_;
  const Epoch epoch_;
  const std::function<void(uint64_t, uint64_t)> count_sent_;

  SerialExecutor serial_;
  StreamOutbox outbox_;
  Turn write_turn_ = Turn::kHeld;
  Turn read_turn_ = Turn::kHeld;
  bool writing_ = false;
  bool read_wanted_ = false;
  bool ending_ = false;
  bool finished_ = false;
  absl::Status end_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_STREAM_SERVER_STREAM_H_
