#include "worker/datasets/values.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace thinwire {

size_t SizeOf(const ValuesView& values) {
  return std::visit([](const auto& span) { return span.size(); }, values);
}

ValuesView ViewOf(const Values& values) {
  return std::visit([](const auto& vector) -> ValuesView { return std::span(vector); }, values);
}

Values Zeros(ValueType type, size_t count) {
  switch (type) {
    case ValueType::kFloat:
      break;
    case ValueType::kInt64:
      return std::vector<int64_t>(count);
    case ValueType::kInt32:
      return std::vector<int32_t>(count);
    case ValueType::kUint8:
      return std::vector<uint8_t>(count);
  }
  return std::vector<float>(count);
}

void GatherRows(const Values& from, uint64_t width, std::span<const uint32_t> rows, Values& out) {
  std::visit(
      [&](const auto& vector) {
        using Vector = std::decay_t<decltype(vector)>;
        if (!std::holds_alternative<Vector>(out)) out.emplace<Vector>();
        auto& to = std::get<Vector>(out);
        to.resize(rows.size() * width);
        for (size_t i = 0; i < rows.size(); ++i) {
          CHECK_LE((rows[i] + uint64_t{1}) * width, vector.size());
          std::copy_n(vector.data() + rows[i] * width, width, to.data() + i * width);
        }
      },
      from);
}

bool AllFinite(const ValuesView& values) {
  const auto* const floats = std::get_if<std::span<const float>>(&values);
  return floats == nullptr ||
         std::ranges::all_of(*floats, [](float x) { return std::isfinite(x); });
}

}  // namespace thinwire
