// The passage between ByteChain and gRPC's buffers: large pieces keep their memory both ways.
// Thread-safe.
#ifndef THINWIRE_PROTO_GRPC_BYTES_H_
#define THINWIRE_PROTO_GRPC_BYTES_H_

#include <grpcpp/support/byte_buffer.h>

#include "common/byte_chain.h"

namespace thinwire {

// A chain of BUFFER's slices; each lives for as long as a piece of it. Empty if the buffer cannot
// be read.
ByteChain FromByteBuffer(const grpc::ByteBuffer& buffer);

// A buffer of CHAIN's pieces. Runs of small ones are copied into one slice, as are pieces without
// an owner; any other piece's owner lives until gRPC has sent its bytes.
grpc::ByteBuffer ToByteBuffer(const ByteChain& chain);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_GRPC_BYTES_H_
