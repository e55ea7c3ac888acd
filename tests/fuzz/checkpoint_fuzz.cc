// A libFuzzer target for server/durable/checkpoint_format.h. If the first byte of an input is even,
// the remaining bytes are a manifest without its end, which this program adds. Otherwise they
// are the file of a shard. Accepted input must survive a round trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "common/memory/byte_chain.h"
#include "server/durable/checkpoint_format.h"

namespace thinwire {
namespace {

void ReadManifest(std::string body) {
  body += ",\n";
  const auto manifest = ParseManifest(body + ManifestEnd(body));
  if (!manifest.ok()) return;
  const auto checkpoint = CheckpointOf(*manifest);
  if (!checkpoint.ok()) return;
  const std::string printed = PrintManifest(ManifestOf(*checkpoint));
  const auto again = ParseManifest(printed);
  if (!again.ok() || PrintManifest(*again) != printed) abort();
}

void ReadShardFile(std::span<const std::byte> bytes) {
  const ByteChain file(std::vector<std::byte>(bytes.begin(), bytes.end()));
  SavedShard saved;
  saved.state.published.emplace();
  if (!DecodeShardFile(file, saved).ok()) return;
  SavedShard again;
  again.state.published.emplace();
  const ByteChain written(EncodeShardFile(saved).ToVector());
  if (!DecodeShardFile(written, again).ok() || !(again.state == saved.state)) abort();
}

}  // namespace
}  // namespace thinwire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span input(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    thinwire::ReadManifest(std::string(input.begin(), input.end()));
  } else {
    thinwire::ReadShardFile(std::as_bytes(input));
  }
  return 0;
}
