// The memory that this process may use, for limits that should fit the machine.
#ifndef THINWIRE_COMMON_MEMORY_AVAILABLE_MEMORY_H_
#define THINWIRE_COMMON_MEMORY_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace thinwire {

// Returns the smaller one of the machine's available memory (MemAvailable in /proc/meminfo) and the
// memory limits of this process's control groups, version 1 and 2, in bytes. Returns the maximum of
// uint64_t if none is known. ROOT is the folder that contains proc/ and sys/.
uint64_t AvailableMemory(const std::string& root = "/");

}  // namespace thinwire

#endif  // THINWIRE_COMMON_MEMORY_AVAILABLE_MEMORY_H_
