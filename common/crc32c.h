// CRC-32C (Castagnoli, RFC 3720 section 12.1) of bytes.
#ifndef THINWIRE_COMMON_CRC32C_H_
#define THINWIRE_COMMON_CRC32C_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace thinwire {

// The checksum of what CRC is the checksum of, followed by BYTES; CRC 0 stands for nothing.
uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CRC32C_H_
