#include "sim/network.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/memory/byte_chain.h"
#include "server/shards/session.h"

namespace thinwire::sim {
namespace {

constexpr absl::Duration kPeerTimeout = absl::Seconds(2);

// Returns the links of the machines: of the workers, then of the servers.
std::vector<LinkSpec> LinksOf(uint32_t worker_count, uint32_t server_count,
                              const ClusterLinks& links) {
  std::vector<LinkSpec> all(worker_count, links.worker);
  if (!links.servers_beside_workers) all.resize(worker_count + server_count, links.server);
  return all;
}

absl::Duration CostOf(const std::function<absl::Duration(const WorkerFrame&)>& cost,
                      const ByteChain& frame) {
  return cost == nullptr ? absl::ZeroDuration() : cost(ParseWorkerFrame(frame).value());
}

absl::Duration CostOf(const std::function<absl::Duration(const ServerFrame&)>& cost,
                      const ByteChain& frame) {
  return cost == nullptr ? absl::ZeroDuration() : cost(ParseServerFrame(frame).value());
}

std::string ServerName(ServerId server) {
  return absl::StrCat("server ", server.value, " (simulated)");
}

}  // namespace

// One stream with its two ends. The events of the network share ownership of it.
class Network::Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(Network& network, WorkerId worker, ServerId server, StreamObserver& observer,
         OnFrame on_frame)
      : network_(network),
        time_(network.time_),
        machine_(network.MachineOf(server)),
        worker_(worker),
        server_(server),
        on_frame_(std::move(on_frame)),
        observer_(&observer) {}

  WorkerId worker() const { return worker_; }
  ServerId server() const { return server_; }

  void Open() {
    Later(network_.Latency(worker_.value, machine_), [this] { Arrive(); });
  }

  // The worker's end.

  void Write(ByteChain frame) {
    const absl::Duration cost = CostOf(network_.costs_.worker_sends, frame);
    worker_writes_ = true;
    to_server_ += frame.size();
    network_.Do(network_.worker_work_[worker_.value], cost,
                [self = shared_from_this(), frame] { self->SendToServer(frame); });
    EndWrites();
  }
  void ReadNext() {
    ++worker_reads_;
    Later(absl::ZeroDuration(), [this] { DeliverToWorker(); });
  }
  void CloseByWorker() {
    observer_ = nullptr;
    network_.Send(worker_.value, machine_, 0, Bind([this] { LoseWorker(); }));
  }

  // Ends the stream on both sides.
  void Break() {
    if (std::exchange(broken_, true)) return;
    EndWrites();
    time_.After(absl::ZeroDuration(), [self = shared_from_this()] {
      self->LoseWorker();
      self->CloseAtWorker(absl::UnavailableError("connection reset"));
    });
  }
  // The server's process has ended.
  void EndProcess() {
    Break();
    session_.reset();
  }

 private:
  // Returns TASK, which is dropped if the stream has broken.
  Executor::Task Bind(Executor::Task task) {
    return [self = shared_from_this(), task = std::move(task)]() mutable {
      if (!self->broken_) task();
    };
  }
  void Later(absl::Duration delay, Executor::Task task) {
    time_.After(delay, Bind(std::move(task)));
  }

