#include "config/help.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace thinwire {
namespace {

constexpr size_t kIndent = 2;
constexpr size_t kDescriptionIndent = 6;

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(size_t columns) : columns_(columns) {}

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return absl::StrReplaceAll(CLI::Formatter::make_help(app, name, mode), {{"\n\n\n", "\n\n"}});
  }

  std::string make_description(const CLI::App* app) const override {
    return Wrapped(app->get_description(), 0, columns_);
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    return "\n" + CLI::Formatter::make_usage(app, name);
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return Entry(make_option_name(option, is_positional) + make_option_opts(option),
                 option->get_description());
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (!option->get_type_name().empty() && option->get_type_size() != 0 &&
        !option->get_positional()) {
      absl::StrAppend(&text, " ", option->get_type_name());
    }
    if (option->get_required()) absl::StrAppend(&text, " (required)");
    return text;
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return Entry(command->get_name(), command->get_description());
  }

  std::string make_footer(const CLI::App* app) const override {
    std::string text;
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_envname().empty()) continue;
      text = Wrapped(absl::StrCat("Each flag is also an environment variable, such as ",
                                  option->get_envname(), " for ", option->get_name(), "."),
                     0, columns_);
      break;
    }
    if (app->get_footer().empty()) return text;
    if (!text.empty()) text += "\n";
    for (const std::string& line :
         std::vector<std::string>(absl::StrSplit(app->get_footer(), '\n'))) {
      const bool is_command = line.starts_with(' ') || line.empty();
      absl::StrAppend(&text, is_command ? line + "\n" : Wrapped(line, 0, columns_));
    }
    return text;
  }

 private:
  std::string Entry(const std::string& name, const std::string& description) const {
    return absl::StrCat(Wrapped(name, kIndent, columns_),
                        Wrapped(description, kDescriptionIndent, columns_));
  }

  const size_t columns_;
};

}  // namespace

void SetHelpFormat(CLI::App& app, size_t columns) {
  app.formatter(std::make_shared<HelpFormatter>(columns));
}

size_t TerminalColumns(int file) {
  winsize size = {};
  const bool known = isatty(file) == 1 && ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::string Wrapped(std::string_view text, size_t indent, size_t columns) {
  const std::string start(indent, ' ');
  std::string lines, line = start;
  for (const std::string& word :
       std::vector<std::string>(absl::StrSplit(std::string(text), ' ', absl::SkipEmpty()))) {
    const bool first = line.size() == indent;
    if (!first && line.size() + 1 + word.size() > columns) {
      absl::StrAppend(&lines, line, "\n");
      line = start + word;
    } else {
      absl::StrAppend(&line, first ? "" : " ", word);
    }
  }
  return line.size() == indent ? lines : absl::StrCat(lines, line, "\n");
}

}  // namespace thinwire
