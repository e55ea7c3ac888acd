// Rates of a network in words, as tc(8) writes them.
#ifndef THINWIRE_COMMON_TEXT_BIT_RATE_H_
#define THINWIRE_COMMON_TEXT_BIT_RATE_H_

#include <string>

#include "absl/status/statusor.h"

namespace thinwire {

// Returns the rate of a text such as 500kbit, 20mbit or 1.5gbit, in bytes per second. The units are
// powers of 1000 bits per second; upper and lower case mean the same. Errors: InvalidArgument for
// any other text, or a rate below 100kbit or above 1000gbit, without the place of the text.
absl::StatusOr<double> ParseBitRate(const std::string& text);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TEXT_BIT_RATE_H_
