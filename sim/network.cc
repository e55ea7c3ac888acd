#include "sim/network.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/memory/byte_chain.h"
#include "sim/call.h"

namespace thinwire::sim {
namespace {

constexpr absl::Duration kPeerTimeout = absl::Seconds(2);

std::string ServerName(ServerId server) {
  return absl::StrCat("server ", server.value, " (simulated)");
}

// The worker's end of a stream.
class WorkerStream final : public FrameStream {
 public:
  explicit WorkerStream(std::shared_ptr<SimulatedStream> stream) : stream_(std::move(stream)) {}
  ~WorkerStream() override { stream_->CloseByWorker(); }
  void Write(ByteChain frame) override { stream_->Write(frame); }
  void ReadNext() override { stream_->ReadNext(); }

 private:
  const std::shared_ptr<SimulatedStream> stream_;
};

}  // namespace

class Network::WorkerTransport final : public Transport {
 public:
  WorkerTransport(Network& network, WorkerId worker, OnFrame on_frame)
      : network_(network), worker_(worker), on_frame_(std::move(on_frame)) {}
  ~WorkerTransport() override { *alive_ = false; }

  std::string NameOf(ServerId server) const override { return ServerName(server); }
  std::unique_ptr<FrameStream> Open(ServerId server, StreamObserver& observer) override {
    Network& network = network_;
    const std::pair<WorkerId, ServerId> pair(worker_, server);
    const auto stream = std::make_shared<SimulatedStream>(
        network.wires_,
        StreamSetting{.worker = worker_,
                      .server = server,
                      .reach = [&network, pair] { return network.Reach(pair.first, pair.second); },
                      .breaks = [&network, pair] { return network.breaks_.erase(pair) > 0; },
                      .on_frame = on_frame_},
        observer);
    network.streams_.push_back(stream);
    stream->Open();
    return std::make_unique<WorkerStream>(stream);
  }
  void Join(ServerId server, const JoinRequest& request, absl::Duration timeout,
            Done<JoinReply> done) override {
    Call<JoinReply>(
        server, timeout,
        [request](Job& job, const auto& call) {
          job.Join(
              request, [call] { return call->abandoned(); },
              [call](absl::StatusOr<JoinReply> reply) { call->Answer(std::move(reply)); });
        },
        std::move(done));
  }
  void Heartbeat(ServerId server, const HeartbeatRequest& request, absl::Duration timeout,
                 Done<HeartbeatReply> done) override {
    Call<HeartbeatReply>(
        server, timeout,
        [request](Job& job, const auto& call) {
          job.Call(request, [call](absl::StatusOr<HeartbeatReply> reply) {
            call->Answer(std::move(reply));
          });
        },
        std::move(done));
  }
  void Leave(ServerId server, const LeaveRequest& request, absl::Duration timeout,
             Done<LeaveReply> done) override {
    Call<LeaveReply>(
        server, timeout,
        [request](Job& job, const auto& call) {
          job.Call(request,
                   [call](absl::StatusOr<LeaveReply> reply) { call->Answer(std::move(reply)); });
        },
        std::move(done));
  }
  // No client core calls Masters: tests read the jobs themselves.
  void Masters(ServerId, const MastersRequest&, uint64_t, absl::Duration,
               Done<std::vector<MastersChunk>> done) override {
    done(absl::UnimplementedError("masters of a simulated server"));
  }

 private:
  template <typename Reply>
  void Call(ServerId server, absl::Duration timeout,
            std::function<void(Job&, const std::shared_ptr<PendingCall<Reply>>&)> start,
            Done<Reply> done) {
    Wires& wires = network_.wires_;
    StartCall<Reply>({.time = wires.time(),
                      .reach = [&network = network_, worker = worker_, server]() -> Job* {
                        if (network.cut_calls_.contains({worker, server})) return nullptr;
                        return network.Reach(worker, server);
                      },
                      .latency = wires.Latency(wires.MachineOf(worker_), wires.MachineOf(server)),
                      .timeout = timeout,
                      .alive = alive_},
                     std::move(start), std::move(done));
  }

