// fault_proxy: forwards TCP connections and injects faults. It reads commands from standard input,
// so that a person or a test can change the faults while it runs (docs/testing.md).
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/streambuf.hpp>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "tests/fault_proxy/fault_proxy.h"
#include "tests/fault_proxy/wire_faults.h"

namespace thinwire {
namespace {

using boost::system::error_code;

int Complain(const absl::Status& status) {
  std::cerr << "fault_proxy: " << status.message() << std::endl;
  return static_cast<int>(ExitCodeOf(status));
}

// A command and the time after the start at which it is applied.
struct TimedCommand {
  absl::Duration after;
  std::string command;
};

absl::StatusOr<TimedCommand> ParseTimedCommand(const std::string& text) {
  TimedCommand timed;
  const size_t space = text.find(' ');
  const bool ok = space != std::string::npos &&
                  absl::ParseDuration(text.substr(0, space), &timed.after) &&
                  timed.after >= absl::ZeroDuration();
  if (!ok) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--at: wrong value (expected a duration and a command such as \"5s cut both\", got \"",
        text, "\")"));
  }
  timed.command = text.substr(space + 1);
  if (timed.command == "reset") return timed;
  WireFaults unused;
  RETURN_IF_ERROR(unused.Apply(timed.command));
  return timed;
}

// Reads commands from standard input, one per line, until its end.
class CommandReader {
 public:
  CommandReader(boost::asio::io_context& io, FaultProxy& proxy)
      : input_(io, dup(STDIN_FILENO)), proxy_(proxy) {}

  void ReadLine() {
    boost::asio::async_read_until(input_, buffer_, '\n', [this](error_code error, size_t) {
      if (error) return;  // the end of the input
      std::string line;
      std::istream stream(&buffer_);
      std::getline(stream, line);
      if (!line.empty()) {
        const absl::Status status = proxy_.Command(line);
        if (!status.ok()) Complain(status);
      }
      ReadLine();
    });
  }

 private:
  boost::asio::posix::stream_descriptor input_;
  boost::asio::streambuf buffer_;
  FaultProxy& proxy_;
};

absl::Status CheckInput() {
  struct stat input = {};
  if (fstat(STDIN_FILENO, &input) != 0 || !S_ISREG(input.st_mode)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "standard input: wrong kind (expected a terminal or a pipe, got a file)");
}

absl::Status Serve(const ProxyOptions& options, const std::vector<TimedCommand>& commands) {
  RETURN_IF_ERROR(CheckInput());
  boost::asio::io_context io;
  ASSIGN_OR_RETURN(const std::unique_ptr<FaultProxy> proxy, FaultProxy::Start(io, options));
  boost::asio::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&io](error_code, int) { io.stop(); });
  std::vector<boost::asio::steady_timer> timers;
  timers.reserve(commands.size());
  for (const TimedCommand& timed : commands) {
    timers.emplace_back(io, absl::ToChronoNanoseconds(timed.after));
    timers.back().async_wait([&proxy = *proxy, command = timed.command](error_code) {
      std::cout << command << std::endl;
      const absl::Status status = proxy.Command(command);
      if (!status.ok()) Complain(status);
    });
  }
  CommandReader reader(io, *proxy);
  reader.ReadLine();
  std::cout << "listening " << proxy->address() << std::endl;
  io.run();
  std::cout << proxy->counts() << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  CLI::App app("fault_proxy: forwards TCP connections to a target and injects faults.");
  app.footer(
      "Example:\n"
      "  fault_proxy --to 127.0.0.1:7000 --latency 80ms --bandwidth 10Mbit --at \"5s cut both\"\n"
      "Commands on standard input, one per line: latency 20ms, bandwidth 1Mbit, slice 1400,\n"
      "reset_rate 0.01, cut up, cut down, cut both, half-open, restore, reset.\n"
      "SIGTERM ends the proxy; it then prints its counts.");
  thinwire::ProxyOptions options;
  app.add_option("--listen", options.listen, "host:port to listen on. Default: 127.0.0.1:0");
  app.add_option("--to", options.target, "host:port of the target")->required();
  app.add_option("--seed", options.seed, "Seed of the random resets. Default: 1");
  // The flags below have the names of commands.
  std::vector<std::pair<std::string, std::string>> faults = {
      {"latency", ""}, {"bandwidth", ""}, {"slice", ""}, {"reset_rate", ""}, {"cut", ""}};
  const std::vector<std::string> help = {
      "Delay in each direction, such as 80ms", "Limit of each direction, such as 10Mbit",
      "The most bytes per write. Default: 16384", "Random resets per second and connection",
      "Starts with a cut: up, down or both"};
  for (size_t i = 0; i < faults.size(); ++i) {
    app.add_option("--" + faults[i].first, faults[i].second, help[i]);
  }
  app.add_flag("--half_open", options.faults.half_open, "Starts half-open");
  std::vector<std::string> at;
  app.add_option("--at", at, "A duration and a command, such as \"5s cut both\". May be repeated");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(thinwire::ExitCode::kUsage);
  }
  for (const auto& [name, value] : faults) {
    if (app.count("--" + name) == 0) continue;
    const absl::Status status = options.faults.Apply(name + " " + value);
    if (!status.ok()) {
      return thinwire::Complain(
          absl::InvalidArgumentError(absl::StrCat("--", std::string(status.message()))));
    }
  }
  std::vector<thinwire::TimedCommand> commands;
  for (const std::string& text : at) {
    auto timed = thinwire::ParseTimedCommand(text);
    if (!timed.ok()) return thinwire::Complain(timed.status());
    commands.push_back(*std::move(timed));
  }
  const absl::Status status = thinwire::Serve(options, commands);
  return status.ok() ? 0 : thinwire::Complain(status);
}
