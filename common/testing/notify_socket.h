// NotifySocket receives the messages of sd_notify in place of systemd.
#ifndef THINWIRE_COMMON_TESTING_NOTIFY_SOCKET_H_
#define THINWIRE_COMMON_TESTING_NOTIFY_SOCKET_H_

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace thinwire {

// At most one object per process. Not thread-safe.
class NotifySocket {
 public:
  // Sets $NOTIFY_SOCKET for this process and for processes that it starts later.
  NotifySocket() {
    const std::string name = absl::StrCat("@thinwire-notify-", getpid());
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0) << name;
  }
  ~NotifySocket() {
    unsetenv("NOTIFY_SOCKET");
    close(socket_);
  }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  // Blocks until a message arrives, and returns it. Returns "" if none arrives within TIMEOUT.
  std::string Receive(absl::Duration timeout = absl::Seconds(90)) {
    pollfd wait = {.fd = socket_, .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) <= 0) return "";
    std::string message(4096, '\0');
    const ssize_t size = recv(socket_, message.data(), message.size(), 0);
    message.resize(size < 0 ? 0 : static_cast<size_t>(size));
    return message;
  }

 private:
  const int socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TESTING_NOTIFY_SOCKET_H_
