// Version: what this program was built from and what it can speak.
#ifndef THINWIRE_CLI_VERSION_H_
#define THINWIRE_CLI_VERSION_H_

#include <string>

namespace thinwire {

// "thinwire 4f1c2d3e5a6b\ncodecs: fp32 fp16 ...".
std::string VersionText();

}  // namespace thinwire

#endif  // THINWIRE_CLI_VERSION_H_
