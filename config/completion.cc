#include "config/completion.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "config/fields.h"
#include "proto/job.pb.h"

namespace thinwire {
namespace {

// The words that can follow a flag or take the place of a positional argument.
struct Values {
  enum class Kind { kNone, kFlag, kWords, kFiles, kFolders };

  Kind kind = Kind::kNone;  // kFlag: a flag without a value
  std::vector<std::string> words;
  bool optional = false;
};

// Returns the names of the enum field that the flag --NAME sets; empty if there is none.
std::vector<std::string> EnumWords(const std::string& name) {
  for (const Field& field : Settings(*JobConfig::descriptor())) {
    if (field.name() != name || field.descriptor().enum_type() == nullptr) continue;
    const std::vector<std::string_view> names = EnumNames(field.descriptor());
    return {names.begin(), names.end()};
  }
  return {};
}

Values ValuesOf(const CLI::Option& option) {
  using Kind = Values::Kind;
  if (option.get_expected_max() == 0) return {.kind = Kind::kFlag, .words = {}};
  // CLI11 appends the checks of the value to the type.
  std::string type = option.get_type_name();
  type = type.substr(0, type.find(':'));
  const bool optional = option.get_items_expected_min() == 0;
  if (optional) type = absl::StrReplaceAll(type, {{"[", ""}, {"]", ""}});
  if (type.find('|') != std::string::npos) {
    return {.kind = Kind::kWords, .words = absl::StrSplit(type, '|'), .optional = optional};
  }
  if (type == "NAME" && !option.get_lnames().empty()) {
    std::vector<std::string> words = EnumWords(option.get_lnames().front());
    return {.kind = words.empty() ? Kind::kNone : Kind::kWords, .words = std::move(words)};
  }
  if (option.get_positional()) type = option.get_name(/*positional=*/true);
  if (type == "DIR") return {.kind = Kind::kFolders, .words = {}};
  for (const char* of_files : {"FILE", "PATH", "SOURCE", "TEXT"}) {
    if (type == of_files) return {.kind = Kind::kFiles, .words = {}};
  }
  return {.kind = Kind::kNone, .words = {}};
}

std::string FirstSentence(const std::string& text) { return text.substr(0, text.find(". ")); }

// One command with its path, such as "/config/check"; "" is the program itself.
struct Command {
  std::string path;
  const CLI::App* app;
  bool of_help = false;  // an argument of `thinwire help`, which takes no flags
};

void AddCommands(const CLI::App& app, const std::string& path, bool of_help,
                 std::vector<Command>& commands) {
  commands.push_back({path, &app, of_help});
  for (const CLI::App* subcommand : app.get_subcommands(nullptr)) {
    AddCommands(*subcommand, absl::StrCat(path, "/", subcommand->get_name()), of_help, commands);
  }
}

// Returns all commands of APP. The commands are also arguments of `thinwire help`.
std::vector<Command> CommandsOf(const CLI::App& app) {
  std::vector<Command> commands;
  AddCommands(app, "", /*of_help=*/false, commands);
  const size_t has_help =
      std::erase_if(commands, [](const Command& command) { return command.path == "/help"; });
  if (has_help > 0) AddCommands(app, "/help", /*of_help=*/true, commands);
  return commands;
}

std::vector<std::string> FlagsOf(const Command& command) {
  std::vector<std::string> flags;
  if (command.of_help) return flags;
  for (const CLI::Option* option : command.app->get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

std::vector<std::string> SubcommandsOf(const Command& command) {
  std::vector<std::string> names;
  for (const CLI::App* subcommand : command.app->get_subcommands(nullptr)) {
    names.push_back(subcommand->get_name());
  }
  return names;
}

// Returns the values of the positional argument of COMMAND; kNone if it has none.
Values PositionalOf(const Command& command) {
  if (command.of_help) return {};
  for (const CLI::Option* option : command.app->get_options()) {
    if (option->get_positional()) return ValuesOf(*option);
  }
  return {};
}

// Returns WORD for a shell script, in single quotes.
std::string Quoted(const std::string& word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

// Returns the paths of COMMANDS below the program, with SEPARATOR between them. If there are none, a
// word that is no path, because the scripts need one.
std::string Paths(const std::vector<Command>& commands, absl::string_view separator) {
  std::vector<std::string> paths;
  for (const Command& command : commands) {
    if (!command.path.empty()) paths.push_back(command.path);
  }
  return paths.empty() ? "none" : absl::StrJoin(paths, separator);
}

// In the scripts below, @PROGRAM@ is the name of the program, and @FUNCTION@ a name for functions.

// Returns the command of bash that offers VALUES.
std::string BashOffer(const Values& values) {
  switch (values.kind) {
    case Values::Kind::kWords:
      return absl::StrCat("@FUNCTION@_offer -W ", Quoted(absl::StrJoin(values.words, " ")));
    case Values::Kind::kFiles:
      return "@FUNCTION@_offer -f";
    case Values::Kind::kFolders:
      return "@FUNCTION@_offer -d";
    case Values::Kind::kFlag:
    case Values::Kind::kNone:
      return ":";
  }
  return ":";
}

// Returns what zsh's _arguments does to complete VALUES.
std::string ZshAction(const Values& values) {
  switch (values.kind) {
    case Values::Kind::kWords:
      return absl::StrCat("(", absl::StrJoin(values.words, " "), ")");
    case Values::Kind::kFiles:
      return "_files";
    case Values::Kind::kFolders:
      return "_files -/";
    case Values::Kind::kFlag:
    case Values::Kind::kNone:
      return " ";
  }
  return " ";
}

// Returns the argument of _arguments for a flag.
std::string ZshFlag(const CLI::Option& option, const std::string& name) {
  const Values values = ValuesOf(option);
  const std::string description = absl::StrReplaceAll(FirstSentence(option.get_description()),
                                                      {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}});
  if (values.kind == Values::Kind::kFlag) {
    return Quoted(absl::StrCat("*--", name, "[", description, "]"));
  }
  return Quoted(absl::StrCat("*--", name, "=[", description, "]", values.optional ? "::" : ":",
                             "value:", ZshAction(values)));
}

// Returns TEXT with a backslash before each character that zsh could treat specially.
std::string ZshEscaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) escaped.push_back('\\');
    escaped.push_back(c);
  }
  return escaped;
}

// Returns the arguments of _arguments for COMMAND.
std::vector<std::string> ZshArguments(const Command& command) {
  std::vector<std::string> arguments;
  if (!command.of_help) {
    for (const CLI::Option* option : command.app->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        arguments.push_back(ZshFlag(*option, name));
      }
    }
  }
  std::vector<std::string> subcommands;
  for (const CLI::App* subcommand : command.app->get_subcommands(nullptr)) {
    subcommands.push_back(absl::StrCat(
        subcommand->get_name(), "\\:", ZshEscaped(FirstSentence(subcommand->get_description()))));
  }
  const Values values = PositionalOf(command);
  if (!subcommands.empty()) {
    arguments.push_back(
        Quoted(absl::StrCat("1:command:((", absl::StrJoin(subcommands, " "), "))")));
  } else if (values.kind != Values::Kind::kNone) {
    arguments.push_back(Quoted(absl::StrCat("*:value:", ZshAction(values))));
  }
  return arguments;
}

