#include "client/link.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace thinwire::client {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kLargestBackoff = absl::Seconds(2);

}  // namespace

// One stream: carries what it says from the transport's threads to the loop, and keeps one message
// ready, so that the wire does not wait for the loop between two messages.
class Link::Wire final : public StreamObserver {
 public:
  Wire(Link& link, uint64_t serial) : link_(link), serial_(serial) {}
  ~Wire() override = default;

  // REQUIRES: before the first Write.
  void Open() { stream_ = link_.transport_.Open(link_.server_, *this); }

  // Whether a message may be given. On the loop, as the next two.
  bool has_room() const {
    absl::MutexLock lock(&mu_);
    return ready_.empty();
  }
  // REQUIRES: has_room().
  void Write(ByteChain frame) {
    {
      absl::MutexLock lock(&mu_);
      if (std::exchange(writing_, true)) {
        ready_ = std::move(frame);
        return;
      }
    }
    stream_->Write(std::move(frame));
  }
  void ReadNext() { stream_->ReadNext(); }

  void OnFrame(ByteChain frame) override {
    link_.loop_.Post([&link = link_, serial = serial_, frame = std::move(frame)] {
      link.OnFrame(serial, frame);
    });
  }
  void OnWritten() override {
    ByteChain frame;
    {
      absl::MutexLock lock(&mu_);
      frame = std::exchange(ready_, ByteChain());
      writing_ = !frame.empty();
    }
    // The stream is there: it ends only when this call has returned.
    if (!frame.empty()) stream_->Write(std::move(frame));
    link_.loop_.Post([&link = link_, serial = serial_] { link.OnWritten(serial); });
  }
  void OnClosed(absl::Status status) override {
    link_.loop_.Post([&link = link_, serial = serial_, status = std::move(status)] {
      link.OnClosed(serial, status);
    });
  }

 private:
  Link& link_;
  const uint64_t serial_;
  mutable absl::Mutex mu_;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  ByteChain ready_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Stream> stream_;  // the last member: it ends first, and is silent then
};

Link::Link(ServerId server, Transport& transport, Loop& loop, Hooks hooks)
    : server_(server),
      transport_(transport),
      loop_(loop),
      hooks_(std::move(hooks)),
      jitter_(server.value + 1) {}

Link::~Link() { Close(); }

void Link::Pump() {
  if (closed_ || reopening_) return;
  if (wire_ == nullptr) {
    if (!hooks_.has_unsent()) return;
    wire_ = std::make_unique<Wire>(*this, ++serial_);
    wire_->Open();
  }
  while (wire_->has_room()) {
    ByteChain frame = hooks_.next_frame();
    if (frame.empty()) return;
    wire_->Write(std::move(frame));
  }
}

void Link::Close() {
  closed_ = true;
  wire_.reset();
}

void Link::OnFrame(uint64_t serial, const ByteChain& frame) {
  if (closed_ || serial != serial_) return;
  failed_count_ = 0;
  // One frame comes while this one is decoded: more would be a queue.
  wire_->ReadNext();
  hooks_.on_frame(frame);
}

void Link::OnWritten(uint64_t serial) {
  if (closed_ || serial != serial_) return;
  hooks_.on_written();
  Pump();
}

void Link::OnClosed(uint64_t serial, const absl::Status& status) {
  if (closed_ || serial != serial_) return;
  ++serial_;
  wire_.reset();
  Reopen();
  hooks_.on_lost(status);
}

void Link::Reopen() {
  const absl::Duration wait = Backoff();
  ++failed_count_;
  reopening_ = true;
  loop_.PostAt(loop_.Now() + wait, [this] {
    reopening_ = false;
    Pump();
  });
}

absl::Duration Link::Backoff() {
  if (failed_count_ == 0) return absl::ZeroDuration();
  const int doublings = std::min(failed_count_ - 1, 10);
  const absl::Duration most = std::min(kFirstBackoff * (1 << doublings), kLargestBackoff);
  return most * std::uniform_real_distribution<double>(0, 1)(jitter_);
}

}  // namespace thinwire::client
