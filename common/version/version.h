// The version of this build. The functions have a source file of their own: every commit changes
// the git revision, and Bazel then compiles only that source file again.
#ifndef THINWIRE_COMMON_VERSION_VERSION_H_
#define THINWIRE_COMMON_VERSION_VERSION_H_

#include <string>
#include <string_view>

namespace thinwire {

// Returns the version in the file VERSION, such as "0.1.0".
std::string_view BuildVersion();

// Returns the git revision, such as "4f1c2d3e5a6b". It ends with "+" if the source had uncommitted
// changes, and is "unknown" without git.
std::string_view BuildRevision();

// Returns the text of --version for PROGRAM, such as
//   thinwire 0.1.0 (revision 4f1c2d3e5a6b)
//   codecs: fp32 fp16 ...
//   CUDA architectures: sm_80 sm_90 compute_90
std::string VersionText(std::string_view program);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_VERSION_VERSION_H_
