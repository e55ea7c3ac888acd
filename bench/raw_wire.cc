// Measures the goodput of a link in both directions at once with a RawStream between two processes.
// bench/race.sh sets up the link.
//
//   raw_wire serve HOST:PORT         prints "listening HOST:PORT" and serves until it is killed
//   raw_wire send HOST:PORT BYTES    prints "sent BYTES BEGIN END": this many bytes went in each
//                                    direction between the times BEGIN and END, in seconds of the
//                                    machine's monotonic clock
//
// Several senders can share a link. All use the same clock, so the caller can add up their bytes
// over the common period.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "bench/raw_stream.h"
#include "common/clock.h"

namespace thinwire {
namespace {

// Small, so that the delay of the first answer is negligible.
constexpr size_t kMessage = size_t{256} << 10;
constexpr size_t kMemory = 64 * kMessage;
constexpr int kWindow = 2 << 20;
// These messages fill memory pools, windows and buffers and are not timed.
constexpr int kWarmMessages = 16;

int Serve(const std::string& address) {
  const RawServer server(kMemory, kMessage, kWindow, address);
  std::printf("listening %s\n", server.address().c_str());
  std::fflush(stdout);
  while (true) pause();
}

int Send(const std::string& address, size_t bytes) {
  RawStream stream(address, kMemory, kMessage, kWindow);
  stream.Exchange(kWarmMessages);
  SteadyClock clock;
  const int messages = static_cast<int>(std::max(size_t{1}, bytes / kMessage));
  const absl::Time begin = clock.Now();
  stream.Exchange(messages);
  const absl::Time end = clock.Now();
  std::printf("sent %zu %.6f %.6f\n", messages * kMessage,
              absl::ToDoubleSeconds(begin - absl::UnixEpoch()),
              absl::ToDoubleSeconds(end - absl::UnixEpoch()));
  return 0;
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  size_t bytes = 0;
  if (verb == "serve" && argc == 3) return thinwire::Serve(argv[2]);
  if (verb == "send" && argc == 4 && absl::SimpleAtoi(argv[3], &bytes)) {
    return thinwire::Send(argv[2], bytes);
  }
  std::fputs("raw_wire: wrong arguments (expected serve HOST:PORT, or send HOST:PORT BYTES)\n",
             stderr);
  return 64;
}
