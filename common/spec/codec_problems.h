// CodecProblems checks the settings of a codec against the names that they have in a job file.
#ifndef THINWIRE_COMMON_SPEC_CODEC_PROBLEMS_H_
#define THINWIRE_COMMON_SPEC_CODEC_PROBLEMS_H_

#include <string_view>

#include "common/codec/table.h"
#include "common/problems.h"

namespace thinwire {

// Pushes and pulls have a density and a value codec each; they share all other codec settings.
struct CodecFieldNames {
  std::string_view density = "density";
  std::string_view values = "topk_values";
};

// Checks the settings that the codec of SPEC reads.
Problems CodecProblems(const CodecSpec& spec, const CodecFieldNames& names = {});

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_CODEC_PROBLEMS_H_
