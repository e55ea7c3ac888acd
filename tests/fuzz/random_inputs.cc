// Gives random inputs to a libFuzzer target in a build without libFuzzer. Such inputs reach little
// of the code; they show that the target links and runs.
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main() {
  constexpr int kInputs = 5000;
  constexpr size_t kMaxSize = 200;
  std::mt19937_64 random(1);
  for (int i = 0; i < kInputs; ++i) {
    // The memory has exactly the size of the input, so that a sanitizer detects reads beyond it.
    std::vector<uint8_t> input(random() % (kMaxSize + 1));
    for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
}