// Returns WORD for fish, in single quotes.
std::string FishQuoted(const std::string& word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

// Returns the options of fish's `complete` that offer VALUES as arguments.
std::string FishOffer(const Values& values) {
  switch (values.kind) {
    case Values::Kind::kWords:
      return absl::StrCat(" -a ", FishQuoted(absl::StrJoin(values.words, " ")));
    case Values::Kind::kFiles:
      return " -F";
    case Values::Kind::kFolders:
      return " -a '(__fish_complete_directories)'";
    case Values::Kind::kFlag:
    case Values::Kind::kNone:
      return "";
  }
  return "";
}

// Returns the calls of fish's `complete` for COMMAND.
std::string FishLines(const Command& command) {
  const std::string line =
      absl::StrCat("complete -c @PROGRAM@ -n \"_@FUNCTION@_at '", command.path, "'\"");
  std::string text;
  for (const CLI::App* subcommand : command.app->get_subcommands(nullptr)) {
    absl::StrAppend(&text, line, " -a ", subcommand->get_name(), " -d ",
                    FishQuoted(FirstSentence(subcommand->get_description())), "\n");
  }
  if (command.of_help) return text;
  const Values positional = PositionalOf(command);
  if (positional.kind != Values::Kind::kNone) {
    absl::StrAppend(&text, line, FishOffer(positional), "\n");
  }
  for (const CLI::Option* option : command.app->get_options()) {
    const Values values = ValuesOf(*option);
    // Both require a value; with -x, fish offers no file for it.
    const char* requires_value = values.kind == Values::Kind::kFiles ? " -r" : " -x";
    if (values.kind == Values::Kind::kFlag || values.optional) requires_value = "";
    for (const std::string& name : option->get_lnames()) {
      absl::StrAppend(&text, line, " -l ", name, requires_value, FishOffer(values), " -d ",
                      FishQuoted(FirstSentence(option->get_description())), "\n");
    }
  }
  return text;
}

std::string BashCompletion(const CLI::App& app) {
  const std::vector<Command> commands = CommandsOf(app);
  // Flags that take the same values are one case.
  std::map<std::string, std::vector<std::string>> flags_by_offer;
  std::string words;
  for (const Command& command : commands) {
    const std::vector<std::string> subcommands = SubcommandsOf(command), flags = FlagsOf(command);
    if (!command.of_help) {
      for (const CLI::Option* option : command.app->get_options()) {
        const Values values = ValuesOf(*option);
        if (values.kind == Values::Kind::kFlag) continue;
        for (const std::string& name : option->get_lnames()) {
          flags_by_offer[BashOffer(values)].push_back(
              Quoted(absl::StrCat(command.path, " --", name)));
        }
      }
    }
    absl::StrAppend(&words, "    ", Quoted(command.path),
                    ")\n      flags=", Quoted(absl::StrJoin(flags, " ")), "\n");
    if (!subcommands.empty()) {
      absl::StrAppend(&words, "      arguments=(-W ", Quoted(absl::StrJoin(subcommands, " ")),
                      ")\n");
    } else if (const Values values = PositionalOf(command); values.kind == Values::Kind::kFiles) {
      absl::StrAppend(&words, "      arguments=(-f)\n");
    } else if (values.kind == Values::Kind::kFolders) {
      absl::StrAppend(&words, "      arguments=(-d)\n");
    } else if (values.kind == Values::Kind::kWords) {
      absl::StrAppend(&words, "      arguments=(-W ", Quoted(absl::StrJoin(values.words, " ")),
                      ")\n");
    }
    absl::StrAppend(&words, "      ;;\n");
  }
  std::string values;
  for (const auto& [offer, flags] : flags_by_offer) {
    absl::StrAppend(&values, "    ", absl::StrJoin(flags, " | "), ")\n      ", offer,
                    "\n      return\n      ;;\n");
  }
  return absl::StrCat(
      R"(# Completion of @PROGRAM@ for bash.
@FUNCTION@_offer() {
  [[ $1 == -W ]] || compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$@" -- "$word")
}

@FUNCTION@() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command= flags= arguments=() i
  COMPREPLY=()
  # Bash makes three words of --flag=value.
  if [[ $word == = ]]; then
    word=
  elif [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case $command/${COMP_WORDS[i]} in
      )",
      Paths(commands, " | "), R"()
        command+=/${COMP_WORDS[i]}
        ;;
    esac
  done
  if [[ $word != -* ]]; then
    case "$command $previous" in
)",
      absl::StrReplaceAll(values, {{"\n    ", "\n      "}}), R"(    esac
  fi
  case $command in
)",
      words, R"(  esac
  if [[ $word == -* || ${#arguments[@]} -eq 0 ]]; then
    arguments=(-W "$flags")
  fi
  @FUNCTION@_offer "${arguments[@]}"
}

complete -F @FUNCTION@ @PROGRAM@
)");
}

std::string ZshCompletion(const CLI::App& app) {
  const std::vector<Command> commands = CommandsOf(app);
  std::string cases;
  for (const Command& command : commands) {
    absl::StrAppend(&cases, "    ", Quoted(command.path), ")\n      arguments=(\n        ",
                    absl::StrJoin(ZshArguments(command), "\n        "), "\n      )\n      ;;\n");
  }
  return absl::StrCat(R"(#compdef @PROGRAM@
# Completion of @PROGRAM@ for zsh.
_@PROGRAM@() {
  local command=
  local -a arguments
  integer i depth=0
  for ((i = 2; i < CURRENT; i++)); do
    case $command/${words[i]} in
      )",
                      Paths(commands, " | "), R"()
        command+=/${words[i]}
        ((depth++))
        ;;
    esac
  done
  case $command in
)",
                      cases, R"(  esac
  # The arguments of a command follow its name.
  shift $depth words
  ((CURRENT -= depth))
  _arguments -S $arguments
}

if [[ ${funcstack[1]} == _@PROGRAM@ ]]; then
  _@PROGRAM@ "$@"
else
  compdef _@PROGRAM@ @PROGRAM@
fi
)");
}

