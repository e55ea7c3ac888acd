#ifndef THINWIRE_COMMON_BASE_HOST_NAME_H_
#define THINWIRE_COMMON_BASE_HOST_NAME_H_

#include <string>

namespace thinwire {

// Returns the name of this machine; "host" if the system does not know it.
std::string HostName();

}  // namespace thinwire

#endif  // THINWIRE_COMMON_BASE_HOST_NAME_H_
