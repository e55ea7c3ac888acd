// Values are the numbers of a tensor in a data set, row-major: fp32, or integers such as token ids. ValuesView refers to such
// numbers in memory of another object.
#ifndef THINWIRE_WORKER_DATASETS_VALUES_H_
#define THINWIRE_WORKER_DATASETS_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace thinwire {

// The types of values, in the order of the alternatives of Values and ValuesView.
enum class ValueType : uint8_t { kFloat, kInt64, kInt32, kUint8 };

// The names of the types in safetensors files, in the order of ValueType.
inline constexpr std::string_view kValueTypeNames[] = {"F32", "I64", "I32", "U8"};

using Values = std::variant<std::vector<float>, std::vector<int64_t>, std::vector<int32_t>,
                            std::vector<uint8_t>>;
using ValuesView = std::variant<std::span<const float>, std::span<const int64_t>,
                                std::span<const int32_t>, std::span<const uint8_t>>;

inline ValueType TypeOf(const Values& values) { return static_cast<ValueType>(values.index()); }

// Returns the number of values.
size_t SizeOf(const ValuesView& values);

// Returns `values` as a view, which is valid until they change.
ValuesView ViewOf(const Values& values);

// Returns COUNT zeros.
Values Zeros(ValueType type, size_t count);

// Copies rows of FROM, which has WIDTH values per row, to the vector in OUT, which gets the type of FROM. REQUIRES: FROM has
// every row in ROWS.
void GatherRows(const Values& from, uint64_t width, std::span<const uint32_t> rows, Values& out);

// Returns false if a value is infinite or not a number.
bool AllFinite(const ValuesView& values);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_VALUES_H_
