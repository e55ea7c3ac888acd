#include "server/process/stop_requests.h"

#include <glog/logging.h>

#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>

#include "common/base/process_setup.h"

namespace thinwire {

StopRequests::StopRequests(ExitCode signal_code) {
  for (const int signal : StopSignals()) signals_.add(signal);
  signals_.async_wait([this, signal_code](const boost::system::error_code& error, int signal) {
    if (error) return;
    code_ = signal_code;
    LOG(INFO) << "signal " << signal << ": stopping";
    Stop();
  });
}

bool StopRequests::WaitForRestart() {
  io_.restart();
  if (!stopped_) io_.run();
  return !stopped_;
}

void StopRequests::Fail(const absl::Status& failure, ExitCode code) {
  boost::asio::post(io_, [this, failure, code] {
    LOG(ERROR) << failure.message() << ": stopping";
    failure_ = failure;
    code_ = code;
    Stop();
  });
}

void StopRequests::Drain() {
  boost::asio::post(io_, [this] { Stop(); });
}

void StopRequests::Restart() {
  boost::asio::post(io_, [this] { io_.stop(); });
}

void StopRequests::Stop() {
  stopped_ = true;
  io_.stop();
}

}  // namespace thinwire