  void Arrive() {
    Job* const job = network_.Reach(worker_, server_);
    if (job == nullptr) {
      broken_ = true;
      return time_.After(network_.Latency(worker_.value, machine_), [self = shared_from_this()] {
        self->CloseAtWorker(absl::UnavailableError("connection refused"));
      });
    }
    const auto self = shared_from_this();
    StreamLink link;
    link.read = [self] {
      ++self->server_reads_;
      self->Later(absl::ZeroDuration(), [&stream = *self] { stream.DeliverToServer(); });
    };
    link.write = [self](const ByteChain& bytes) { self->WriteToWorker(bytes); };
    link.finish = [self](const absl::Status& status) { self->FinishByServer(status); };
    session_ = job->Open(std::move(link));
    session_->Start();
  }
  void DeliverToServer() {
    while (session_ != nullptr && server_reads_ > 0 && !at_server_.empty()) {
      const ByteChain frame = std::move(at_server_.front());
      at_server_.pop_front();
      --server_reads_;
      session_->OnFrame(frame);
      if (network_.breaks_.erase({worker_, server_}) > 0) Break();
    }
  }
  void SendToServer(const ByteChain& frame) {
    network_.Count(/*to_server=*/true, frame.size());
    network_.Send(worker_.value, machine_, frame.size(), [self = shared_from_this(), frame] {
      self->to_server_ -= frame.size();
      self->EndWrites();
      const absl::Duration cost = CostOf(self->network_.costs_.server_receives, frame);
      self->network_.Do(self->network_.server_work_[self->server_.value], cost,
                        self->Bind([&stream = *self, frame] {
                          stream.at_server_.push_back(frame);
                          stream.DeliverToServer();
                        }));
    });
  }
  void WriteToWorker(const ByteChain& frame) {
    const absl::Duration cost = CostOf(network_.costs_.server_sends, frame);
    server_writes_ = true;
    to_worker_ += frame.size();
    network_.Do(network_.server_work_[server_.value], cost,
                [self = shared_from_this(), frame] { self->SendToWorker(frame); });
    EndWrites();
  }
  void SendToWorker(const ByteChain& frame) {
    network_.Count(/*to_server=*/false, frame.size());
    network_.Send(machine_, worker_.value, frame.size(), [self = shared_from_this(), frame] {
      self->to_worker_ -= frame.size();
      self->EndWrites();
      const absl::Duration cost = CostOf(self->network_.costs_.worker_receives, frame);
      self->network_.Do(self->network_.worker_work_[self->worker_.value], cost,
                        self->Bind([&stream = *self, frame] {
                          stream.at_worker_.push_back(frame);
                          stream.DeliverToWorker();
                        }));
    });
  }
  // Ends the writes whose frames the stream has taken. The session waits for the end of a write even
  // if the stream breaks.
  void EndWrites() {
    if (worker_writes_ && to_server_ < network_.buffer_bytes_) {
      worker_writes_ = false;
      Later(absl::ZeroDuration(), [this] {
        if (observer_ != nullptr) observer_->OnWritten();
      });
    }
    if (server_writes_ && (broken_ || to_worker_ < network_.buffer_bytes_)) {
      server_writes_ = false;
      time_.After(absl::ZeroDuration(), [self = shared_from_this()] {
        if (self->session_ != nullptr) self->session_->OnWritten(!self->broken_);
      });
    }
  }
  void FinishByServer(const absl::Status& status) {
    // The session calls this function.
    time_.After(absl::ZeroDuration(), [self = shared_from_this()] { self->session_.reset(); });
    network_.Send(machine_, worker_.value, 0, [self = shared_from_this(), status] {
      self->network_.Do(self->network_.worker_work_[self->worker_.value], absl::ZeroDuration(),
                        self->Bind([&stream = *self, status] {
                          stream.end_ = status;
                          stream.DeliverToWorker();
                        }));
    });
  }
  void DeliverToWorker() {
    while (observer_ != nullptr && worker_reads_ > 0 && !at_worker_.empty()) {
      ByteChain frame = std::move(at_worker_.front());
      at_worker_.pop_front();
      --worker_reads_;
      ServerFrame parsed = ParseServerFrame(frame).value();
      if (on_frame_ != nullptr && on_frame_(parsed)) frame = WriteFrame(parsed);
      observer_->OnFrame(std::move(frame));
    }
    if (at_worker_.empty() && end_.has_value()) CloseAtWorker(*end_);
  }
  void CloseAtWorker(const absl::Status& status) {
    broken_ = true;
    if (StreamObserver* const observer = std::exchange(observer_, nullptr)) {
      observer->OnClosed(status);
    }
  }
  void LoseWorker() {
    if (session_ != nullptr) session_->OnBroken();
  }

  Network& network_;
  VirtualTime& time_;
  const size_t machine_;  // of the server
  const WorkerId worker_;
  const ServerId server_;
  const OnFrame on_frame_;
  StreamObserver* observer_;          // null: the stream has ended for the worker
  std::unique_ptr<Session> session_;  // null before the stream has arrived and after its end
  bool broken_ = false;
  bool worker_writes_ = false, server_writes_ = false;  // a write has not ended
  uint64_t to_server_ = 0, to_worker_ = 0;              // bytes that have not arrived
  std::deque<ByteChain> at_server_, at_worker_;         // arrived and not requested yet
  int server_reads_ = 0;                                // requested and not delivered
  int worker_reads_ = 1;
  std::optional<absl::Status> end_;  // the server has ended the stream
};