std::string FishCompletion(const CLI::App& app) {
  const std::vector<Command> commands = CommandsOf(app);
  std::string lines;
  for (const Command& command : commands) absl::StrAppend(&lines, FishLines(command));
  return absl::StrCat(
      R"(# Completion of @PROGRAM@ for fish.
# Returns whether the words before the cursor name the command with this path, such as /config/check.
function _@FUNCTION@_at
  set -l command ''
  for word in (commandline -opc)[2..]
    if contains -- $command/$word )",
      Paths(commands, " "), R"(
      set command $command/$word
    end
  end
  test "$command" = "$argv[1]"
end

complete -c @PROGRAM@ -f
)",
      lines);
}

}  // namespace

std::string CompletionScript(const CLI::App& app, const std::string& name,
                             const std::string& shell) {
  const auto script = shell == "bash"  ? BashCompletion
                      : shell == "zsh" ? ZshCompletion
                                       : FishCompletion;
  const std::string function = absl::StrCat("_", absl::StrReplaceAll(name, {{"-", "_"}}));
  return absl::StrReplaceAll(script(app), {{"@PROGRAM@", name}, {"@FUNCTION@", function}});
}

void AddCompletionFlag(CLI::App& app, const std::string& name) {
  app.add_option_function<std::string>(
         "--completion",
         [&app, name](const std::string& shell) {
           // CallForVersion makes CLI::App::exit() print a text and return 0.
           throw CLI::CallForVersion(CompletionScript(app, name, shell), 0);
         },
         "Prints a completion script for a shell")
      ->type_name("bash|zsh|fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
}

}  // namespace thinwire
