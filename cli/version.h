// Version information of this build. VersionText() has a source file of its own: every commit
// changes revision.h, and Bazel then compiles only that source file again.
#ifndef THINWIRE_CLI_VERSION_H_
#define THINWIRE_CLI_VERSION_H_

#include <string>

namespace thinwire {

// Returns the version text, such as "thinwire 4f1c2d3e5a6b\ncodecs: fp32 fp16 ...".
std::string VersionText();

}  // namespace thinwire

#endif  // THINWIRE_CLI_VERSION_H_