class Network::WorkerStream final : public FrameStream {
 public:
  explicit WorkerStream(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  ~WorkerStream() override { stream_->CloseByWorker(); }
  void Write(ByteChain frame) override { stream_->Write(std::move(frame)); }
  void ReadNext() override { stream_->ReadNext(); }

 private:
  const std::shared_ptr<Stream> stream_;
};

// A call between its two ends. The job destroys it unanswered if its process ends.
template <typename Reply>
class Network::PendingCall {
 public:
  PendingCall(VirtualTime& time, absl::Duration latency, std::function<Job*()> reach,
              std::shared_ptr<const bool> alive, std::function<void(absl::StatusOr<Reply>)> done)
      : time_(time),
        latency_(latency),
        reach_(std::move(reach)),
        done_(std::make_shared<Done>(Done{std::move(alive), std::move(done)})) {}
  ~PendingCall() { Answer(absl::UnavailableError("connection reset")); }

  // The server has answered. The reply is lost if the connection is cut meanwhile.
  void Answer(absl::StatusOr<Reply> reply) {
    if (std::exchange(answered_, true)) return;
    time_.After(latency_, [done = done_, reach = reach_, reply = std::move(reply)] {
      if (!reply.ok() || reach() != nullptr) done->End(reply);
    });
  }
  // Ends the call for its caller.
  void EndAfter(absl::Duration timeout) {
    time_.After(timeout, [done = done_, timeout] {
      done->End(absl::DeadlineExceededError(
          absl::StrCat("no answer (timeout ", absl::FormatDuration(timeout), ")")));
    });
  }
  // Returns whether the caller no longer waits.
  bool abandoned() const { return done_->function == nullptr || !*done_->alive; }

 private:
  struct Done {
    void End(absl::StatusOr<Reply> reply) {
      const auto called = std::exchange(function, nullptr);
      if (called != nullptr && *alive) called(std::move(reply));
    }
    std::shared_ptr<const bool> alive;  // whether the caller's process exists
    std::function<void(absl::StatusOr<Reply>)> function;
  };

  VirtualTime& time_;
  const absl::Duration latency_;
  const std::function<Job*()> reach_;
  const std::shared_ptr<Done> done_;
  bool answered_ = false;
};

template <typename Reply>
void Network::Call(std::function<Job*()> reach, absl::Duration latency, absl::Duration timeout,
                   std::shared_ptr<const bool> alive,
                   std::function<void(Job&, const std::shared_ptr<PendingCall<Reply>>&)> start,
                   std::function<void(absl::StatusOr<Reply>)> done) {
  const auto call = std::make_shared<PendingCall<Reply>>(time_, latency, reach, std::move(alive),
                                                         std::move(done));
  call->EndAfter(timeout);
  time_.After(latency, [call, reach, start = std::move(start)] {
    Job* const job = reach();
    if (job == nullptr) return call->Answer(absl::UnavailableError("connection refused"));
    start(*job, call);
  });
}

class Network::WorkerTransport final : public Transport {
 public:
  WorkerTransport(Network& network, WorkerId worker, OnFrame on_frame)
      : network_(network), worker_(worker), on_frame_(std::move(on_frame)) {}
  ~WorkerTransport() override { *alive_ = false; }

