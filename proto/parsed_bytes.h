// Limits the memory of a protobuf message that a peer or a file defines. Two bytes on the wire can
// make an object of a hundred bytes, so a limit on the length of a message is not enough.
#ifndef THINWIRE_PROTO_PARSED_BYTES_H_
#define THINWIRE_PROTO_PARSED_BYTES_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstddef>

#include "absl/status/status.h"

namespace thinwire {

// The largest estimated memory of a message. A Join of a model with 65,536 tensors needs less.
inline constexpr size_t kMostParsedBytes = size_t{32} << 20;

// Estimates the memory that parsing BYTES as a message of type TYPE takes; the estimate is usually
// too large. Errors: InvalidArgument if it is above kMostParsedBytes. Bytes that are no message are
// no error here.
absl::Status CheckParsedBytes(google::protobuf::io::ZeroCopyInputStream& bytes,
                              const google::protobuf::Descriptor& type);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_PARSED_BYTES_H_
