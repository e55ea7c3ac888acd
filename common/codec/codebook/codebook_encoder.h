// The encoder of the codebook family. It makes two passes over each group of values: the first fits
// the group's numbers, the second computes the code of each value.
#ifndef THINWIRE_COMMON_CODEC_CODEBOOK_CODEBOOK_ENCODER_H_
#define THINWIRE_COMMON_CODEC_CODEBOOK_CODEBOOK_ENCODER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/codec/codebook/codebook.h"
#include "common/codec/family/encoder.h"

namespace thinwire {

// Returns the codec of FORMAT with SETTINGS. FORMAT must outlive the codec. Errors: InvalidArgument
// if the format refuses the head in SETTINGS.
absl::StatusOr<std::unique_ptr<const Codec>> MakeCodebookCodec(const CodebookFormat& format,
                                                               const CodebookSettings& settings);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEBOOK_CODEBOOK_ENCODER_H_
