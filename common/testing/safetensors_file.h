// Makes the bytes of safetensors files for tests, also of files with a wrong header.
#ifndef THINWIRE_COMMON_TESTING_SAFETENSORS_FILE_H_
#define THINWIRE_COMMON_TESTING_SAFETENSORS_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace thinwire {

// Returns the bytes of VALUES in memory.
template <typename T>
std::string ValueBytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Returns the file with the JSON text HEADER and the bytes TENSORS of all tensors.
inline std::string SafetensorsFile(const std::string& header, const std::string& tensors) {
  return ValueBytes<uint64_t>({header.size()}) + header + tensors;
}

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TESTING_SAFETENSORS_FILE_H_
