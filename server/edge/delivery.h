// Delivery: applies an event to a shard and brings its effects to where they belong: the verdict to
// the stream that sent the push, each answer to the stream of the worker that waited, and both to
// the counters.
//
// Thread-safe; each call is made on its shard's strand.
#ifndef THINWIRE_SERVER_EDGE_DELIVERY_H_
#define THINWIRE_SERVER_EDGE_DELIVERY_H_

#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/shard.h"
#include "server/edge/counters.h"
#include "server/edge/server_stream.h"
#include "server/edge/shard_host.h"
#include "server/edge/stream_table.h"

namespace thinwire {

class Delivery {
 public:
  // STREAMS and COUNTERS outlive it.
  Delivery(StreamTable& streams, Counters& counters) : streams_(streams), counters_(counters) {}

  // SENDER is null for what no stream sent.
  Effects Apply(ShardHost& host, Shard& shard, const Event& event, ServerStream* sender) const;

  // Tells every worker whose read waits at SHARD whom it waits for.
  void TellWaits(const ShardHost& host, const Shard& shard) const;

 private:
  StreamTable& streams_;
  Counters& counters_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_DELIVERY_H_
