// Escapes and shortens strings that come from a peer or from a file, before a message shows them.
#ifndef THINWIRE_COMMON_TEXT_QUOTED_H_
#define THINWIRE_COMMON_TEXT_QUOTED_H_

#include <string>

#include "absl/strings/string_view.h"

namespace thinwire {

// Returns TEXT cut after 200 characters. For a text without control characters, such as a list of
// numbers.
std::string Shortened(absl::string_view text);

// Returns TEXT in double quotes, with escapes for quotes, control characters and bytes above 127,
// and cut after 200 characters:
//
//   job: another job (expected "train", got "tra\nin")
std::string Quoted(absl::string_view text);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TEXT_QUOTED_H_
