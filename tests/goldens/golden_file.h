// Golden files: texts in tests/goldens that earlier builds have written. docs/testing.md says which
// of them may change.
#ifndef THINWIRE_TESTS_GOLDENS_GOLDEN_FILE_H_
#define THINWIRE_TESTS_GOLDENS_GOLDEN_FILE_H_

#include <string>

namespace thinwire {

enum class GoldenKind {
  kReplaceable,  // tests/goldens/update.sh writes the text of this build
  // update.sh adds lines, but refuses to change or to remove a line, because files and processes of
  // earlier builds follow it.
  kPermanent,
};

// Returns the folder with the golden files.
std::string GoldenFolder();

// Returns the path of the checkout's folder tests/goldens if this run updates the golden files,
// else "". It is the value of the environment variable THINWIRE_GOLDENS, which update.sh sets.
std::string UpdatedFolder();

// Returns the text of the golden file NAME, "" if it does not exist.
std::string ReadGolden(const std::string& name);

// Expects that the golden file NAME contains TEXT. A difference fails the test and prints the lines
// that differ. If this run updates the golden files, writes TEXT to the file, unless KIND forbids
// it.
void ExpectGolden(const std::string& name, GoldenKind kind, const std::string& text);

}  // namespace thinwire

#endif  // THINWIRE_TESTS_GOLDENS_GOLDEN_FILE_H_
