#include "client/link.h"

#include <algorithm>
#include <utility>

namespace thinwire::client {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kLargestBackoff = absl::Seconds(2);

}  // namespace

// Carries what one stream says from the transport's threads to the loop.
class Link::Ear final : public StreamObserver {
 public:
  Ear(Link& link, uint64_t serial) : link_(link), serial_(serial) {}

  void OnFrame(ByteChain frame) override {
    link_.loop_.Post([&link = link_, serial = serial_, frame = std::move(frame)] {
      link.OnFrame(serial, frame);
    });
  }
  void OnWritten() override {
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
};

Link::Link(ServerId server, Transport& transport, Loop& loop, Hooks hooks)
    : server_(server),
      transport_(transport),
      loop_(loop),
      hooks_(std::move(hooks)),
      jitter_(server.value + 1) {}

Link::~Link() { Close(); }

void Link::Pump() {
  if (closed_ || reopening_ || writing_) return;
  if (stream_ == nullptr) {
    if (!hooks_.has_unsent()) return;
    Open();
  }
  ByteChain frame = hooks_.next_frame();
  if (frame.empty()) return;
  writing_ = true;
  stream_->Write(std::move(frame));
}

void Link::Close() {
  closed_ = true;
  stream_.reset();
  ear_.reset();
}

void Link::Open() {
  ++serial_;
  ear_ = std::make_unique<Ear>(*this, serial_);
  stream_ = transport_.Open(server_, *ear_);
}

void Link::OnFrame(uint64_t serial, const ByteChain& frame) {
  if (closed_ || serial != serial_) return;
  failed_count_ = 0;
  // One frame comes while this one is decoded: more would be a queue.
  stream_->ReadNext();
  hooks_.on_frame(frame);
}

void Link::OnWritten(uint64_t serial) {
  if (closed_ || serial != serial_) return;
  writing_ = false;
  hooks_.on_written();
  Pump();
}

void Link::OnClosed(uint64_t serial, const absl::Status& status) {
  if (closed_ || serial != serial_) return;
  ++serial_;
  stream_.reset();
  ear_.reset();
  writing_ = false;
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
