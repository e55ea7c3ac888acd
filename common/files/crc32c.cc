#include "common/files/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace thinwire {

uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc) {
  // ISA-L's function takes the length as an int, so long inputs are checksummed in parts. CRC-32C
  // inverts the checksum before and after the computation; ISA-L's function does not.
  constexpr size_t kMaxPart = size_t{1} << 30;
  crc = ~crc;
  while (!bytes.empty()) {
    const std::span<const std::byte> part = bytes.first(std::min(bytes.size(), kMaxPart));
    // ISA-L takes a pointer without const and never writes through it.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(part.data()));
    crc = crc32_iscsi(data, static_cast<int>(part.size()), crc);
    bytes = bytes.subspan(part.size());
  }
  return ~crc;
}

}  // namespace thinwire
