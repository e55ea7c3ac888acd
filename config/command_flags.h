// CommandFlags declares the flags, arguments and subcommands of a command. Program is the command
// line of a program. Their users need not include CLI11, whose header takes 8 s to compile.
//
//   CommandFlags flags(app);
//   flags.Add("--worker", worker, "The number of the worker").Type("NUMBER").Required();
//   flags.Add("FILE", files, "Job files");
//   flags.AddSwitch("--force", force, "Replaces existing files");
#ifndef THINWIRE_CONFIG_COMMAND_FLAGS_H_
#define THINWIRE_CONFIG_COMMAND_FLAGS_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace thinwire {

// Refers to a flag or an argument of a command. Every function returns this object.
class Flag {
 public:
  explicit Flag(CLI::Option& option) : option_(&option) {}

  Flag& Type(const std::string& name);             // the word for the value in the help
  Flag& Environment(const std::string& variable);  // the environment variable with the same value
  Flag& Group(const std::string& name);            // the heading in the help
  Flag& Description(const std::string& text);
  Flag& Required();
  Flag& OneOf(std::initializer_list<std::string> values);
  Flag& Between(int least, int most);
  Flag& Between(uint32_t least, uint32_t most);
  Flag& Between(double least, double most);
  Flag& Bytes();  // accepts units, as in 8GB, which are powers of 1024
  Flag& Needs(const Flag& other);
  Flag& Excludes(const Flag& other);

 private:
  CLI::Option* option_;
};

// Refers to a command. Not thread-safe.
class CommandFlags {
 public:
  explicit CommandFlags(CLI::App& app) : app_(app) {}

  // Adds a flag if NAME begins with "--", otherwise an argument. VALUE must outlive the command. T:
  // std::string, int, uint32_t, uint64_t, double, std::optional<uint32_t>, std::optional<uint64_t>
  // or std::vector<std::string>.
  template <typename T>
  Flag Add(const std::string& name, T& value, const std::string& help);

  // Adds a flag without a value. VALUE must outlive the command.
  Flag AddSwitch(const std::string& name, bool& value, const std::string& help);

  // Returns the flag NAME. REQUIRES: it was added.
  Flag Get(const std::string& name);

  // Adds a subcommand. The command owns it.
  CLI::App* AddSubcommand(const std::string& name, const std::string& help);

  void RequireSubcommand();
  void AllowExtras();  // the caller calls CheckNoExtras()
  void Footer(const std::string& text);
  void AddVersion(const std::string& text);  // the flag --version, which prints TEXT

 private:
  CLI::App& app_;
};

// Returns true if the command line contained the command APP.
bool IsParsed(const CLI::App& app);

// Returns true if the command line contained the flag NAME of APP. Its value may also come from the
// environment. REQUIRES: the flag was added.
bool IsOnCommandLine(const CLI::App& app, const std::string& name);

// Checks that APP recognized the whole command line. Errors: InvalidArgument
// "--learning_rat: unknown flag (did you mean --learning_rate?)".
absl::Status CheckNoExtras(const CLI::App& app);

// Not thread-safe.
class Program {
 public:
  explicit Program(const std::string& description);
  ~Program();

  CLI::App& app() { return *app_; }

  // Parses the command line. Returns an exit code if the program ends here: 0 after it printed the
  // help or the version, ExitCode::kUsage after it printed an error. MISSING returns the name of a
  // flag that is required beside the parsed ones, or "".
  std::optional<int> Parse(int argc, char** argv,
                           const std::function<std::string()>& missing = nullptr);

 private:
  const std::unique_ptr<CLI::App> app_;
};

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_COMMAND_FLAGS_H_
