// IDX is the file format of MNIST. Fashion-MNIST consists of two pairs of IDX files, compressed
// with gzip; a pair has one file of images and one of labels.
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

// Parses an IDX file of unsigned bytes with `dimensions` dimensions. `name` is the file's name in
// error messages. Errors: InvalidArgument if the file has another type, another number of
// dimensions, or a length that does not match its header.
absl::StatusOr<IdxArray> ParseIdx(std::vector<uint8_t> file, uint32_t dimensions,
                                  const std::string& name);

// Loads a part of Fashion-MNIST from a folder with the files of Debian's package
// dataset-fashion-mnist, compressed or not. An example has [1, 28, 28] bytes; there are 10 classes.
// Errors: NotFound with the name of the missing file and of the package; InvalidArgument for an
// invalid file.
absl::StatusOr<Dataset> LoadFashionMnist(const std::string& folder, Part part);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_IDX_H_
