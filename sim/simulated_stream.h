// SimulatedStream is the stream between a worker and a server of a simulated cluster, with both of
// its ends.
//
//   StreamObserver of the client core  <- down -  SimulatedStream  - up ->  Session of the job
//
// The bytes of each direction arrive in order or not at all. If a stream breaks, the frames under
// way are lost.
#ifndef THINWIRE_SIM_SIMULATED_STREAM_H_
#define THINWIRE_SIM_SIMULATED_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/transport/transport.h"
#include "common/base/ids.h"
#include "common/memory/byte_chain.h"
#include "common/time/executor.h"
#include "proto/frame.h"
#include "server/job/job.h"
#include "server/shards/session.h"
#include "sim/wires.h"

namespace thinwire::sim {

struct StreamSetting {
  WorkerId worker;
  ServerId server;
  // Returns the job at which the stream arrives; null: it is refused.
  std::function<Job*()> reach;
  // Called after the server has read a frame. Returns whether the stream breaks now.
  std::function<bool()> breaks;
  // Called before the worker reads a frame; null: nobody watches.
  std::function<bool(ServerFrame&)> on_frame;
};

// Not thread-safe. The events of the virtual time share ownership of a stream.
class SimulatedStream final : public std::enable_shared_from_this<SimulatedStream> {
 public:
  // WIRES must outlive the stream, OBSERVER the call of CloseByWorker().
  SimulatedStream(Wires& wires, StreamSetting setting, StreamObserver& observer);

  WorkerId worker() const { return setting_.worker; }
  ServerId server() const { return setting_.server; }

  // The worker's end, as FrameStream.
  void Open();
  void Write(const ByteChain& frame);
  void ReadNext();
  void CloseByWorker();

  // Ends the stream on both sides.
  void Break();
  // The server's process has ended.
  void EndProcess();

 private:
  // The frames of one direction: written, under way, arrived, read.
  struct Direction {
    using Cost = std::function<absl::Duration(const ByteChain&)>;

    const bool to_server;
    const size_t from, to;  // machines
    Wires::Work& sender;
    Wires::Work& receiver;
    const Cost send_cost, receive_cost;
    bool writes = false;           // the last write has not ended
    uint64_t bytes_under_way = 0;  // or not written yet
    std::deque<ByteChain> arrived;
    int reads = 0;  // requested and not delivered
  };

  // Returns TASK, which is dropped if the stream has broken.
  Executor::Task Bind(Executor::Task task);
  void Later(absl::Duration delay, Executor::Task task);

  void Arrive();
  void Write(Direction& direction, const ByteChain& frame);
  void Send(Direction& direction, const ByteChain& frame);
  // Ends the write of a direction if the stream has taken its frame.
  void EndWrite(Direction& direction);
  void Read(Direction& direction);
  void Deliver(Direction& direction);
  void DeliverToServer();
  void DeliverToWorker();
  void FinishByServer(const absl::Status& status);
  void CloseAtWorker(const absl::Status& status);
  void LoseWorker();

  Wires& wires_;
  const StreamSetting setting_;
  StreamObserver* observer_;          // null: the stream has ended for the worker
  std::unique_ptr<Session> session_;  // null before the stream has arrived and after its end
  Direction up_, down_;               // to the server, to the worker
  bool broken_ = false;
  std::optional<absl::Status> end_;  // the server has ended the stream
};

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_SIMULATED_STREAM_H_
