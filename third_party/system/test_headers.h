// Headers of libraries that most tests include, which are compiled once for all tests (.bazelrc).
// A test still includes what it uses.
#ifndef THINWIRE_THIRD_PARTY_SYSTEM_TEST_HEADERS_H_
#define THINWIRE_THIRD_PARTY_SYSTEM_TEST_HEADERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#endif  // THINWIRE_THIRD_PARTY_SYSTEM_TEST_HEADERS_H_
