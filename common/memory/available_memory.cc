#include "common/memory/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace thinwire {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

uint64_t MemAvailable(const std::string& meminfo) {
  std::ifstream file(meminfo);
  for (std::string name, unit; file >> name;) {
    uint64_t kibibytes = 0;
    if (name == "MemAvailable:" && file >> kibibytes) return kibibytes * 1024;
    std::getline(file, unit);
  }
  return kUnlimited;
}

// Returns the number in a file of a control group. A group without a limit has the word "max".
uint64_t LimitIn(const std::string& path) {
  std::ifstream file(path);
  uint64_t limit = 0;
  return file >> limit ? limit : kUnlimited;
}

// Returns the smallest limit of a control group and of the groups around it. MOUNT is the folder of
// the hierarchy, PATH the group in it, NAME the file with the limit.
uint64_t LimitOfGroup(const std::string& mount, absl::string_view path, absl::string_view name) {
  uint64_t limit = LimitIn(absl::StrCat(mount, "/", name));
  std::string folder = mount;
  for (absl::string_view part : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    absl::StrAppend(&folder, "/", part);
    limit = std::min(limit, LimitIn(absl::StrCat(folder, "/", name)));
  }
  return limit;
}

}  // namespace

uint64_t AvailableMemory(const std::string& root) {
  uint64_t available = MemAvailable(absl::StrCat(root, "/proc/meminfo"));
  const std::string groups = absl::StrCat(root, "/sys/fs/cgroup");
  std::ifstream file(absl::StrCat(root, "/proc/self/cgroup"));
  for (std::string line; std::getline(file, line);) {
    // A line is "0::/path" in version 2 and "5:memory:/path" in version 1.
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[1].empty()) {
      available = std::min(available, LimitOfGroup(groups, parts[2], "memory.max"));
    } else if (parts[1] == "memory") {
      available = std::min(available, LimitOfGroup(absl::StrCat(groups, "/memory"), parts[2],
                                                   "memory.limit_in_bytes"));
    }
  }
  return available;
}

}  // namespace thinwire
