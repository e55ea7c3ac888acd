// Headers of libraries that most sources include, which are compiled once for all sources (.bazelrc, decision 0158).
// A source still includes what it uses: with --config=plain_headers this header is empty.
#ifndef THINWIRE_THIRD_PARTY_SYSTEM_LIBRARY_HEADERS_H_
#define THINWIRE_THIRD_PARTY_SYSTEM_LIBRARY_HEADERS_H_
#ifndef THINWIRE_PLAIN_HEADERS

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#endif  // THINWIRE_PLAIN_HEADERS
#endif  // THINWIRE_THIRD_PARTY_SYSTEM_LIBRARY_HEADERS_H_
