// ServerStream: one worker's stream as the server writes it. It collects what is to be said, has at
// most one write and one read under way, and ends once.
//
// What it does to the wire goes through a StreamLink, so that it knows no gRPC; the calls into the
// link never overlap, and none comes after finish.
//
// Thread-safe. REQUIRES of every caller: to hold a shared_ptr while it calls.
#ifndef THINWIRE_SERVER_EDGE_SERVER_STREAM_H_
#define THINWIRE_SERVER_EDGE_SERVER_STREAM_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "common/byte_chain.h"
#include "common/ids.h"
#include "proto/frame.h"
#include "server/core/read_form.h"
#include "server/edge/published_slots.h"
#include "server/edge/serial.h"
#include "server/edge/stream_outbox.h"

namespace thinwire {

// The wire's side of a stream.
struct StreamLink {
  std::function<void()> read;                       // asks for one more frame
  std::function<void(const ByteChain&)> write;      // OnWritten follows
  std::function<void(const absl::Status&)> finish;  // the last call
};

class ServerStream {
 public:
  // COUNT_PARAMETERS, told the payload bytes of each message with parameters, is called from many
  // threads.
  ServerStream(StreamLink link, Generation generation, Epoch epoch,
               std::function<void(uint64_t)> count_parameters);

  void AddVerdict(const VerdictEntry& verdict);
  // As StreamOutbox. SLOTS outlives the stream.
  void AddAnswer(ShardId shard, Step step, const ReadForm& form, const PublishedSlots& slots,
                 PublishedDeltas deltas = {});
  void AddWait(const WaitingEntry& wait);

  // The last frame's payloads are let go: the next one may come. It is asked for when the outbox is
  // not too full, so that a peer that writes and never reads stops itself.
  void ReadOn();
  // The link's write is done; with OK false nothing more can be written.
  void OnWritten(bool ok);

  // Says what is left, then finishes with STATUS. The first end counts.
  void EndWhenSaid(absl::Status status);
  // Finishes with STATUS as soon as no write is under way.
  void End(absl::Status status);

 private:
  // All below run within serial_.
  void Go();
  void WriteNext();

  const StreamLink link_;
  const Generation generation_;
  const Epoch epoch_;
  const std::function<void(uint64_t)> count_parameters_;

  Serial serial_;
  StreamOutbox outbox_;
  bool writing_ = false;
  bool read_wanted_ = false;
  bool ending_ = false;
  bool finished_ = false;
  absl::Status end_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_SERVER_STREAM_H_
