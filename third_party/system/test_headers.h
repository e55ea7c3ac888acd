// Headers of libraries that most tests include, which are compiled once for all tests (.bazelrc, decision 0158).
// A test still includes what it uses.
#ifndef THINWIRE_THIRD_PARTY_SYSTEM_TEST_HEADERS_H_
#define THINWIRE_THIRD_PARTY_SYSTEM_TEST_HEADERS_H_
#ifndef THINWIRE_PLAIN_HEADERS

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <thread>

#include "third_party/system/library_headers.h"

#endif  // THINWIRE_PLAIN_HEADERS
#endif  // THINWIRE_THIRD_PARTY_SYSTEM_TEST_HEADERS_H_
