// Conversions between ByteChain and gRPC's byte buffers. The converted object shares the memory of
// large pieces. Thread-safe.
#ifndef THINWIRE_PROTO_GRPC_BYTES_H_
#define THINWIRE_PROTO_GRPC_BYTES_H_

#include <grpcpp/support/byte_buffer.h>

#include "common/memory/byte_chain.h"

namespace thinwire {

// Returns a chain of BUFFER's slices. Each slice is freed when no piece of a chain refers to it.
// Returns an empty chain if the buffer is unreadable.
ByteChain FromByteBuffer(const grpc::ByteBuffer& buffer);

// Returns a gRPC buffer with the bytes of CHAIN. Consecutive small pieces and pieces without an
// owner are copied into one slice. Each other piece becomes a slice without a copy, and its owner
// lives until gRPC has sent the bytes.
grpc::ByteBuffer ToByteBuffer(const ByteChain& chain);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_GRPC_BYTES_H_
