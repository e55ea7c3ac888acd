#include "worker/termination.h"

#include <glog/logging.h>
#include <signal.h>
#include <unistd.h>

#include <boost/system/error_code.hpp>

namespace thinwire {

Termination::Termination() : signals_(io_, SIGTERM, SIGINT) {
  Await();
  thread_ = std::thread([this] { io_.run(); });
}

Termination::~Termination() {
  io_.stop();
  thread_.join();
}

void Termination::Await() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    if (requested_.exchange(true)) {
      LOG(ERROR) << "signal " << signal << " received twice: ending at once";
      _exit(128 + signal);
    }
    LOG(WARNING) << "signal " << signal << ": leaving after the current step";
    Await();
  });
}

}  // namespace thinwire
