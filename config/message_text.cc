#include "config/message_text.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/files/file_kind.h"
#include "common/text/did_you_mean.h"
#include "config/fields.h"

namespace thinwire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

// The size limit of a file. A job file usually has about one page of text.
constexpr size_t kMaxBytes = 1 << 20;

// Keeps the first error of protobuf's text parser. The line and the column of the error count from
// 0.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (error) return;
    error = Error{line, column, message};
  }

  struct Error {
    int line;
    int column;
    std::string text;
  };
  std::optional<Error> error;
};

// Returns the offset in TEXT of the character at LINE and COLUMN, both counted from 0. Returns the
// length of TEXT for a position after the end.
size_t OffsetOf(std::string_view text, int line, int column) {
  size_t at = 0;
  for (int i = 0; i < line; ++i) {
    at = text.find('\n', at);
    if (at == std::string_view::npos) return text.size();
    ++at;
  }
  // In the columns that protobuf counts, a tab advances to the next multiple of eight.
  for (int seen = 0; seen < column && at < text.size() && text[at] != '\n'; ++at) {
    seen = text[at] == '\t' ? (seen / 8 + 1) * 8 : seen + 1;
  }
  return at;
}

std::string PlaceOf(std::string_view text, size_t offset, std::string_view file) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n');
  const size_t column = start == std::string_view::npos ? offset : offset - start - 1;
  return absl::StrCat(std::string(file), ":", lines + 1, ":", column + 1);
}

bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '_'; }

size_t SkipSpaceBack(std::string_view text, size_t at) {
  while (at > 0 && absl::ascii_isspace(text[at - 1])) --at;
  return at;
}

// Returns the text between the quotes that follow START in MESSAGE.
std::optional<std::string> QuotedAfter(const std::string& message, const std::string& start) {
  const size_t at = message.find(start + "\"");
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + start.size() + 1;
  return message.substr(begin, message.find('"', begin) - begin);
}

// Finds the places of fields in a text. A place after the last one is found without a scan from the
// beginning, so the places of the elements of a list take linear time together.
class PlaceFinder {
 public:
  PlaceFinder(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  // Returns the place of the character at LINE and COLUMN as protobuf counts them.
  std::string PlaceOf(int line, int column) {
    if (line < line_ || (line == line_ && column < seen_)) *this = PlaceFinder(text_, file_);
    for (; line_ < line; ++line_, seen_ = 0) {
      const size_t end = text_.find('\n', at_);
      at_ = start_ = end == std::string_view::npos ? text_.size() : end + 1;
    }
    // In the columns that protobuf counts, a tab advances to the next multiple of eight.
    for (; seen_ < column && at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      seen_ = text_[at_] == '\t' ? (seen_ / 8 + 1) * 8 : seen_ + 1;
    }
    return absl::StrCat(std::string(file_), ":", line + 1, ":", at_ - start_ + 1);
  }

 private:
  std::string_view text_;
  std::string_view file_;
  int line_ = 0;
  int seen_ = 0;      // the column of `at_`
  size_t start_ = 0;  // of the line
  size_t at_ = 0;
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view file, const Descriptor& type)
      : text_(text), file_(file), leaves_(LeafFields(type)) {}

  absl::StatusOr<PathPlaces> Parse(const TextKind& kind, Message& message) {
    FirstError errors;
    TextFormat::ParseInfoTree tree;
    TextFormat::Parser parser;
    parser.RecordErrorsTo(&errors);
    parser.WriteLocationsTo(&tree);
    if (!parser.ParseFromString(std::string(text_), &message)) {
      return absl::InvalidArgumentError(
          errors.error ? Describe(*errors.error)
                       : absl::StrCat(std::string(file_), ": not ", std::string(kind.name)));
    }
    PathPlaces places;
    PlaceFinder finder(text_, file_);
    NotePlaces(message, tree, "", finder, places);
    const Problems wrong = WrongValues(message);
    if (wrong.empty()) return places;
    const Problem& first = wrong.list().front();
    return absl::InvalidArgumentError(LineOf(first, PlacesByName(places)));
  }

