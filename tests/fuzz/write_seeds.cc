// Writes the seed inputs for libFuzzer, one subdirectory per family of payloads, with the family's
// name. Prints the names of the families in the order of Families().
//
//   write_seeds DIRECTORY
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/payload_input.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_seeds DIRECTORY\n");
    return 2;
  }
  for (const thinwire::Family& family : thinwire::Families()) {
    const auto directory = std::filesystem::path(argv[1]) / family.name;
    std::filesystem::create_directories(directory);
    size_t number = 0;
    for (const auto& seed : thinwire::Seeds(family)) {
      std::ofstream file(directory / std::to_string(number++), std::ios::binary);
      file.write(reinterpret_cast<const char*>(seed.data()),
                 static_cast<std::streamsize>(seed.size()));
      if (!file.flush()) return 1;
    }
    std::printf("%s\n", family.name.c_str());
  }
  return 0;
}
