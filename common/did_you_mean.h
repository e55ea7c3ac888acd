// DidYouMean: the known word that a mistyped one was most likely meant to be, and the error that
// says so.
#ifndef THINWIRE_COMMON_DID_YOU_MEAN_H_
#define THINWIRE_COMMON_DID_YOU_MEAN_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace thinwire {

// The word of KNOWN that takes the fewest edits to reach from GOT: letters put in, left out,
// replaced, or two neighbours swapped, each one edit, upper and lower case alike. The earlier one
// of equals; "" if the nearest is more than a third of GOT's length away (one edit is always near
// enough, but no whole word). GOT may come from anywhere: one of more than 64 bytes is near to
// nothing.
std::string DidYouMean(std::string_view got, std::span<const std::string_view> known);

// The InvalidArgument for a word that is none of KNOWN:
// "optimizer: want sgd, adam or adamw, got \"adma\"; did you mean adam?".
absl::Status UnknownWord(std::string_view field, std::string_view got,
                         std::span<const std::string_view> known);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_DID_YOU_MEAN_H_
