#include "client/encode/encoding_error.h"

#include <cstddef>

namespace thinwire::client {

void EncodingError::Add(std::span<const float> residual, std::span<const float> gradient,
                        const CheckedPayload& payload) {
  DecodePayloadInBlocks(payload, 1, [&](size_t first, std::span<const float> sent) {
    for (size_t i = 0; i < sent.size(); ++i) {
      const double value = gradient[first + i] + (residual.empty() ? 0 : residual[first + i]);
      const double error = value - sent[i];
      errors += error * error;
      values += value * value;
    }
  });
}

}  // namespace thinwire::client
