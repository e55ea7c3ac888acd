#include "sim/network.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/memory/byte_chain.h"
#include "server/edge/session.h"

namespace thinwire::sim {
namespace {

constexpr absl::Duration kPeerTimeout = absl::Seconds(2);

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
        link_(network.link_),
        worker_(worker),
        server_(server),
        on_frame_(std::move(on_frame)),
        observer_(&observer) {}

  WorkerId worker() const { return worker_; }
  ServerId server() const { return server_; }

  void Open() {
    Later(link_.latency, [this] { Arrive(); });
  }

  // The worker's end.

  void Write(ByteChain frame) {
    // The frame may refer to gradients, which change after the verdicts and end with the process.
    frame = ByteChain(frame.ToVector());
    const absl::Duration sent = Send(to_server_free_, frame.size());
    time_.At(sent, Bind([this] {
               if (observer_ != nullptr) observer_->OnWritten();
             }));
    time_.At(sent + link_.latency, Bind([this, frame = std::move(frame)] {
               at_server_.push_back(frame);
               DeliverToServer();
             }));
  }
  void ReadNext() {
    ++worker_reads_;
    Later(absl::ZeroDuration(), [this] { DeliverToWorker(); });
  }
  void CloseByWorker() {
    observer_ = nullptr;
    Later(link_.latency, [this] { LoseWorker(); });
  }

  // Ends the stream on both sides.
  void Break() {
    if (std::exchange(broken_, true)) return;
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
  // Returns the time, since the beginning, at which BYTES have left on a line that is free at FREE.
  absl::Duration Send(absl::Duration& free, size_t bytes) {
    const double seconds = static_cast<double>(bytes) / link_.bytes_per_second;
    free = std::max(free, time_.elapsed()) + absl::Seconds(seconds);
    return free;
  }
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
      return time_.After(link_.latency, [self = shared_from_this()] {
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
  void WriteToWorker(const ByteChain& bytes) {
    const absl::Duration sent = Send(to_worker_free_, bytes.size());
    // The session waits for the end of a write even if the stream breaks.
    time_.At(sent, [self = shared_from_this()] {
      if (self->session_ != nullptr) self->session_->OnWritten(!self->broken_);
    });
    time_.At(sent + link_.latency, Bind([this, bytes] {
               at_worker_.push_back(bytes);
               DeliverToWorker();
             }));
  }
  void FinishByServer(const absl::Status& status) {
    // The session calls this function.
    time_.After(absl::ZeroDuration(), [self = shared_from_this()] { self->session_.reset(); });
    const absl::Duration sent = std::max(to_worker_free_, time_.elapsed());
    time_.At(sent + link_.latency, Bind([this, status] {
               end_ = status;
               DeliverToWorker();
             }));
  }
  void DeliverToWorker() {
    while (observer_ != nullptr && worker_reads_ > 0 && !at_worker_.empty()) {
      ByteChain frame = std::move(at_worker_.front());
      at_worker_.pop_front();
      --worker_reads_;
      on_frame_(ParseServerFrame(frame).value());
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
  const LinkOptions link_;
  const WorkerId worker_;
  const ServerId server_;
  const OnFrame on_frame_;
  StreamObserver* observer_;          // null: the stream has ended for the worker
  std::unique_ptr<Session> session_;  // null before the stream has arrived and after its end
  bool broken_ = false;
  absl::Duration to_server_free_, to_worker_free_;
  std::deque<ByteChain> at_server_, at_worker_;  // arrived and not requested yet
  int server_reads_ = 0;                         // requested and not delivered
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
void Network::Call(std::function<Job*()> reach, absl::Duration timeout,
                   std::shared_ptr<const bool> alive,
                   std::function<void(Job&, const std::shared_ptr<PendingCall<Reply>>&)> start,
                   std::function<void(absl::StatusOr<Reply>)> done) {
  const auto call = std::make_shared<PendingCall<Reply>>(time_, link_.latency, reach,
                                                         std::move(alive), std::move(done));
  call->EndAfter(timeout);
  time_.After(link_.latency, [call, reach, start = std::move(start)] {
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
        timeout, alive_, std::move(start), std::move(done));
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
        reach, kPeerTimeout + work, alive_,
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

Network::Network(VirtualTime& time, uint32_t server_count, LinkOptions link)
    : time_(time), link_(link), jobs_(server_count, nullptr) {}

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

Job* Network::Reach(WorkerId worker, ServerId server) const {
  return cut_.contains({worker, server}) ? nullptr : jobs_[server.value];
}

}  // namespace thinwire::sim
