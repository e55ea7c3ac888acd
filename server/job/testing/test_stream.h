// For tests: a worker's stream and control calls that reach a Job directly, without a network.
#ifndef THINWIRE_SERVER_JOB_TESTING_TEST_STREAM_H_
#define THINWIRE_SERVER_JOB_TESTING_TEST_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/codec/codec.h"
#include "common/memory/byte_chain.h"
#include "common/model/partition.h"
#include "proto/control.pb.h"
#include "proto/frame.h"
#include "proto/join_tensors.h"
#include "server/job/job.h"

namespace thinwire {

// Runs one task of the jobs under test. For jobs whose executors run only when the test says so;
// null if they have threads.
using RunTask = std::function<void()>;

// The worker's side of a stream that calls the job directly, without a network. Its functions block
// until threads have done what they wait for, or call RUN_TASK until it is done.
class TestStream {
 public:
  explicit TestStream(Job& job, RunTask run_task = nullptr) : run_task_(std::move(run_task)) {
    StreamLink link;
    link.read = [this] {
      absl::MutexLock lock(&mu_);
      ++reads_;
    };
    link.write = [this](const ByteChain& bytes) {
      {
        absl::MutexLock lock(&mu_);
        frames_.push_back(ParseServerFrame(bytes).value());
      }
      session_->OnWritten(true);
    };
    link.finish = [this](const absl::Status& status) {
      absl::MutexLock lock(&mu_);
      end_ = status;
    };
    session_ = job.Open(std::move(link));
    session_->Start();
  }
  ~TestStream() {
    session_->OnBroken();
    Await([this] { return end_.has_value(); });
  }

  // Waits until the server requests a frame, then passes BYTES to the server.
  void Send(const ByteChain& bytes) {
    AwaitRead();
    {
      absl::MutexLock lock(&mu_);
      --reads_;
    }
    session_->OnFrame(bytes);
  }
  void Send(const WorkerFrame& frame) { Send(WriteFrame(frame)); }

  // Returns whether the server has requested a frame that has not been sent.
  bool wants_read() {
    absl::MutexLock lock(&mu_);
    return reads_ > 0;
  }
  // Waits until the server requests a frame.
  void AwaitRead() {
    Await([this] { return reads_ > 0; });
  }
  absl::Status AwaitEnd() {
    Await([this] { return end_.has_value(); });
    absl::MutexLock lock(&mu_);
    return *end_;
  }
  // NextVerdict and NextParameters wait until an entry of their kind arrives, and return this
  // entry. Other entries stay queued.
  VerdictEntry NextVerdict() { return Next(&ServerFrame::verdicts, verdicts_); }
  ParametersEntry NextParameters() { return Next(&ServerFrame::parameters, parameters_); }
  WaitingEntry NextWaiting() { return Next(&ServerFrame::waits, waits_); }
  // Returns the number of received Waiting entries that NextWaiting has not returned.
  size_t waiting_count() {
    absl::MutexLock lock(&mu_);
    size_t count = waits_.size();
    for (const ServerFrame& frame : frames_) count += frame.waits.size();
    return count;
  }

 private:
  // Waits until IS_DONE returns true, which is called with mu_ held.
  void Await(const std::function<bool()>& is_done) {
    absl::MutexLock lock(&mu_);
    if (run_task_ == nullptr) {
      mu_.Await(absl::Condition(&is_done));
      return;
    }
    while (!is_done()) {
      mu_.Unlock();
      run_task_();
      mu_.Lock();
    }
  }
  template <typename Entry>
  Entry Next(std::vector<Entry> ServerFrame::*, std::deque<Entry>& queue) {
    while (queue.empty()) {
      Await([this] { return !frames_.empty(); });
      absl::MutexLock lock(&mu_);
      const ServerFrame frame = std::move(frames_.front());
      frames_.pop_front();
      verdicts_.insert(verdicts_.end(), frame.verdicts.begin(), frame.verdicts.end());
      parameters_.insert(parameters_.end(), frame.parameters.begin(), frame.parameters.end());
      waits_.insert(waits_.end(), frame.waits.begin(), frame.waits.end());
    }
    Entry entry = std::move(queue.front());
    queue.pop_front();
    return entry;
  }

  const RunTask run_task_;
  absl::Mutex mu_;
  int reads_ = 0;
  std::deque<ServerFrame> frames_;
  std::optional<absl::Status> end_;
  std::deque<VerdictEntry> verdicts_;
  std::deque<ParametersEntry> parameters_;
  std::deque<WaitingEntry> waits_;
  std::unique_ptr<Session> session_;
};

// Returns a worker's request to join job "train" with the model of PARTITION. RUN and INCARNATION
// are 0 for a new process.
inline JoinRequest JoinRequestOf(const Partition& partition, uint32_t worker, uint64_t incarnation,
                                 uint64_t run) {
  JoinRequest request;
  request.set_job("train");
  request.set_worker(worker);
  request.set_incarnation(incarnation);
  request.set_run(run);
  request.set_servers(partition.server_count());
  request.set_partition_hash(partition.hash());
  SetTensors(partition.tensors(), request);
  return request;
}

// Returns VALUES as an fp32 payload.
inline ByteChain Payload(const std::vector<float>& values) {
  const auto codec = MakeCodec(CodecSpec()).value();
  std::vector<std::byte> bytes(codec->MaxPayloadBytes(values.size()));
  bytes.resize(codec->Encode(values, RandomKeys(), bytes));
  return ByteChain(std::move(bytes));
}

// The reply of an asynchronous call to the job. It waits as TestStream does.
template <typename Reply>
class Pending {
 public:
  explicit Pending(RunTask run_task = nullptr) : run_task_(std::move(run_task)) {}

  Job::Done<Reply> done() {
    return [state = state_](absl::StatusOr<Reply> reply) {
      state->reply = std::move(reply);
      state->ready.Notify();
    };
  }
  bool ready() const { return state_->ready.HasBeenNotified(); }
  absl::StatusOr<Reply> Get() {
    while (run_task_ != nullptr && !ready()) run_task_();
    state_->ready.WaitForNotification();
    return state_->reply;
  }

 private:
  struct State {
    absl::Notification ready;
    absl::StatusOr<Reply> reply;
  };
  RunTask run_task_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_TESTING_TEST_STREAM_H_
