#include "worker/process/termination.h"

#include <glog/logging.h>
#include <signal.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <utility>

#include "common/base/process_setup.h"

namespace thinwire {

Termination::Termination() {
  for (const int signal : StopSignals()) signals_.add(signal);
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
    if (!requested_.HasBeenNotified()) {
      requested_.Notify();
      LOG(WARNING) << "signal " << signal << ": leaving the job";
      if (callback_ != nullptr) callback_();
    } else if (signal != SIGHUP) {
      LOG(ERROR) << "signal " << signal << " received twice: ending at once";
      _exit(128 + signal);
    }
    Await();
  });
}

void Termination::SetCallback(std::function<void()> callback) {
  absl::Notification set;
  boost::asio::post(io_, [&] {
    callback_ = std::move(callback);
    if (requested() && callback_ != nullptr) callback_();
    set.Notify();
  });
  set.WaitForNotification();
}

}  // namespace thinwire