 private:
  // A field name that occurs in the job file's text, and its offset.
  struct Name {
    size_t offset;
    std::string text;
  };

  // Returns the name of the field whose colon, brace or value is at OFFSET in the text.
  std::optional<Name> FieldBefore(size_t offset) const {
    size_t end = SkipSpaceBack(text_, offset);
    if (end > 0 && (text_[end - 1] == '[' || text_[end - 1] == ',')) {
      const size_t colon = text_.substr(0, end).rfind(':');
      if (colon != std::string_view::npos) end = colon + 1;
    }
    if (end > 0 && text_[end - 1] == ':') end = SkipSpaceBack(text_, end - 1);
    size_t start = end;
    while (start > 0 && IsNameCharacter(text_[start - 1])) --start;
    if (start == end) return std::nullopt;
    return Name{start, std::string(text_.substr(start, end - start))};
  }

  // Returns the last occurrence of the field NAME that begins at or before OFFSET.
  std::optional<Name> LastField(const std::string& name, size_t offset) const {
    for (size_t at = text_.rfind(name, offset); at != std::string_view::npos;
         at = at == 0 ? std::string_view::npos : text_.rfind(name, at - 1)) {
      const bool begins = at == 0 || !IsNameCharacter(text_[at - 1]);
      const size_t end = at + name.size();
      if (begins && (end >= text_.size() || !IsNameCharacter(text_[end]))) return Name{at, name};
    }
    return std::nullopt;
  }

  // Returns the token of the text that begins at OFFSET.
  std::string TokenAt(size_t offset) const {
    std::string_view line = text_.substr(std::min(offset, text_.size()));
    line = line.substr(0, line.find('\n'));
    if (line.starts_with('"') || line.starts_with('\'')) {
      return std::string(line.substr(0, line.find(line.front(), 1) + 1));
    }
    return std::string(line.substr(0, line.find_first_of(" \t\r,;]}#")));
  }

  const FieldDescriptor* FindField(std::string_view name) const {
    for (const Field& leaf : leaves_) {
      for (const FieldDescriptor* field : leaf.path) {
        if (field->name() == name) return field;
      }
    }
    return nullptr;
  }

  std::string Line(size_t offset, const std::string& text) const {
    return absl::StrCat(PlaceOf(text_, offset, file_), ": ", text);
  }

  std::string Describe(const FirstError::Error& error) const {
    const size_t offset = OffsetOf(text_, error.line, error.column);
    if (const auto name = QuotedAfter(error.text, "has no field named ")) {
      const auto found = LastField(*name, offset);
      const auto holder = QuotedAfter(error.text, "Message type ");
      return Line(found ? found->offset : offset,
                  absl::StrCat(*name, ": ", UnknownFieldText(*name, holder.value_or(""))));
    }
    if (const auto name = QuotedAfter(error.text, "Non-repeated field ")) {
      const auto found = LastField(*name, offset);
      return Line(found ? found->offset : offset, *name + ": given twice");
    }
    // For a wrong value of an enum or a boolean, protobuf reports the position after the value.
    // Therefore the value is taken from protobuf's error message.
    std::optional<std::string> got = QuotedAfter(error.text, "Unknown enumeration value of ");
    if (!got) got = QuotedAfter(error.text, "Value: ");
    auto name = QuotedAfter(error.text, "field ");
    std::optional<Name> found = name ? LastField(*name, offset) : FieldBefore(offset);
    const FieldDescriptor* field = found ? FindField(found->text) : nullptr;
    if (field == nullptr) return Line(offset, error.text);
    return Line(found->offset, absl::StrCat(field->name(), ": ",
                                            WrongValueText(*field, got ? *got : TokenAt(offset))));
  }

