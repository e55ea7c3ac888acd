// LiveBytes counts the memory of a test program. A program that links this library gets another
// operator new, which counts.
#ifndef THINWIRE_COMMON_MEMORY_LIVE_BYTES_H_
#define THINWIRE_COMMON_MEMORY_LIVE_BYTES_H_

#include <cstddef>

namespace thinwire {

// Returns the number of bytes that operator new has allocated and operator delete has not freed.
size_t LiveBytes();

// Returns the largest LiveBytes() since the last call of ResetPeakBytes, or since the start of the
// program.
size_t PeakBytes();
void ResetPeakBytes();

}  // namespace thinwire

#endif  // THINWIRE_COMMON_MEMORY_LIVE_BYTES_H_
