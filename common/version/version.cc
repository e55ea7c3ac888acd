#include "common/version/version.h"

#include "absl/strings/str_cat.h"
#include "common/codec/table.h"
#include "common/version/build.h"

namespace thinwire {

std::string_view BuildVersion() { return kVersion; }
std::string_view BuildRevision() { return kRevision; }

std::string VersionText(std::string_view program) {
  std::string text =
      absl::StrCat(std::string(program), " ", kVersion, " (revision ", kRevision, ")\ncodecs:");
  for (const std::string_view codec : CodecNames()) text.append(" ").append(codec);
  absl::StrAppend(&text, "\nCUDA architectures: ", kCudaArchitectures);
  return text;
}

}  // namespace thinwire
