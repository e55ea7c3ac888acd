// A libFuzzer target for payloads. The environment variable THINWIRE_FUZZ_FAMILY names the family of
// codecs. Without it, the first byte of each input selects the family.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "tests/fuzz/payload_input.h"

namespace thinwire {
namespace {

// Returns the families that are fuzzed.
std::vector<Family> FuzzedFamilies() {
  const char* name = std::getenv("THINWIRE_FUZZ_FAMILY");
  std::vector<Family> families = Families();
  if (name == nullptr) return families;
  std::erase_if(families, [name](const Family& family) { return family.name != name; });
  if (families.empty()) {
    std::fprintf(stderr, "THINWIRE_FUZZ_FAMILY: unknown family (got %s)\n", name);
    std::exit(1);
  }
  return families;
}

void Check(std::span<const std::byte> input) {
  static const std::vector<Family> families = FuzzedFamilies();
  size_t number = 0;
  if (families.size() > 1) {
    if (input.empty()) return;
    number = static_cast<size_t>(input[0]) % families.size();
    input = input.subspan(1);
  }
  const auto payload = ReadInput(families[number], input);
  if (!payload) return;
  const std::string fault = Fault(*payload);
  if (fault.empty()) return;
  std::fprintf(stderr, "%s\n", fault.c_str());
  std::abort();
}

}  // namespace
}  // namespace thinwire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  thinwire::Check(std::as_bytes(std::span(data, size)));
  return 0;
}
