// Conversions between ByteChain and gRPC's byte buffers. The result shares the memory of large
// pieces. Thread-safe.
#ifndef THINWIRE_PROTO_GRPC_BYTES_H_
#define THINWIRE_PROTO_GRPC_BYTES_H_

#include <grpcpp/support/byte_buffer.h>

#include "common/byte_chain.h"

namespace thinwire {

// Returns a chain of BUFFER's slices. Each slice is freed when no piece of a chain refers to it.
// Returns an empty chain if the buffer is unreadable.
ByteChain FromByteBuffer(const grpc::ByteBuffer& buffer);

// Returns a buffer of CHAIN's pieces. Consecutive small pieces and pieces without an owner are
// copied into one slice. The owner of any other piece lives until gRPC has sent its bytes.
grpc::ByteBuffer ToByteBuffer(const ByteChain& chain);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_GRPC_BYTES_H_
