// The codecs with a codebook (codebook.h), one file each.
//
//   int8          s and zero so that the codes 0 to 255 reach from the least value to the largest
//   onebit        the means of the values of either sign (Seide et al. 2014)
//   onebit_sign   the mean magnitude
//   table_N       the 99 j / 2^(N-1) percentiles of |v|, j = 1 .. 2^(N-1) (AdaPrec)
//   lloyd_N       those, after 8 iterations of Lloyd's algorithm; lloyd_1: the mean magnitude
//   twobit        0, and a threshold from which values are sent as the threshold (MXNet)
//   qsgd          levels of the largest magnitude of 512, rounded at random without a bias
//                 (Alistarh et al. 2017, with the largest magnitude for the norm)
//   log_4         8 magnitudes in even ratios, the smallest to the largest of a shard
#ifndef THINWIRE_COMMON_CODEC_CODEBOOK_CODECS_H_
#define THINWIRE_COMMON_CODEC_CODEBOOK_CODECS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/codec/codec.h"

namespace thinwire {

std::unique_ptr<const Codec> MakeInt8Codec();
// REQUIRES: onebit or onebit_sign. Errors: InvalidArgument unless GROUP is a multiple of 8.
absl::StatusOr<std::unique_ptr<const Codec>> MakeOneBitCodec(CodecId id, uint32_t group);
// REQUIRES: table_N or lloyd_N.
std::unique_ptr<const Codec> MakeTableCodec(CodecId id);
// Errors: InvalidArgument unless THRESHOLD is above 0 and finite.
absl::StatusOr<std::unique_ptr<const Codec>> MakeTwoBitCodec(double threshold);
// Errors: InvalidArgument unless LEVELS is 1 to 127.
absl::StatusOr<std::unique_ptr<const Codec>> MakeQsgdCodec(uint32_t levels);
std::unique_ptr<const Codec> MakeLog4Codec();

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEBOOK_CODECS_H_
