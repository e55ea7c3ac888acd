// MixBits of kernels/mix_bits.h under the name that the rooms above use. Thread-safe.
#ifndef THINWIRE_COMMON_MIX_BITS_H_
#define THINWIRE_COMMON_MIX_BITS_H_

#include "kernels/mix_bits.h"

namespace thinwire {

using kernels::MixBits;

}  // namespace thinwire

#endif  // THINWIRE_COMMON_MIX_BITS_H_
