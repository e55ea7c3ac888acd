// IDX is the file format of MNIST. Fashion-MNIST has two pairs of such files, compressed by gzip.
//
//   file     magic         sizes (big-endian u32)   values
//   images   00 00 08 03   count, rows, columns     count * rows * columns bytes
//   labels   00 00 08 01   count                    count bytes
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

// Parses an IDX file of unsigned bytes. `name` is the file's name in error messages. Errors:
// InvalidArgument if the file has another type, another number of dimensions, or a length that does
// not match its header.
absl::StatusOr<IdxArray> ParseIdx(std::vector<uint8_t> file, uint32_t dimensions,
                                  const std::string& name);

// Loads Fashion-MNIST, [1, 28, 28] bytes and 10 classes, from a folder with the files of Debian's
// package dataset-fashion-mnist, compressed or not. Errors: NotFound with the missing file and the
// package; InvalidArgument for an invalid file.
absl::StatusOr<Dataset> LoadFashionMnist(const std::string& folder, Part part);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_IDX_H_
