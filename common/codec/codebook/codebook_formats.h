// The codecs of the codebook family. In this table, "head" lists the fields of the head with their
// sizes in bytes, "bits" is the size of a code, c is a code without its sign, and bits(levels) is
// the number of binary digits of levels. The top bit of a code is the sign of its value, except in
// int8.
//
//   codec         head         numbers per group    bits               value
//   int8          zero (1)     s                    8                  s (c - zero)
//   onebit        group (4)    p, m                 1                  p or m
//   onebit_sign   group (4)    a                    1                  a
//   table_N       -            t(1) .. t(2^(N-1))   N                  t(c+1)
//   lloyd_N       -            t(1) .. t(2^(N-1))   N                  t(c+1)
//   twobit        -            t                    2                  0 or t
//   qsgd          levels (1)   a                    1 + bits(levels)   a min(c, levels) / levels
//   log_4         a (2) b (1)  -                    4                  a (1 - b/256)^(7-c)
//   fp4_e3m0      -            a                    4                  0 if c = 0, else a 2^(c-7)
//
// The encoder computes the numbers, and the head of log_4, as follows:
//
//   int8          s = (max - min) / 255, where max >= 0 and min <= 0 bound the values; zero is the
//                 code of the value 0
//   onebit        p and m are the means of the positive and of the negative values (Seide et al.
//                 2014)
//   onebit_sign   a is the mean magnitude (BytePS)
//   table_N       t(j) is the 99 j / 2^(N-1) percentile of the magnitudes (AdaPrec)
//   lloyd_N       the numbers of table_N after 8 iterations of Lloyd's algorithm (Lloyd 1982);
//                 lloyd_1: the mean magnitude
//   twobit        t is a setting; magnitudes of t or more become t, others 0 (MXNet)
//   qsgd          a is the largest magnitude; codes are rounded at random, without bias (Alistarh
//                 et al. 2017)
//   log_4         a and b define eight magnitudes in a constant ratio, which cover the range from
//                 the smallest to the largest magnitude
//   fp4_e3m0      a is the largest magnitude (Douillard et al. 2025, Streaming DiLoCo)
//
// A group is the whole shard, with two exceptions: a group of qsgd and fp4_e3m0 has 512 values, and
// the head of onebit and onebit_sign contains the number of values per group, 0 for the whole
// shard. `a` of log_4 is the upper half of a float. Immutable. Thread-safe.
#ifndef THINWIRE_COMMON_CODEC_CODEBOOK_CODEBOOK_FORMATS_H_
#define THINWIRE_COMMON_CODEC_CODEBOOK_CODEBOOK_FORMATS_H_

#include <cstdint>

#include "common/codec/codebook/codebook.h"

namespace thinwire {

const CodebookFormat& Int8Format();

const CodebookFormat& OneBitFormat();
const CodebookFormat& OneBitSignFormat();
// Returns the settings of onebit and onebit_sign with GROUP values per group, 0 for the whole
// shard. If GROUP is not a multiple of 8, Shape() of both formats returns an error for the
// settings' head.
CodebookSettings OneBitSettings(uint32_t group);

const CodebookFormat& TwoBitFormat();
CodebookSettings TwoBitSettings(float threshold);

const CodebookFormat& QsgdFormat();
// Returns the settings of qsgd with LEVELS levels. If LEVELS is not 1 to 127, QsgdFormat().Shape()
// returns an error for the settings' head.
CodebookSettings QsgdSettings(uint32_t levels);

const CodebookFormat& Log4Format();

const CodebookFormat& Fp4E3m0Format();

// REQUIRES: 1 <= bits <= 8.
const CodebookFormat& TableFormat(int bits);
const CodebookFormat& LloydFormat(int bits);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEBOOK_CODEBOOK_FORMATS_H_
