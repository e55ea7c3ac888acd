#include "tests/fault_proxy/proxy_thread.h"

#include <boost/asio/post.hpp>

#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<ProxyThread>> ProxyThread::Start(const ProxyOptions& options) {
  std::unique_ptr<ProxyThread> thread(new ProxyThread);
  ASSIGN_OR_RETURN(thread->proxy_, FaultProxy::Start(thread->io_, options));
  thread->thread_ = std::thread([&io = thread->io_] { io.run(); });
  return thread;
}

ProxyThread::~ProxyThread() {
  if (!thread_.joinable()) return;
  RunOnThread([this] { proxy_.reset(); });
  io_.stop();
  thread_.join();
}

template <typename Function>
void ProxyThread::RunOnThread(const Function& function) {
  absl::Notification done;
  boost::asio::post(io_, [&] {
    function();
    done.Notify();
  });
  done.WaitForNotification();
}

absl::Status ProxyThread::Command(std::string_view command) {
  absl::Status status;
  RunOnThread([&] { status = proxy_->Command(command); });
  return status;
}

ProxyCounts ProxyThread::counts() {
  ProxyCounts counts;
  RunOnThread([&] { counts = proxy_->counts(); });
  return counts;
}

}  // namespace thinwire
