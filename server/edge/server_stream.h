// ServerStream is the server's side of one worker's stream. It collects entries to send, has at
// most one write and one read in progress, and ends once.
//
// It acts on the network through a StreamLink and knows no gRPC. Its calls into the link never
// overlap, and finish is the last one.
//
// Thread-safe. REQUIRES of every caller: it holds a shared_ptr to the stream during the call.
#ifndef THINWIRE_SERVER_EDGE_SERVER_STREAM_H_
#define THINWIRE_SERVER_EDGE_SERVER_STREAM_H_

#include <deque>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/byte_chain.h"
#include "common/ids.h"
#include "proto/frame.h"
#include "server/core/read_form.h"
#include "server/edge/published_slots.h"
#include "server/edge/stream_outbox.h"

namespace thinwire {

// Runs functions one at a time in the order of the calls, on the calling threads.
//
// Unlike a strand it needs no thread change: a call to an idle executor runs its function at once,
// and then the functions that other threads add meanwhile. No lock is held while a function runs.
//
// Thread-safe.
class SerialExecutor {
 public:
  // If no function is running, runs WORK before this call returns. Otherwise queues WORK for the
  // thread that runs the current function, and returns at once. REQUIRES: the executor lives until
  // the call returns, even if WORK releases its owner.
  void Run(absl::AnyInvocable<void()> work) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  bool running_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<absl::AnyInvocable<void()>> waiting_ ABSL_GUARDED_BY(mu_);
};

// The network side of a stream.
struct StreamLink {
  std::function<void()> read;                       // requests one more frame
  std::function<void(const ByteChain&)> write;      // OnWritten follows
  std::function<void(const absl::Status&)> finish;  // the last call
};

class ServerStream {
 public:
  // COUNT_PARAMETERS is called with the payload bytes of each message with parameters, on any
  // thread.
  ServerStream(StreamLink link, Generation generation, Epoch epoch,
               std::function<void(uint64_t)> count_parameters);

  void AddVerdict(const VerdictEntry& verdict);
  // See StreamOutbox::AddAnswer. SLOTS outlives the stream.
  void AddAnswer(ShardId shard, Step step, const ReadForm& form, const PublishedSlots& slots,
                 PublishedDeltas deltas = {});
  void AddWaiting(const WaitingEntry& wait);

  // Call this when the payloads of the last frame are released. Requests the next frame as soon as
  // the outbox is below its limit, so a peer that never reads cannot make the outbox grow.
  void AllowRead();
  // Call this when the link's write has finished. If OK is false, the stream cannot write any more.
  void OnWritten(bool ok);

  // Sends all remaining entries, then finishes with STATUS. Only the first call to EndAfterFlush or
  // End sets the status.
  void EndAfterFlush(absl::Status status);
  // Finishes with STATUS as soon as no write is in progress.
  void End(absl::Status status);

 private:
  // All members below are used within serial_ only.
  void Advance();
  void WriteNext();

  const StreamLink link_;
  const Generation generation_;
  const Epoch epoch_;
  const std::function<void(uint64_t)> count_parameters_;

  SerialExecutor serial_;
  StreamOutbox outbox_;
  bool writing_ = false;
  bool read_wanted_ = false;
  bool ending_ = false;
  bool finished_ = false;
  absl::Status end_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_SERVER_STREAM_H_
