// What a link carries both ways at once: a RawStream between two processes, for scripts that set up
// the link (bench/race.sh).
//
//   raw_wire serve HOST:PORT         prints "listening HOST:PORT", serves until it is killed
//   raw_wire send HOST:PORT BYTES    prints "sent BYTES BEGIN END": that so many went either way
//                                    between these seconds of the machine's monotonic clock
//
// Several senders at a time share the link; the clock is the same for all, so their sum over the
// whole time can be told.
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

// Small, so that waiting for the first answer is nothing beside the whole.
constexpr size_t kMessage = size_t{256} << 10;
constexpr size_t kMemory = 64 * kMessage;
constexpr int kWindow = 2 << 20;
// Fill pools, windows and buffers; not timed.
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
  std::fputs("want: raw_wire serve HOST:PORT, or raw_wire send HOST:PORT BYTES\n", stderr);
  return 64;
}
