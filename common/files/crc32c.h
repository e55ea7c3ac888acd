// The CRC-32C checksum (Castagnoli, RFC 3720 section 12.1).
#ifndef THINWIRE_COMMON_FILES_CRC32C_H_
#define THINWIRE_COMMON_FILES_CRC32C_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace thinwire {

// Returns the checksum of a prefix followed by BYTES. CRC is the checksum of the prefix, 0 for an
// empty prefix. Thread-safe.
uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_FILES_CRC32C_H_
