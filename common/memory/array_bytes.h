// Arrays of numbers as bytes, in the order in which they are in memory (little-endian). Snapshots
// and files store arrays in this form.
#ifndef THINWIRE_COMMON_MEMORY_ARRAY_BYTES_H_
#define THINWIRE_COMMON_MEMORY_ARRAY_BYTES_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "common/memory/byte_chain.h"

namespace thinwire {

// Returns a copy of ARRAY in memory of its own.
ByteChain CopyArray(std::span<const std::byte> array);

// Sets ARRAY to BYTES. Errors: InvalidArgument "NAME: wrong size (expected 4096 bytes, got 4000)";
// ARRAY is then unchanged.
absl::Status FillArray(const std::string& name, const ByteChain& bytes, std::span<std::byte> array);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_MEMORY_ARRAY_BYTES_H_
