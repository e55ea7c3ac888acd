#include "worker/datasets/idx.h"

#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/datasets/read_file.h"

namespace thinwire {
namespace {

constexpr uint32_t kUnsignedBytes = 0x0800;  // type bits of IDX's magic number
constexpr uint32_t kClassCount = 10;
// The mean and standard deviation of byte / 255 over Fashion-MNIST's 60,000 training images.
constexpr double kMean = 0.2860;
constexpr double kDeviation = 0.3530;

uint32_t BigEndian(std::span<const uint8_t> bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

absl::StatusOr<IdxArray> ReadIdx(const std::string& folder, const std::string& stem,
                                 uint32_t dimensions) {
  std::string path = absl::StrCat(folder, "/", stem, ".gz");
  const std::string unpacked = absl::StrCat(folder, "/", stem);
  if (!std::filesystem::exists(path) && std::filesystem::exists(unpacked)) path = unpacked;
  absl::StatusOr<std::vector<uint8_t>> file = ReadFile(path);
  if (absl::IsNotFound(file.status())) {
    return absl::NotFoundError(absl::StrCat(
        file.status().message(),
        " (Debian's package dataset-fashion-mnist has the four files of Fashion-MNIST)"));
  }
  RETURN_IF_ERROR(file.status());
  return ParseIdx(*std::move(file), dimensions, path);
}

}  // namespace

absl::StatusOr<IdxArray> ParseIdx(std::vector<uint8_t> file, uint32_t dimensions,
                                  const std::string& name) {
  const size_t header_bytes = 4 + 4 * size_t{dimensions};
  if (file.size() < header_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": IDX header too short (expected ",
                                                   header_bytes, " bytes, got ", file.size(), ")"));
  }
  const uint32_t expected = kUnsignedBytes | dimensions;
  const uint32_t magic = BigEndian(file);
  if (magic != expected) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": wrong magic number (expected 0x",
                                                   absl::Hex(expected), ", got 0x",
                                                   absl::Hex(magic), ")"));
  }
  IdxArray array;
  uint64_t count = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const uint32_t dimension = BigEndian(std::span(file).subspan(4 + 4 * i));
    // Stops multiplying the dimensions once their product exceeds the file size limit, so that the
    // product cannot overflow.
    count = count > kLargestFileBytes ? count : count * dimension;
    array.shape.push_back(dimension);
  }
  if (count == 0 || count != file.size() - header_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": wrong length after the header (expected ", count,
                     " bytes, at least one, got ", file.size() - header_bytes, ")"));
  }
  file.erase(file.begin(), file.begin() + static_cast<ptrdiff_t>(header_bytes));
  array.bytes = std::move(file);
  return array;
}

absl::StatusOr<Dataset> LoadFashionMnist(const std::string& folder, Part part) {
  const std::string stem = part == Part::kTrain ? "train" : "t10k";
  ASSIGN_OR_RETURN(IdxArray images, ReadIdx(folder, absl::StrCat(stem, "-images-idx3-ubyte"), 3));
  ASSIGN_OR_RETURN(const IdxArray labels,
                   ReadIdx(folder, absl::StrCat(stem, "-labels-idx1-ubyte"), 1));
  if (images.shape[0] != labels.shape[0]) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, "/", stem, "-*: different numbers of labels and images (expected ",
                     images.shape[0], " labels, got ", labels.shape[0], ")"));
  }
  Dataset dataset = {.example_shape = {1, images.shape[1], images.shape[2]},
                     .class_count = kClassCount,
                     .labels = {labels.bytes.begin(), labels.bytes.end()},
                     .bytes = std::move(images.bytes),
                     .scalings = {Scaling::Normalizing(kMean, kDeviation)}};
  for (size_t i = 0; i < dataset.labels.size(); ++i) {
    if (dataset.labels[i] < static_cast<int32_t>(kClassCount)) continue;
    return absl::InvalidArgumentError(absl::StrCat(folder, ": label ", i, " of ", stem,
                                                   ": out of range (expected 0 to 9, got ",
                                                   dataset.labels[i], ")"));
  }
  return dataset;
}

}  // namespace thinwire
