// Publisher: parameters as readers get them. It encodes a version once per codec, however many
// workers read it, and shares the bytes.
//
//   Encoded(version 7, masters, bf16)   encodes
//   Encoded(version 7, masters, bf16)   the same bytes
//   Encoded(version 8, masters, bf16)   encodes; version 7's bytes live on with those who still
//   send them
//
// Lives on its shard's strand; the bytes it gives may be used on any thread.
#ifndef THINWIRE_SERVER_CORE_PUBLISHER_H_
#define THINWIRE_SERVER_CORE_PUBLISHER_H_

#include <map>
#include <span>

#include "common/buffer_pool.h"
#include "common/byte_chain.h"
#include "common/codec/codec.h"
#include "common/ids.h"

namespace thinwire {

class Publisher {
 public:
  // The payload of MASTERS, which are those of VERSION. REQUIRES: IsDense(codec), and the same
  // masters for the same version.
  ByteChain Encoded(Version version, std::span<const float> masters, CodecId codec);

 private:
  BufferPool pool_;
  Version version_;  // of all that is encoded
  std::map<CodecId, ByteChain> encoded_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_PUBLISHER_H_