  // Returns the error text for a field called NAME that does not exist in messages of the type
  // HOLDER.
  std::string UnknownFieldText(const std::string& name, const std::string& holder) const {
    std::vector<std::string_view> here, anywhere;
    for (const Field& leaf : leaves_) {
      for (const FieldDescriptor* field : leaf.path) {
        anywhere.push_back(field->name());
        if (field->containing_type()->full_name() == holder) here.push_back(field->name());
      }
    }
    if (const FieldDescriptor* field = FindField(name)) {
      return absl::StrCat("not a field here (it belongs ", SectionOf(*field), ")");
    }
    std::string nearest = DidYouMean(name, here);
    if (nearest.empty()) nearest = DidYouMean(name, anywhere);
    return nearest.empty() ? "unknown field"
                           : absl::StrCat("unknown field (did you mean ", nearest, "?)");
  }

  std::string SectionOf(const FieldDescriptor& field) const {
    for (const Field& leaf : leaves_) {
      if (leaf.path.size() > 1 && leaf.path.back()->containing_type() == field.containing_type()) {
        return absl::StrCat("in ", leaf.path[leaf.path.size() - 2]->name(), " { }");
      }
    }
    return "outside all braces";
  }

  // Notes the places of the fields of MESSAGE, whose path is PREFIX.
  void NotePlaces(const Message& message, const TextFormat::ParseInfoTree& tree,
                  const std::string& prefix, PlaceFinder& finder, PathPlaces& places) const {
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> given;
    reflection.ListFields(message, &given);
    for (const FieldDescriptor* field : given) {
      const std::string path = prefix + field->name();
      const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i) {
        const int index = field->is_repeated() ? i : -1;
        const std::string element = index < 0 ? path : absl::StrCat(path, "[", i, "]");
        if (field->message_type() == nullptr) {
          NotePlace(tree, *field, index, element, finder, places);
          if (i == 0) NotePlace(tree, *field, index, path, finder, places);
        } else if (const auto* nested = tree.GetTreeForNested(field, index)) {
          NotePlaces(index < 0 ? reflection.GetMessage(message, field)
                               : reflection.GetRepeatedMessage(message, field, i),
                     *nested, element + ".", finder, places);
        }
      }
    }
  }

  void NotePlace(const TextFormat::ParseInfoTree& tree, const FieldDescriptor& field, int index,
                 const std::string& path, PlaceFinder& finder, PathPlaces& places) const {
    const TextFormat::ParseLocation start = tree.GetLocation(&field, index);
    if (start.line >= 0) places.emplace(path, finder.PlaceOf(start.line, start.column));
  }

  const std::string_view text_;
  const std::string_view file_;
  const std::vector<Field> leaves_;
};

}  // namespace

absl::StatusOr<PathPlaces> ParseMessageText(std::string_view text, std::string_view file,
                                            const TextKind& kind, Message& message) {
  return Parser(text, file, *message.GetDescriptor()).Parse(kind, message);
}

absl::StatusOr<std::string> ReadMessageText(const std::string& path, const TextKind& kind) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text(kMaxBytes + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || !in.is_open() || (in.fail() && !in.eof())) {
    return absl::ErrnoToStatus(errno == 0 ? EIO : errno, absl::StrCat(path, ": cannot be read"));
  }
  text.resize(static_cast<size_t>(in.gcount()));
  if (const std::string_view found = FileKind(text); !found.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not ", std::string(kind.name), " (expected text as in ",
                     std::string(kind.folder), ", got ", std::string(found), ")"));
  }
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": too large for ", std::string(kind.name),
                                                   " (expected at most ", kMaxBytes, " bytes)"));
  }
  return text;
}

PathPlaces PlacesBelow(const PathPlaces& places, std::string_view path) {
  PathPlaces below;
  for (const auto& [field, place] : places) {
    if (field.starts_with(path)) below.emplace(field.substr(path.size()), place);
  }
  return below;
}

FieldPlaces PlacesByName(const PathPlaces& places) {
  FieldPlaces names;
  for (const auto& [path, place] : places) names.emplace(NameOfPath(path), place);
  return names;
}

}  // namespace thinwire
