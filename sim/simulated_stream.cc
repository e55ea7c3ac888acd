#include "sim/simulated_stream.h"

#include <utility>

namespace thinwire::sim {
namespace {

// Return COST as a function of a frame's bytes. COST must outlive the result.
std::function<absl::Duration(const ByteChain&)> ByBytes(
    const std::function<absl::Duration(const WorkerFrame&)>& cost) {
  return [&cost](const ByteChain& frame) {
    return cost == nullptr ? absl::ZeroDuration() : cost(ParseWorkerFrame(frame).value());
  };
}

std::function<absl::Duration(const ByteChain&)> ByBytes(
    const std::function<absl::Duration(const ServerFrame&)>& cost) {
  return [&cost](const ByteChain& frame) {
    return cost == nullptr ? absl::ZeroDuration() : cost(ParseServerFrame(frame).value());
  };
}

}  // namespace

SimulatedStream::SimulatedStream(Wires& wires, StreamSetting setting, StreamObserver& observer)
    : wires_(wires),
      setting_(std::move(setting)),
      observer_(&observer),
      up_{.to_server = true,
          .from = wires.MachineOf(setting_.worker),
          .to = wires.MachineOf(setting_.server),
          .sender = wires.WorkOf(setting_.worker),
          .receiver = wires.WorkOf(setting_.server),
          .send_cost = ByBytes(wires.costs().worker_sends),
          .receive_cost = ByBytes(wires.costs().server_receives),
          .arrived = {}},
      down_{.to_server = false,
            .from = up_.to,
            .to = up_.from,
            .sender = up_.receiver,
            .receiver = up_.sender,
            .send_cost = ByBytes(wires.costs().server_sends),
            .receive_cost = ByBytes(wires.costs().worker_receives),
            .arrived = {},
            .reads = 1} {}

void SimulatedStream::Open() {
  Later(wires_.Latency(up_.from, up_.to), [this] { Arrive(); });
}

void SimulatedStream::Write(const ByteChain& frame) { Write(up_, frame); }

void SimulatedStream::ReadNext() { Read(down_); }

void SimulatedStream::CloseByWorker() {
  observer_ = nullptr;
  wires_.Send(up_.from, up_.to, 0, Bind([this] { LoseWorker(); }));
}

void SimulatedStream::Break() {
  if (std::exchange(broken_, true)) return;
  EndWrite(down_);
  wires_.time().After(absl::ZeroDuration(), [self = shared_from_this()] {
    self->LoseWorker();
    self->CloseAtWorker(absl::UnavailableError("connection reset"));
  });
}

void SimulatedStream::EndProcess() {
  Break();
  session_.reset();
}

Executor::Task SimulatedStream::Bind(Executor::Task task) {
  return [self = shared_from_this(), task = std::move(task)]() mutable {
    if (!self->broken_) task();
  };
}

void SimulatedStream::Later(absl::Duration delay, Executor::Task task) {
  wires_.time().After(delay, Bind(std::move(task)));
}

void SimulatedStream::Arrive() {
  Job* const job = setting_.reach();
  if (job == nullptr) {
    broken_ = true;
    return wires_.time().After(wires_.Latency(up_.from, up_.to), [self = shared_from_this()] {
      self->CloseAtWorker(absl::UnavailableError("connection refused"));
    });
  }
  const auto self = shared_from_this();
  StreamLink link;
  link.read = [self] { self->Read(self->up_); };
  link.write = [self](const ByteChain& bytes) { self->Write(self->down_, bytes); };
  link.finish = [self](const absl::Status& status) { self->FinishByServer(status); };
  session_ = job->Open(std::move(link));
  session_->Start();
}

void SimulatedStream::Write(Direction& direction, const ByteChain& frame) {
  const absl::Duration cost = direction.send_cost(frame);
  direction.writes = true;
  direction.bytes_under_way += frame.size();
  wires_.Do(direction.sender, cost,
            [self = shared_from_this(), &direction, frame] { self->Send(direction, frame); });
  EndWrite(direction);
}

void SimulatedStream::Send(Direction& direction, const ByteChain& frame) {
  wires_.Count(direction.to_server, frame.size());
  wires_.Send(
      direction.from, direction.to, frame.size(), [self = shared_from_this(), &direction, frame] {
        direction.bytes_under_way -= frame.size();
        self->EndWrite(direction);
        const absl::Duration cost = direction.receive_cost(frame);
        self->wires_.Do(direction.receiver, cost, self->Bind([&stream = *self, &direction, frame] {
          direction.arrived.push_back(frame);
          stream.Deliver(direction);
        }));
      });
}

void SimulatedStream::EndWrite(Direction& direction) {
  if (!direction.writes) return;
  const bool taken = direction.bytes_under_way < wires_.buffer_bytes();
  if (direction.to_server) {
    if (!taken) return;
    direction.writes = false;
    return Later(absl::ZeroDuration(), [this] {
      if (observer_ != nullptr) observer_->OnWritten();
    });
  }
  // The session waits for the end of a write even if the stream breaks.
  if (!taken && !broken_) return;
  direction.writes = false;
  wires_.time().After(absl::ZeroDuration(), [self = shared_from_this()] {
    if (self->session_ != nullptr) self->session_->OnWritten(!self->broken_);
  });
}

void SimulatedStream::Read(Direction& direction) {
  ++direction.reads;
  Later(absl::ZeroDuration(), [this, &direction] { Deliver(direction); });
}

void SimulatedStream::Deliver(Direction& direction) {
  if (direction.to_server) {
    DeliverToServer();
  } else {
    DeliverToWorker();
  }
}

void SimulatedStream::DeliverToServer() {
  while (session_ != nullptr && up_.reads > 0 && !up_.arrived.empty()) {
    const ByteChain frame = std::move(up_.arrived.front());
    up_.arrived.pop_front();
    --up_.reads;
    session_->OnFrame(frame);
    if (setting_.breaks()) Break();
  }
}

void SimulatedStream::DeliverToWorker() {
  while (observer_ != nullptr && down_.reads > 0 && !down_.arrived.empty()) {
    ByteChain frame = std::move(down_.arrived.front());
    down_.arrived.pop_front();
    --down_.reads;
    ServerFrame parsed = ParseServerFrame(frame).value();
    if (setting_.on_frame != nullptr && setting_.on_frame(parsed)) frame = WriteFrame(parsed);
    observer_->OnFrame(std::move(frame));
  }
  if (down_.arrived.empty() && end_.has_value()) CloseAtWorker(*end_);
}

void SimulatedStream::FinishByServer(const absl::Status& status) {
  // The session calls this function.
  wires_.time().After(absl::ZeroDuration(),
                      [self = shared_from_this()] { self->session_.reset(); });
  wires_.Send(down_.from, down_.to, 0, [self = shared_from_this(), status] {
    self->wires_.Do(self->down_.receiver, absl::ZeroDuration(),
                    self->Bind([&stream = *self, status] {
                      stream.end_ = status;
                      stream.DeliverToWorker();
                    }));
  });
}

void SimulatedStream::CloseAtWorker(const absl::Status& status) {
  broken_ = true;
  if (StreamObserver* const observer = std::exchange(observer_, nullptr)) {
    observer->OnClosed(status);
  }
}

void SimulatedStream::LoseWorker() {
  if (session_ != nullptr) session_->OnBroken();
}

}  // namespace thinwire::sim
