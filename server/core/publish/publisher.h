// Publisher encodes a shard's masters for readers, once per version and dense codec for any number
// of workers.
//
//   Encoded(version 7, masters, bf16)   encodes
//   Encoded(version 7, masters, bf16)   returns the same bytes
//   Encoded(version 8, masters, bf16)   encodes again; readers of version 7 still own its bytes
//
// Lives on its shard's strand; the returned bytes may be used on any thread.
#ifndef THINWIRE_SERVER_CORE_PUBLISH_PUBLISHER_H_
#define THINWIRE_SERVER_CORE_PUBLISH_PUBLISHER_H_

#include <map>
#include <span>

#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "common/memory/buffer_pool.h"
#include "common/memory/byte_chain.h"

namespace thinwire {

class Publisher {
 public:
  // Returns MASTERS, the masters of VERSION, encoded with CODEC. REQUIRES: IsDense(codec); all
  // calls with one VERSION pass the same masters.
  ByteChain Encoded(Version version, std::span<const float> masters, CodecId codec);

 private:
  BufferPool pool_;
  Version version_;  // the version of all payloads in encoded_
  std::map<CodecId, ByteChain> encoded_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_PUBLISH_PUBLISHER_H_
