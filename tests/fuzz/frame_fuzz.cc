// A libFuzzer target: the parsers never crash or read beyond their input, and accepted frames
// survive a round trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "common/memory/byte_chain.h"
#include "proto/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // The first byte of the input determines how the frame is split into pieces. Each piece has its
  // own memory, so that a sanitizer detects reads beyond its end.
  const size_t piece = 1 + data[0];
  thinwire::ByteChain chain;
  for (size_t at = 1; at < size; at += piece) {
    const auto* begin = reinterpret_cast<const std::byte*>(data + at);
    const size_t length = size - at < piece ? size - at : piece;
    chain.Append(thinwire::ByteChain(std::vector<std::byte>(begin, begin + length)));
  }
  const auto worker = thinwire::ParseWorkerFrame(chain);
  if (worker.ok() && !(thinwire::ParseWorkerFrame(WriteFrame(*worker)).value() == *worker)) abort();
  const auto server = thinwire::ParseServerFrame(chain);
  if (server.ok() && !(thinwire::ParseServerFrame(WriteFrame(*server)).value() == *server)) abort();
  return 0;
}
