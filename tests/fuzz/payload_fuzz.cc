// A libFuzzer target for the payloads of one family of codecs: element THINWIRE_FUZZ_FAMILY of
// Families(). run.sh builds and runs one target per family.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "tests/fuzz/payload_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const thinwire::Family family = thinwire::Families()[THINWIRE_FUZZ_FAMILY];
  const auto input = thinwire::ReadInput(family, std::as_bytes(std::span(data, size)));
  if (!input) return 0;
  const std::string fault = thinwire::Fault(*input);
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s\n", fault.c_str());
  abort();
}
