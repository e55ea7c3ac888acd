// The ids of codecs and index coders on the wire. common/codec/table.h maps ids to names and
// properties. Constants: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_FAMILY_CODEC_ID_H_
#define THINWIRE_COMMON_CODEC_FAMILY_CODEC_ID_H_

#include <cstdint>

namespace thinwire {

// The id of a codec. It is the first byte of a payload, and a request for parameters contains it in
// the field `read_codec` (proto/parameter_service.proto). The id of a removed codec is never
// reused.
enum class CodecId : uint8_t {
  kFp32 = 1,
  kFp16 = 2,
  kBf16 = 3,
  kFp8E5m2 = 4,
  kFp8E4m3 = 5,
  kTopK = 6,
  kInt8 = 7,
  kOneBit = 8,
  kOneBitSign = 9,
  kTwoBit = 10,
  kRandomK = 11,
  kQsgd = 12,
  kLog4 = 13,
  kTable1 = 14,  // kTable1 + N - 1 is table_N, up to kTable8
  kTable8 = 21,
  kLloyd1 = 22,  // kLloyd1 + N - 1 is lloyd_N, up to kLloyd8
  kLloyd8 = 29,
  kPowerSgd = 30,
  kFp4E3m0 = 31,
  kDctTopK = 32,
};

// The encoding of the indices of a topk or dct_topk payload (common/codec/sparse/index_code.h).
enum class IndexCoder : uint8_t { kEliasFano = 0, kGolombRice = 1 };

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_FAMILY_CODEC_ID_H_
