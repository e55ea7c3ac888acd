// EncodingError: how far a codec's payloads are from the values that were encoded. The ratio is the
// normalized mean squared error of adaptive precision (docs/adaptive_precision.md).
#ifndef THINWIRE_CLIENT_ENCODE_ENCODING_ERROR_H_
#define THINWIRE_CLIENT_ENCODE_ENCODING_ERROR_H_

#include <span>

#include "common/codec/payload.h"

namespace thinwire::client {

struct EncodingError {
  double errors = 0;  // the sum of the squares of the errors
  double values = 0;  // the sum of the squares of the encoded values

  // Adds PAYLOAD, which was encoded from RESIDUAL + GRADIENT. REQUIRES: RESIDUAL is empty or has as
  // many values as GRADIENT.
  void Add(std::span<const float> residual, std::span<const float> gradient,
           const CheckedPayload& payload);
  // Returns errors / values; 0 if all values are 0.
  double ratio() const { return values > 0 ? errors / values : 0; }
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_ENCODING_ERROR_H_
