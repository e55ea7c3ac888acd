// Link: one server's stream as the client's loop sees it. It opens the stream when there is
// something to send, paces writing and reading, and opens it again after a loss: at once the first
// time, then after 100 ms doubled up to 2 s, jittered, until a frame proves that it works.
#ifndef THINWIRE_CLIENT_LINK_H_
#define THINWIRE_CLIENT_LINK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <random>

#include "absl/status/status.h"
#include "client/loop.h"
#include "client/transport.h"
#include "common/byte_chain.h"
#include "common/ids.h"

namespace thinwire::client {

// Lives on its loop; it is destroyed when the loop has stopped.
class Link {
 public:
  // Called on the loop.
  struct Hooks {
    std::function<bool()> has_unsent;
    std::function<ByteChain()> next_frame;  // empty: nothing to send after all
    std::function<void()> on_written;
    std::function<void(const ByteChain&)> on_frame;
    std::function<void(const absl::Status&)> on_lost;  // all that was not answered is unsent again
  };

  // TRANSPORT and LOOP outlive the link.
  Link(ServerId server, Transport& transport, Loop& loop, Hooks hooks);
  ~Link();

  // Sends what there is, as far as the stream has room: one message on the way, one ready.
  void Pump();
  // Ends the stream for good.
  void Close();

 private:
  class Wire;

  void OnFrame(uint64_t serial, const ByteChain& frame);
  void OnWritten(uint64_t serial);
  void OnClosed(uint64_t serial, const absl::Status& status);
  void Reopen();
  absl::Duration Backoff();

  const ServerId server_;
  Transport& transport_;
  Loop& loop_;
  const Hooks hooks_;

  uint64_t serial_ = 0;  // of the stream; what an older one still says is not heard
  std::unique_ptr<Wire> wire_;
  bool reopening_ = false;
  bool closed_ = false;
  int failed_count_ = 0;  // streams lost since the last frame
  std::minstd_rand jitter_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_LINK_H_
