#include "config/man_page.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

namespace thinwire {
namespace {

// Returns TEXT as it must be written in a page.
std::string Escaped(const std::string& text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  if (escaped.starts_with('.') || escaped.starts_with('\'')) escaped.insert(0, "\\&");
  return escaped;
}

std::string Bold(const std::string& text) { return absl::StrCat("\\fB", Escaped(text), "\\fR"); }
std::string Italic(const std::string& text) { return absl::StrCat("\\fI", Escaped(text), "\\fR"); }

// Returns the type of a value without the checks that CLI11 appends to it.
std::string TypeOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::string Entry(const std::string& tag, const std::string& description) {
  return absl::StrCat(".TP\n", tag, "\n", Escaped(description), "\n");
}

// Returns entries for the options of APP: those of each group below its name.
std::string Options(const CLI::App& app) {
  std::string text;
  for (const std::string& group : app.get_groups()) {
    std::string entries;
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() != group) continue;
      std::string tag;
      if (option->get_positional()) {
        tag = Italic(option->get_name(/*positional=*/true));
      } else {
        const std::vector<std::string> names =
            absl::StrSplit(option->get_name(/*positional=*/false, /*all_options=*/true), ',');
        tag = absl::StrJoin(names, ", ", [](std::string* out, const std::string& name) {
          out->append(Bold(name));
        });
        if (option->get_type_size() != 0) absl::StrAppend(&tag, " ", Italic(TypeOf(*option)));
      }
      absl::StrAppend(&entries, Entry(tag, option->get_description()));
    }
    if (!group.empty() && !entries.empty()) {
      absl::StrAppend(&text, ".SS ", Escaped(group), "\n", entries);
    }
  }
  return text;
}

std::string Synopsis(const CLI::App& app, const std::string& command) {
  std::string text = absl::StrCat(".B ", Escaped(command), "\n");
  const std::vector<const CLI::App*> subcommands = app.get_subcommands(nullptr);
  if (!subcommands.empty()) absl::StrAppend(&text, Italic("COMMAND"), "\n");
  absl::StrAppend(&text, "[", Italic("flags"), "]\n");
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const bool many = option->get_items_expected_max() > 1;
    const std::string name = Italic(option->get_name(true)) + (many ? " ..." : "");
    absl::StrAppend(&text, option->get_required() ? name : absl::StrCat("[", name, "]"), "\n");
  }
  return text;
}

// The parts of a footer.
struct Footer {
  std::string examples;
  std::string exit_codes;
  std::string environment;
};

Footer ParseFooter(const std::string& footer) {
  Footer parts;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(footer, '\n'))) {
    absl::string_view text = line;
    if (absl::ConsumePrefix(&text, "Exit codes: ")) {
      parts.exit_codes = std::string(text);
    } else if (absl::ConsumePrefix(&text, "Environment: ")) {
      parts.environment = std::string(text);
    } else if (line.starts_with(' ')) {
      absl::StrAppend(&parts.examples, ".nf\n",
                      Escaped(std::string(absl::StripAsciiWhitespace(line))), "\n.fi\n");
    } else if (!line.empty() && !line.starts_with("Example")) {
      absl::StrAppend(&parts.examples, ".PP\n", Escaped(line), "\n");
    }
  }
  // Adjacent commands are one block.
  parts.examples = absl::StrReplaceAll(parts.examples, {{"\n.fi\n.nf\n", "\n"}});
  return parts;
}

std::string Section(const std::string& title, const std::string& text) {
  return text.empty() ? "" : absl::StrCat(".SH ", title, "\n", text);
}

std::string Environment(const CLI::App& app, const std::string& other) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_envname().empty()) continue;
    text = Escaped(absl::StrCat("Each flag of a setting is also an environment variable, such as ",
                                option->get_envname(), " for ", option->get_name(),
                                ". A flag overrides its variable.")) +
           "\n";
    break;
  }
  if (other.empty()) return text;
  return absl::StrCat(text, text.empty() ? "" : ".PP\n", Escaped(other), "\n");
}

}  // namespace

std::string ManPage(const CLI::App& app, const std::string& name, absl::Time date) {
  std::string page_name = name, command = name;
  const CLI::App* root = &app;
  std::vector<std::string> words;
  for (; root->get_parent() != nullptr; root = root->get_parent()) {
    words.insert(words.begin(), root->get_name());
  }
  for (const std::string& word : words) {
    absl::StrAppend(&page_name, "-", word);
    absl::StrAppend(&command, " ", word);
  }
  // A description such as "thinwire server: holds the parameters." becomes "holds the parameters".
  std::string description = app.get_description();
  description = description.substr(
      description.find(": ") == std::string::npos ? 0 : description.find(": ") + 2);
  if (description.ends_with('.')) description.pop_back();

  std::string text = absl::StrCat(
      ".TH ", Escaped(absl::AsciiStrToUpper(page_name)), " 1 ",
      absl::FormatTime("%Y-%m-%d", date, absl::UTCTimeZone()), " thinwire \"User Commands\"\n",
      ".SH NAME\n", Escaped(page_name), " \\- ", Escaped(description), "\n",
      Section("SYNOPSIS", Synopsis(app, command)), Section("OPTIONS", Options(app)));
  std::string commands;
  std::vector<std::string> see_also;
  for (const CLI::App* subcommand : app.get_subcommands(nullptr)) {
    if (&app == root) {
      absl::StrAppend(&commands,
                      Entry(Bold(subcommand->get_name()), subcommand->get_description()));
      see_also.push_back(absl::StrCat(page_name, "-", subcommand->get_name()));
    } else {
      absl::StrAppend(&commands, ".SS ", Escaped(subcommand->get_name()), "\n",
                      Escaped(subcommand->get_description()), "\n.PP\n",
                      Synopsis(*subcommand, absl::StrCat(command, " ", subcommand->get_name())),
                      absl::StrReplaceAll(Options(*subcommand), {{".SS ", ".PP\n"}}));
    }
  }
  absl::StrAppend(&text, Section("COMMANDS", commands));
  const Footer footer = ParseFooter(app.get_footer());
  const std::string exit_codes =
      footer.exit_codes.empty() ? ParseFooter(root->get_footer()).exit_codes : footer.exit_codes;
  absl::StrAppend(&text, Section("ENVIRONMENT", Environment(app, footer.environment)),
                  Section("EXIT STATUS", exit_codes.empty() ? "" : Escaped(exit_codes) + "\n"),
                  Section("EXAMPLES", footer.examples));
  if (page_name != "thinwire") see_also.push_back("thinwire");
  std::string references;
  for (size_t i = 0; i < see_also.size(); ++i) {
    absl::StrAppend(&references, ".BR ", Escaped(see_also[i]), " (1)",
                    i + 1 < see_also.size() ? "," : "", "\n");
  }
  return absl::StrCat(text, Section("SEE ALSO", references));
}

void AddManFlag(CLI::App& app, const std::string& name) {
  app.add_flag_callback(
      "--man",
      [&app, name] {
        // CallForVersion makes CLI::App::exit() print a text and return 0.
        throw CLI::CallForVersion(ManPage(app, name, absl::Now()), 0);
      },
      "Prints the manual page");
}

}  // namespace thinwire
