#include "config/command_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/exit_code.h"
#include "common/text/did_you_mean.h"

namespace thinwire {

Flag& Flag::Type(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Flag& Flag::Environment(const std::string& variable) {
  option_->envname(variable);
  return *this;
}

Flag& Flag::Group(const std::string& name) {
  option_->group(name);
  return *this;
}

Flag& Flag::Description(const std::string& text) {
  option_->description(text);
  return *this;
}

Flag& Flag::Required() {
  option_->required();
  return *this;
}

Flag& Flag::OneOf(std::initializer_list<std::string> values) {
  // Without the description, which the help would show after the type, which names the values.
  option_->check(CLI::IsMember(std::vector<std::string>(values)).description(""));
  return *this;
}

Flag& Flag::Between(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Flag& Flag::Between(uint32_t least, uint32_t most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Flag& Flag::Between(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Flag& Flag::Bytes() {
  option_->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  return *this;
}

Flag& Flag::Needs(const Flag& other) {
  option_->needs(other.option_);
  return *this;
}

Flag& Flag::Excludes(const Flag& other) {
  option_->excludes(other.option_);
  return *this;
}

template <typename T>
Flag CommandFlags::Add(const std::string& name, T& value, const std::string& help) {
  return Flag(*app_.add_option(name, value, help));
}

template Flag CommandFlags::Add(const std::string&, std::string&, const std::string&);
template Flag CommandFlags::Add(const std::string&, int&, const std::string&);
template Flag CommandFlags::Add(const std::string&, uint32_t&, const std::string&);
template Flag CommandFlags::Add(const std::string&, uint64_t&, const std::string&);
template Flag CommandFlags::Add(const std::string&, double&, const std::string&);
template Flag CommandFlags::Add(const std::string&, std::optional<uint32_t>&, const std::string&);
template Flag CommandFlags::Add(const std::string&, std::optional<uint64_t>&, const std::string&);
template Flag CommandFlags::Add(const std::string&, std::vector<std::string>&, const std::string&);

Flag CommandFlags::AddSwitch(const std::string& name, bool& value, const std::string& help) {
  return Flag(*app_.add_flag(name, value, help));
}

Flag CommandFlags::Get(const std::string& name) { return Flag(*app_.get_option(name)); }

CLI::App* CommandFlags::AddSubcommand(const std::string& name, const std::string& help) {
  return app_.add_subcommand(name, help);
}

void CommandFlags::RequireSubcommand() { app_.require_subcommand(1); }

void CommandFlags::AllowExtras() { app_.allow_extras(); }

void CommandFlags::Footer(const std::string& text) { app_.footer(text); }

void CommandFlags::AddVersion(const std::string& text) { app_.set_version_flag("--version", text); }

bool IsParsed(const CLI::App& app) { return app.parsed(); }

bool IsOnCommandLine(const CLI::App& app, const std::string& name) {
  const std::vector<CLI::Option*>& order = app.parse_order();
  return std::ranges::find(order, app.get_option(name)) != order.end();
}

absl::Status CheckNoExtras(const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) known.push_back(option->get_name());
  const std::vector<std::string_view> views(known.begin(), known.end());
  std::vector<std::string> extras = app.remaining();
  std::erase(extras, "--");  // the mark before positional arguments
  std::vector<std::string> problems;
  for (const std::string& extra : extras) {
    if (!absl::StartsWith(extra, "-")) continue;
    const std::string flag = extra.substr(0, extra.find('='));
    const std::string nearest = DidYouMean(flag, views);
    problems.push_back(
        absl::StrCat(flag, ": unknown flag",
                     nearest.empty() ? "" : absl::StrCat(" (did you mean ", nearest, "?)")));
  }
  // A word that belongs to no known flag may be the value of an unknown flag. Therefore the word is
  // reported only if there is no unknown flag.
  if (problems.empty() && !extras.empty()) {
    problems.push_back(absl::StrCat("\"", extras.front(),
                                    "\": not a flag (expected --NAME, or --config FILE for a job "
                                    "file)"));
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

Program::Program(const std::string& description) : app_(std::make_unique<CLI::App>(description)) {}

Program::~Program() = default;

std::optional<int> Program::Parse(int argc, char** argv,
                                  const std::function<std::string()>& missing) {
  const std::string name = std::filesystem::path(argv[0]).filename();
  const auto fail = [&name](const std::string& problem) {
    std::cerr << name << ": " << problem << std::endl;
    return static_cast<int>(ExitCode::kUsage);
  };
  app_->allow_extras();
  try {
    app_->parse(argc, argv);
    if (const absl::Status extras = CheckNoExtras(*app_); !extras.ok())
      return fail(std::string(extras.message()));
    const std::string flag = missing == nullptr ? "" : missing();
    if (!flag.empty()) throw CLI::RequiredError(flag);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error);  // --help, --version
    // CLI11 reports an unknown flag only as a missing one.
    if (const absl::Status extras = CheckNoExtras(*app_); !extras.ok())
      return fail(std::string(extras.message()));
    return fail(absl::StrCat(error.what(), " (", name, " --help shows what is expected)"));
  }
  return std::nullopt;
}

}  // namespace thinwire
