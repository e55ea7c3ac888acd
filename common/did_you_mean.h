// DidYouMean: finds the known word that a mistyped word probably meant. Pure functions:
// thread-safe.
#ifndef THINWIRE_COMMON_DID_YOU_MEAN_H_
#define THINWIRE_COMMON_DID_YOU_MEAN_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace thinwire {

// Returns the word of KNOWN with the smallest edit distance from GOT, and the first of equal ones.
// An inserted, removed or replaced letter and two swapped neighbours count as one edit; case is
// ignored. Returns "" if the distance exceeds a third of GOT's length and one edit, if it reaches
// the word's whole length, or if GOT has more than 64 bytes. GOT may have any content.
std::string DidYouMean(std::string_view got, std::span<const std::string_view> known);

// Returns the InvalidArgument for a word GOT that is not in KNOWN:
// "optimizer: want sgd, adam or adamw, got \"adma\"; did you mean adam?".
absl::Status UnknownWord(std::string_view field, std::string_view got,
                         std::span<const std::string_view> known);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_DID_YOU_MEAN_H_
