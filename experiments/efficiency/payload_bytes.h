// PayloadBytes measures the payloads of one shard with the codecs and the publisher of thinwire's
// workers and servers, on normally distributed gradients that are independent between the workers.
// Gradients of a real model select more common indices, which makes the exact deltas of `top-k`
// smaller.
//
//   fp8      push fp8_e5m2                    pull delta_fp8_e5m2
//   onebit   push onebit                      pull delta_onebit
//   top-k    push topk, values in fp8_e5m2    pull delta: the union of all workers' indices
//   gTop-k   push topk, values in fp8_e5m2    pull delta: the indices that gTop-k selects at the server
#ifndef THINWIRE_EXPERIMENTS_EFFICIENCY_PAYLOAD_BYTES_H_
#define THINWIRE_EXPERIMENTS_EFFICIENCY_PAYLOAD_BYTES_H_

#include <cstdint>

namespace thinwire::lab {

enum class Compressor { kFp8, kOneBit, kTopK, kGtopk };

struct PayloadBytes {
  uint64_t push = 0;  // from one worker
  uint64_t pull = 0;  // to one worker
};

// Returns the payload bytes of a shard of VALUES values in one step. DENSITY is that of top-k and
// gTop-k. REQUIRES: VALUES and WORKERS are positive; DENSITY is valid.
PayloadBytes MeasurePayloadBytes(Compressor compressor, uint64_t values, uint32_t workers,
                                 double density);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_EFFICIENCY_PAYLOAD_BYTES_H_