  Network& network_;
  const WorkerId worker_;
  const OnFrame on_frame_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class Network::LeadPeers final : public Peers {
 public:
  explicit LeadPeers(Network& network) : network_(network) {}
  ~LeadPeers() override { *alive_ = false; }

  std::string NameOf(ServerId server) const override { return ServerName(server); }
  void Start(ServerId server, AnyPeerCall call) override {
    if (const auto* change = std::get_if<PeerCall<SetModeRequest>>(&call)) {
      Repeat(server, change->request);
    }
    std::visit([&](auto& each) { Send(server, std::move(each)); }, call);
  }

 private:
  void Repeat(ServerId server, const SetModeRequest& request) {
    const auto repeated = network_.repeated_.extract(server);
    if (repeated.empty()) return;
    network_.wires_.time().After(repeated.mapped(), [&network = network_, server, request] {
      Job* const job = network.jobs_[server.value];
      if (job != nullptr) job->Call(request, [](const absl::StatusOr<SetModeReply>&) {});
    });
  }
  template <typename Request>
  void Send(ServerId server, PeerCall<Request> call) {
    using Reply = ReplyTo<Request>;
    Wires& wires = network_.wires_;
    StartCall<Reply>(
        {.time = wires.time(),
         .reach = [&network = network_, server]() -> Job* {
           return network.cut_from_lead_.contains(server) ? nullptr : network.jobs_[server.value];
         },
         .latency = wires.Latency(wires.MachineOf(ServerId{0}), wires.MachineOf(server)),
         .timeout = kPeerTimeout + WorkTime(call.request),
         .alive = alive_},
        [request = call.request](Job& job, const std::shared_ptr<PendingCall<Reply>>& pending) {
          job.Call(request,
                   [pending](absl::StatusOr<Reply> reply) { pending->Answer(std::move(reply)); });
        },
        std::move(call.done));
  }

  Network& network_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

template <typename Action>
void Network::ForEachStream(Action action) {
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  for (const std::weak_ptr<SimulatedStream>& weak : streams_) {
    if (const auto stream = weak.lock()) action(*stream);
  }
}

Network::Network(VirtualTime& time, uint32_t worker_count, uint32_t server_count,
                 const ClusterLinks& links, FrameCosts costs)
    : wires_(time, worker_count, server_count, links, std::move(costs)),
      jobs_(server_count, nullptr) {}

Network::~Network() {
  for (uint32_t s = 0; s < jobs_.size(); ++s) Detach(ServerId{s});
}

void Network::Attach(ServerId server, Job& job) { jobs_[server.value] = &job; }

void Network::Detach(ServerId server) {
  jobs_[server.value] = nullptr;
  ForEachStream([server](SimulatedStream& stream) {
    if (stream.server() == server) stream.EndProcess();
  });
}

std::unique_ptr<Transport> Network::Connect(WorkerId worker, OnFrame on_frame) {
  return std::make_unique<WorkerTransport>(*this, worker, std::move(on_frame));
}

std::unique_ptr<Peers> Network::ConnectLead() { return std::make_unique<LeadPeers>(*this); }

void Network::Break(WorkerId worker, ServerId server) {
  ForEachStream([=](SimulatedStream& stream) {
    if (stream.worker() == worker && stream.server() == server) stream.Break();
  });
}

void Network::Cut(WorkerId worker, ServerId server, bool cut) {
  if (!cut) {
    cut_.erase({worker, server});
    return;
  }
  cut_.insert({worker, server});
  Break(worker, server);
}

void Network::CutCalls(WorkerId worker, ServerId server, bool cut) {
  if (cut) {
    cut_calls_.insert({worker, server});
  } else {
    cut_calls_.erase({worker, server});
  }
}

void Network::CutFromLead(ServerId server, bool cut) {
  if (cut) {
    cut_from_lead_.insert(server);
  } else {
    cut_from_lead_.erase(server);
  }
}

Job* Network::Reach(WorkerId worker, ServerId server) const {
  return cut_.contains({worker, server}) ? nullptr : jobs_[server.value];
}

}  // namespace thinwire::sim
