// IDX: the file format of MNIST and its kin. Fashion-MNIST is two such pairs of files, packed by
// gzip.
//
//   images   00 00 08 03   count rows columns   (big-endian, 4 bytes each)   count * rows * columns
//   bytes labels   00 00 08 01   count                                             count bytes
#ifndef THINWIRE_WORKER_DATASETS_IDX_H_
#define THINWIRE_WORKER_DATASETS_IDX_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/datasets/dataset.h"

namespace thinwire {

struct IdxArray {
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;

  bool operator==(const IdxArray&) const = default;
};

// Takes an IDX file of unsigned bytes with DIMENSIONS dimensions apart. NAME is how errors call it.
// Errors: InvalidArgument if it is another kind of file, or not as long as its header says.
absl::StatusOr<IdxArray> ParseIdx(std::vector<uint8_t> file, uint32_t dimensions,
                                  const std::string& name);

// Fashion-MNIST out of FOLDER, the files as Debian's package dataset-fashion-mnist lays them out,
// also unpacked: [1, 28, 28] bytes, 10 classes. Errors: NotFound (a file, naming the package),
// InvalidArgument.
absl::StatusOr<Dataset> LoadFashionMnist(const std::string& folder, Part part);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_IDX_H_
