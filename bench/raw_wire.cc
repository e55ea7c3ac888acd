// Measures the goodput of a link in both directions at once with RawStreams between processes.
// bench/race.sh sets up the link.
//
//   raw_wire serve HOST:PORT         prints "listening HOST:PORT" and serves until it is killed
//   raw_wire send HOST:PORT BYTES    sends and receives BYTES bytes, then prints
//                                    "sent COUNT BEGIN END": the bytes in each direction, and the
//                                    start and the end of the exchange in seconds of the machine's
//                                    monotonic clock
//
// Several senders can share a link. All senders of a machine use the same clock, so the caller can
// add up their bytes and divide them by the time from the first BEGIN to the last END.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "bench/raw_stream.h"
#include "common/time/clock.h"

namespace thinwire {
namespace {

// The message size. It is small, so that the delay of the first answer is negligible.
constexpr size_t kMessage = size_t{256} << 10;
constexpr size_t kMemory = 64 * kMessage;
// Number of untimed messages that warm up memory pools, connections and buffers before the
// measurement.
constexpr int kWarmMessages = 16;

int Serve(const std::string& address) {
  const RawServer server(kMemory, kMessage, address);
  std::printf("listening %s\n", server.address().c_str());
  std::fflush(stdout);
  while (true) pause();
}

int Send(const std::string& address, size_t bytes) {
  RawStream stream(address, kMemory, kMessage);
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
