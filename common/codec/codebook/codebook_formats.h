// The codecs of the codebook family. The top bit of a code is the sign of its value, except in
// int8; c is the code without its sign.
//
//   codec          head          numbers of a group   bits          value                  fit
//   int8           zero (1)      s                    8             s (c - zero)           s = (max
//   - min) / 255, over the
//                                                                                          values
//                                                                                          and 0
//   onebit         group (4)     p, m                 1             p or m                 means of
//   the positive and of the
//                                                                                          negative
//                                                                                          values
//                                                                                          (Seide
//                                                                                          et al.
//                                                                                          2014)
//   onebit_sign    group (4)     a                    1             a                      mean
//   magnitude (BytePS) table_N        -             t(1) .. t(2^(N-1))   N             t(c+1) the
//   99 j / 2^(N-1) percentiles of
//                                                                                          the
//                                                                                          magnitudes
//                                                                                          (AdaPrec)
//   lloyd_N        -             like table_N         N             t(c+1) table_N's, after 8
//   iterations of
//                                                                                          Lloyd's
//                                                                                          algorithm
//                                                                                          (Lloyd
//                                                                                          1982);
//                                                                                          lloyd_1:
//                                                                                          the mean
//                                                                                          magnitude
//   twobit         -             t                    2             0 or t twobit_threshold;
//   magnitudes of t or
//                                                                                          more
//                                                                                          become t
//                                                                                          (MXNet)
//   qsgd           levels (1)    a                    1 + bits of   a min(c, levels)       the
//   largest magnitude; codes are
//                                                     levels        / levels               rounded
//                                                     at random, without bias
//                                                                                          (Alistarh
//                                                                                          et al.
//                                                                                          2017)
//   log_4          a (2) b (1)   -                    4             a r^(7-c),             eight
//   magnitudes in a constant ratio
//                                                                   r = 1 - b/256
//
// A group is the whole shard, except: 512 values in qsgd, and the group of the head in onebit and
// onebit_sign, where 0 means the whole shard. `a` of log_4 is the upper half of a float. Immutable.
// Thread-safe.
#ifndef THINWIRE_COMMON_CODEC_CODEBOOK_CODEBOOK_FORMATS_H_
#define THINWIRE_COMMON_CODEC_CODEBOOK_CODEBOOK_FORMATS_H_

#include <cstdint>

#include "common/codec/codebook/codebook.h"

namespace thinwire {

const CodebookFormat& Int8Format();

const CodebookFormat& OneBitFormat();
const CodebookFormat& OneBitSignFormat();
// Settings of both; their Shape refuses a group that is not a multiple of 8.
CodebookSettings OneBitSettings(uint32_t group);

const CodebookFormat& TwoBitFormat();
CodebookSettings TwoBitSettings(float threshold);

const CodebookFormat& QsgdFormat();
// Shape refuses levels outside 1 to 127.
CodebookSettings QsgdSettings(uint32_t levels);

const CodebookFormat& Log4Format();

// REQUIRES: 1 <= bits <= 8.
const CodebookFormat& TableFormat(int bits);
const CodebookFormat& LloydFormat(int bits);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEBOOK_CODEBOOK_FORMATS_H_
