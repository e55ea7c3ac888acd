#include "cli/version.h"

#include <string_view>

#include "cli/revision.h"
#include "common/codec/table.h"

namespace thinwire {

std::string VersionText() {
  std::string text = std::string("thinwire ") + kRevision + "\ncodecs:";
  for (std::string_view codec : CodecNames()) text.append(" ").append(codec);
  return text;
}

}  // namespace thinwire
