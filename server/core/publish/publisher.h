// Publisher encodes a shard's masters for readers, once per version and dense codec, however many
// workers read them.
//
//   Encoded(version 7, masters, bf16)   encodes
//   Encoded(version 7, masters, bf16)   returns the same bytes
//   Encoded(version 8, masters, bf16)   encodes; readers of version 7 keep its bytes alive
//
// Lives on its shard's strand; the returned bytes may be used on any thread.
#ifndef THINWIRE_SERVER_CORE_PUBLISH_PUBLISHER_H_
#define THINWIRE_SERVER_CORE_PUBLISH_PUBLISHER_H_

#include <map>
#include <span>

#include "common/buffer_pool.h"
#include "common/byte_chain.h"
#include "common/codec/codec.h"
#include "common/ids.h"

namespace thinwire {

class Publisher {
 public:
  // Returns the payload of MASTERS, the masters of VERSION. REQUIRES: IsDense(codec); one version
  // always comes with the same masters.
  ByteChain Encoded(Version version, std::span<const float> masters, CodecId codec);

 private:
  BufferPool pool_;
  Version version_;  // of everything in encoded_
  std::map<CodecId, ByteChain> encoded_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_PUBLISH_PUBLISHER_H_
