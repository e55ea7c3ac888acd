// Recognizes the kind of a file by its first bytes, for messages about files that were given in
// place of another kind.
#ifndef THINWIRE_COMMON_FILES_FILE_KIND_H_
#define THINWIRE_COMMON_FILES_FILE_KIND_H_

#include <cstddef>
#include <string_view>

namespace thinwire {

// The number of bytes that FileKind needs.
inline constexpr size_t kFileKindBytes = 512;

// Returns the kind of a file that is not a text, such as "a gzip file" or "a safetensors file", or
// "a binary file" if the kind is not known. Returns "" for a text. START has the first bytes of the
// file and may be shorter than kFileKindBytes.
std::string_view FileKind(std::string_view start);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_FILES_FILE_KIND_H_
