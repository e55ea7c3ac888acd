// Version information of this build. The function has its own source file, because this file is
// compiled again after every commit (revision.h).
#ifndef THINWIRE_CLI_VERSION_H_
#define THINWIRE_CLI_VERSION_H_

#include <string>

namespace thinwire {

// Returns text such as "thinwire 4f1c2d3e5a6b\ncodecs: fp32 fp16 ...".
std::string VersionText();

}  // namespace thinwire

#endif  // THINWIRE_CLI_VERSION_H_
