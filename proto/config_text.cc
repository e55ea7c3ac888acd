#include "proto/config_text.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/text_reader.h"

namespace thinwire {
namespace {

// A configuration is a page; what is larger is another file.
constexpr size_t kMostBytes = 1 << 20;

absl::Status AllOf(const std::vector<std::string>& problems) {
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

}  // namespace

template <typename Config>
absl::StatusOr<ConfigText<Config>> ParseConfigText(std::string_view text, std::string_view file) {
  ConfigText<Config> result;
  TextReading reading = ReadText(text, file, result.config);
  if (!reading.problems.empty()) return AllOf(reading.problems);
  result.places = std::move(reading.places);
  return result;
}

template <typename Config>
absl::StatusOr<Config> ParseConfig(std::string_view text, std::string_view file) {
  Config config;
  TextReading reading = ReadText(text, file, config);
  std::vector<std::string> problems = std::move(reading.problems);
  // What fields must be to one another cannot be told while some are missing.
  const CheckScope scope = problems.empty() ? CheckScope::kWhole : CheckScope::kFields;
  for (std::string& problem : ConfigProblems(config, reading.places, scope)) {
    problems.push_back(std::move(problem));
  }
  if (!problems.empty()) return AllOf(problems);
  return config;
}

template <typename Config>
absl::StatusOr<ConfigText<Config>> ReadConfigText(const std::string& path) {
  auto text = ReadTextFile(path);
  if (!text.ok()) return text.status();
  return ParseConfigText<Config>(*text, path);
}

template <typename Config>
absl::StatusOr<Config> ReadConfig(const std::string& path) {
  auto text = ReadTextFile(path);
  if (!text.ok()) return text.status();
  return ParseConfig<Config>(*text, path);
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text(kMostBytes + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || !in.is_open() || (in.fail() && !in.eof())) {
    return absl::ErrnoToStatus(errno == 0 ? EIO : errno, absl::StrCat(path, ": cannot be read"));
  }
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > kMostBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": want at most ", kMostBytes, " bytes, got more"));
  }
  return text;
}

template absl::StatusOr<ConfigText<ServerConfig>> ParseConfigText(std::string_view,
                                                                  std::string_view);
template absl::StatusOr<ConfigText<WorkerConfig>> ParseConfigText(std::string_view,
                                                                  std::string_view);
template absl::StatusOr<ConfigText<TrainConfig>> ParseConfigText(std::string_view,
                                                                 std::string_view);
template absl::StatusOr<ServerConfig> ParseConfig(std::string_view, std::string_view);
template absl::StatusOr<WorkerConfig> ParseConfig(std::string_view, std::string_view);
template absl::StatusOr<TrainConfig> ParseConfig(std::string_view, std::string_view);
template absl::StatusOr<ConfigText<ServerConfig>> ReadConfigText(const std::string&);
template absl::StatusOr<ConfigText<WorkerConfig>> ReadConfigText(const std::string&);
template absl::StatusOr<ConfigText<TrainConfig>> ReadConfigText(const std::string&);
template absl::StatusOr<ServerConfig> ReadConfig(const std::string&);
template absl::StatusOr<WorkerConfig> ReadConfig(const std::string&);
template absl::StatusOr<TrainConfig> ReadConfig(const std::string&);

}  // namespace thinwire
