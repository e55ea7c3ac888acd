#include "python/arrays.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "python/errors.h"

namespace nb = nanobind;

namespace thinwire {

std::span<const float> ValuesOf(const AnyArray& array, uint64_t count, const std::string& place) {
  if (array.dtype() != nb::dtype<float>() || array.device_type() != nb::device::cpu::value) {
    Raise("Error", absl::StrCat(place, ": wrong array (expected fp32 values in the host's memory, ",
                                "got another type or device)"));
  }
  int64_t stride = 1;
  for (size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != stride) {
      Raise("Error", absl::StrCat(place, ": not contiguous (expected a row-major array)"));
    }
    stride *= static_cast<int64_t>(array.shape(i));
  }
  if (array.size() != count) {
    Raise("Error", absl::StrCat(place, ": wrong number of values (expected ", count, ", got ",
                                array.size(), ")"));
  }
  return {static_cast<const float*>(array.data()), array.size()};
}

nb::object ArrayOf(std::span<float> values, const TensorShape& tensor, nb::handle owner) {
  const std::vector<size_t> shape(tensor.shape.begin(), tensor.shape.end());
  return nb::cast(nb::ndarray<float, nb::numpy, nb::device::cpu>(values.data(), shape.size(),
                                                                 shape.data(), owner),
                  nb::rv_policy::reference);
}

nb::object ArrayOf(std::vector<float> values, const TensorShape& tensor) {
  auto* const array = new std::vector<float>(std::move(values));
  const nb::capsule owner(
      array, [](void* pointer) noexcept { delete static_cast<std::vector<float>*>(pointer); });
  return ArrayOf(std::span(*array), tensor, owner);
}

}  // namespace thinwire
