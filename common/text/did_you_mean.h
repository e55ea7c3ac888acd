// DidYouMean: finds the known word that a mistyped word probably meant. Pure functions:
// thread-safe.
#ifndef THINWIRE_COMMON_TEXT_DID_YOU_MEAN_H_
#define THINWIRE_COMMON_TEXT_DID_YOU_MEAN_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace thinwire {

// Returns the word of KNOWN with the smallest edit distance from GOT; among words with equal
// distances, the first one. An edit inserts, removes or replaces a letter, or swaps two adjacent
// letters; case is ignored. A word is similar if its distance is at most one edit or a third of
// GOT's length, and below the word's own length. Returns "" if no word is similar, or if GOT has
// more than 64 bytes. GOT may have any content.
std::string DidYouMean(std::string_view got, std::span<const std::string_view> known);

// Returns the InvalidArgument error for a word GOT that is not in KNOWN. Example: "optimizer:
// unknown (expected sgd, adam or adamw, got \"adma\"; did you mean adam?)".
absl::Status UnknownWord(std::string_view field, std::string_view got,
                         std::span<const std::string_view> known);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TEXT_DID_YOU_MEAN_H_
