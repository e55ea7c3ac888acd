#include "common/base/host_name.h"

#include <limits.h>
#include <unistd.h>

namespace thinwire {

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = "";
  if (gethostname(name, sizeof(name) - 1) != 0) return "host";
  return name;
}

}  // namespace thinwire