  std::string NameOf(ServerId server) const override { return ServerName(server); }
  std::unique_ptr<FrameStream> Open(ServerId server, StreamObserver& observer) override {
    const auto stream = std::make_shared<Stream>(network_, worker_, server, observer, on_frame_);
    network_.streams_.push_back(stream);
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
          job.Heartbeat(request, [call](absl::StatusOr<HeartbeatReply> reply) {
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
          job.Leave(request,
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
    network_.Call<Reply>(
        [&network = network_, worker = worker_, server]() -> Job* {
          if (network.cut_calls_.contains({worker, server})) return nullptr;
          return network.Reach(worker, server);
        },
        network_.Latency(worker_.value, network_.MachineOf(server)), timeout, alive_,
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
  void Admit(ServerId server, const AdmitRequest& request, AdmitDone done) override {
    Call(server, &Job::Admit, request, std::move(done));
  }
  void Follow(ServerId server, const FollowRequest& request, FollowDone done) override {
    Call(server, &Job::Follow, request, std::move(done));
  }
  void Rollback(ServerId server, const RollbackRequest& request, RollbackDone done) override {
    Call(server, &Job::Rollback, request, std::move(done));
  }
  void SetMode(ServerId server, const SetModeRequest& request, SetModeDone done) override {
    if (const auto repeated = network_.repeated_.extract(server); !repeated.empty()) {
      network_.time_.After(repeated.mapped(), [&network = network_, server, request] {
        Job* const job = network.jobs_[server.value];
        if (job != nullptr) job->SetMode(request, [](const absl::StatusOr<SetModeReply>&) {});
      });
    }
    Call(server, &Job::SetMode, request, std::move(done));
  }
  void SaveCheckpoint(ServerId server, const SaveCheckpointRequest& request,
                      SaveDone done) override {
    Call(server, &Job::SaveCheckpoint, request, std::move(done), absl::Seconds(request.seconds()));
  }
  void Clip(ServerId server, const ClipRequest& request, ClipDone done) override {
    Call(server, &Job::Clip, request, std::move(done));
  }

 private:
  template <typename Request, typename Reply>
  void Call(ServerId server, void (Job::*method)(Request, Job::Done<Reply>), const Request& request,
            std::function<void(absl::StatusOr<Reply>)> done,
            absl::Duration work = absl::ZeroDuration()) {
    const auto reach = [&network = network_, server]() -> Job* {
      return network.cut_from_lead_.contains(server) ? nullptr : network.jobs_[server.value];
    };
    network_.Call<Reply>(
        reach, network_.Latency(network_.MachineOf(ServerId{0}), network_.MachineOf(server)),
        kPeerTimeout + work, alive_,
        [method, request](Job& job, const std::shared_ptr<PendingCall<Reply>>& call) {
          (job.*method)(request,
                        [call](absl::StatusOr<Reply> reply) { call->Answer(std::move(reply)); });
        },
        std::move(done));
  }

  Network& network_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

template <typename Action>
void Network::ForEachStream(Action action) {
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  for (const std::weak_ptr<Stream>& weak : streams_) {
    if (const auto stream = weak.lock()) action(*stream);
  }
}

Network::Network(VirtualTime& time, uint32_t worker_count, uint32_t server_count,
                 const ClusterLinks& links, FrameCosts costs)
    : time_(time),
      costs_(std::move(costs)),
      buffer_bytes_(links.buffer_bytes),
      first_server_(links.servers_beside_workers ? 0 : worker_count),
      specs_(LinksOf(worker_count, server_count, links)),
      links_(specs_, time),
      worker_work_(worker_count),
      server_work_(server_count),
      jobs_(server_count, nullptr) {}

Network::~Network() {
  for (uint32_t s = 0; s < jobs_.size(); ++s) Detach(ServerId{s});
}

void Network::Attach(ServerId server, Job& job) { jobs_[server.value] = &job; }

void Network::Detach(ServerId server) {
  jobs_[server.value] = nullptr;
  ForEachStream([server](Stream& stream) {
    if (stream.server() == server) stream.EndProcess();
  });
}

std::unique_ptr<Transport> Network::Connect(WorkerId worker, OnFrame on_frame) {
  return std::make_unique<WorkerTransport>(*this, worker, std::move(on_frame));
}

std::unique_ptr<Peers> Network::ConnectLead() { return std::make_unique<LeadPeers>(*this); }

void Network::Break(WorkerId worker, ServerId server) {
  ForEachStream([=](Stream& stream) {
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

absl::Duration Network::Latency(size_t a, size_t b) const {
  return ideal_ || a == b ? absl::ZeroDuration() : specs_[a].latency + specs_[b].latency;
}

void Network::Send(size_t from, size_t to, uint64_t bytes, Executor::Task delivered) {
  if (ideal_) return time_.After(absl::ZeroDuration(), std::move(delivered));
  links_.Send(from, to, bytes, std::move(delivered));
}

void Network::Count(bool to_server, uint64_t bytes) {
  if (!ideal_ && on_bytes_ != nullptr) on_bytes_(to_server, bytes);
}

void Network::Do(Work& work, absl::Duration cost, Executor::Task done) {
  if (ideal_) cost = absl::ZeroDuration();
  if (cost == absl::ZeroDuration() && work.waiting == 0) return done();
  work.end = std::max(work.end, time_.elapsed()) + cost;
  ++work.waiting;
  time_.At(work.end, [&work, done = std::move(done)]() mutable {
    --work.waiting;
    done();
  });
}

Job* Network::Reach(WorkerId worker, ServerId server) const {
  return cut_.contains({worker, server}) ? nullptr : jobs_[server.value];
}

}  // namespace thinwire::sim
