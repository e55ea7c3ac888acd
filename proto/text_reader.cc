#include "proto/text_reader.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/did_you_mean.h"

namespace thinwire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

// A text with more mistakes than this is no configuration.
constexpr int kMostRounds = 100;

// Of the text, as bytes; npos is a place beyond it.
size_t OffsetOf(std::string_view text, int line, int column) {
  size_t at = 0;
  for (int i = 0; i < line; ++i) {
    at = text.find('\n', at);
    if (at == std::string_view::npos) return text.size();
    ++at;
  }
  // protobuf counts a tab as the way to the next multiple of eight.
  for (int seen = 0; seen < column && at < text.size() && text[at] != '\n'; ++at) {
    seen = text[at] == '\t' ? (seen / 8 + 1) * 8 : seen + 1;
  }
  return at;
}

std::string PlaceOf(std::string_view text, size_t offset, const std::string& file) {
  const std::string_view before = text.substr(0, offset);
  const size_t lines = std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n');
  const size_t column = start == std::string_view::npos ? offset : offset - start - 1;
  return absl::StrCat(file, ":", lines + 1, ":", column + 1);
}

bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '_'; }

size_t SkipSpaceBack(std::string_view text, size_t at) {
  while (at > 0 && absl::ascii_isspace(text[at - 1])) --at;
  return at;
}

struct Name {
  size_t offset;
  std::string text;
};

// The name of the field whose colon or value is at OFFSET.
std::optional<Name> FieldAt(std::string_view text, size_t offset) {
  size_t end = SkipSpaceBack(text, offset);
  if (end > 0 && (text[end - 1] == '[' || text[end - 1] == ',')) {
    const size_t colon = text.substr(0, end).rfind(':');
    if (colon != std::string_view::npos) end = colon + 1;
  }
  if (end > 0 && text[end - 1] == ':') end = SkipSpaceBack(text, end - 1);
  size_t start = end;
  while (start > 0 && IsNameCharacter(text[start - 1])) --start;
  if (start == end) return std::nullopt;
  return Name{start, std::string(text.substr(start, end - start))};
}

std::string ValueAt(std::string_view text, size_t offset) {
  std::string_view rest = text.substr(std::min(offset, text.size()));
  rest = rest.substr(0, rest.find('\n'));
  if (rest.starts_with('"')) return std::string(rest.substr(0, rest.find('"', 1) + 1));
  return std::string(rest.substr(0, rest.find_first_of(" \t\r,;]}#")));
}

const FieldDescriptor* Find(const std::vector<const FieldDescriptor*>& fields,
                            std::string_view name) {
  for (const FieldDescriptor* field : fields) {
    if (field->name() == name) return field;
  }
  return nullptr;
}

// Hears protobuf's parser.
class Complaints final : public google::protobuf::io::ErrorCollector {
 public:
  struct Complaint {
    int line;
    int column;
    std::string text;
  };

  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!error) error = {line, column, message};
  }
  void AddWarning(int line, google::protobuf::io::ColumnNumber column,
                  const std::string& message) override {
    unknown.push_back({line, column, message});
  }

  std::optional<Complaint> error;
  std::vector<Complaint> unknown;  // fields; the parser warns of nothing else
};

class Reader {
 public:
  Reader(std::string_view text, std::string_view file, const Descriptor& type)
      : original_(text), text_(text), file_(file), type_(type), fields_(AllFields(type)) {}

  TextReading Read(Message& message) {
    TextFormat::ParseInfoTree tree;
    for (int round = 0; round < kMostRounds; ++round) {
      Complaints complaints;
      TextFormat::ParseInfoTree round_tree;
      TextFormat::Parser parser;
      parser.RecordErrorsTo(&complaints);
      parser.AllowUnknownField(true);
      parser.WriteLocationsTo(&round_tree);
      message.Clear();
      const bool whole = parser.ParseFromString(text_, &message);
      for (const auto& complaint : complaints.unknown) NoteUnknown(complaint);
      if (complaints.error) NoteError(*complaints.error);
      if (whole) NotePlaces(message, round_tree);
      if (whole || !complaints.error || !Blank(*complaints.error)) break;
    }
    TextReading reading;
    reading.places = std::move(places_);
    for (const auto& [offset, text] : problems_) {
      reading.problems.push_back(absl::StrCat(PlaceOf(original_, offset, file_), ": ", text));
    }
    return reading;
  }

 private:
  size_t Offset(const Complaints::Complaint& complaint) const {
    return OffsetOf(text_, complaint.line, complaint.column);
  }

  void NoteUnknown(const Complaints::Complaint& complaint) {
    const auto name = FieldAt(text_, Offset(complaint));
    if (!name) {
      problems_.emplace(Offset(complaint), complaint.text);
      return;
    }
    std::vector<std::string_view> here;
    std::vector<std::string_view> anywhere;
    for (const FieldDescriptor* field : fields_) {
      anywhere.push_back(field->name());
      if (absl::StrContains(complaint.text,
                            absl::StrCat("\"", field->containing_type()->full_name(), "\""))) {
        here.push_back(field->name());
      }
    }
    problems_.emplace(name->offset, UnknownText(name->text, here, anywhere));
  }

  std::string UnknownText(const std::string& name, const std::vector<std::string_view>& here,
                          const std::vector<std::string_view>& anywhere) const {
    const std::string start = absl::StrCat("field \"", name, "\" is unknown");
    if (const FieldDescriptor* field = Find(fields_, name)) {
      if (field->containing_type() == &type_) return start + " here; it belongs outside all braces";
      return absl::StrCat(start, " here; it belongs in ", HolderOf(*field), " { }");
    }
    std::string nearest = DidYouMean(name, here);
    if (nearest.empty()) nearest = DidYouMean(name, anywhere);
    return nearest.empty() ? start : absl::StrCat(start, "; did you mean \"", nearest, "\"?");
  }

  // The name of the field whose message holds FIELD.
  std::string HolderOf(const FieldDescriptor& field) const {
    for (const FieldDescriptor* holder : fields_) {
      if (holder->message_type() == field.containing_type()) return holder->name();
    }
    return field.containing_type()->name();
  }

  void NoteError(const Complaints::Complaint& complaint) {
    const size_t offset = Offset(complaint);
    const auto name = FieldAt(text_, offset);
    const FieldDescriptor* field = name ? Find(fields_, name->text) : nullptr;
    if (absl::StrContains(complaint.text, "specified multiple times") && name) {
      problems_.emplace(name->offset, absl::StrCat("field \"", name->text, "\" is given twice"));
    } else if (field != nullptr) {
      const std::string got = ValueAt(text_, offset);
      problems_.emplace(offset,
                        absl::StrCat("field \"", field->name(), "\": want ", WantedValue(*field),
                                     ", got ", got.empty() ? "nothing" : got));
    } else {
      problems_.emplace(offset, complaint.text);
    }
  }

  // Overwrites the field that the mistake stands in, from its name to the closing brace or the
  // line's end, whichever comes first. False if there is no field, or if that would open a brace or
  // take a brace out of a quoted text.
  bool Blank(const Complaints::Complaint& complaint) {
    const auto name = FieldAt(text_, Offset(complaint));
    if (!name) return false;
    const size_t end = std::min(text_.find_first_of("\n{}<>", name->offset), text_.size());
    if (end < text_.size() && (text_[end] == '{' || text_[end] == '<')) return false;
    const auto first = text_.begin() + static_cast<ptrdiff_t>(name->offset);
    const auto last = text_.begin() + static_cast<ptrdiff_t>(end);
    if (end < text_.size() && text_[end] != '\n' && std::count(first, last, '"') % 2 != 0)
      return false;
    std::fill(first, last, ' ');
    return true;
  }

  void NotePlaces(const Message& message, const TextFormat::ParseInfoTree& tree) {
    std::vector<const FieldDescriptor*> set;
    message.GetReflection()->ListFields(message, &set);
    for (const FieldDescriptor* field : set) {
      if (field->message_type() != nullptr) {
        const TextFormat::ParseInfoTree* below = tree.GetTreeForNested(field, -1);
        if (below != nullptr)
          NotePlaces(message.GetReflection()->GetMessage(message, field), *below);
      } else if (field->is_repeated()) {
        const int count = message.GetReflection()->FieldSize(message, field);
        for (int i = 0; i < count; ++i)
          NotePlace(tree, *field, i, absl::StrCat(field->name(), "[", i, "]"));
      } else {
        NotePlace(tree, *field, -1, field->name());
      }
    }
  }

  void NotePlace(const TextFormat::ParseInfoTree& tree, const FieldDescriptor& field, int index,
                 const std::string& name) {
    const TextFormat::ParseLocation start = tree.GetLocation(&field, index);
    if (start.line < 0) return;
    const std::string place = PlaceOf(text_, OffsetOf(text_, start.line, start.column), file_);
    places_.emplace(name, place);
    places_.emplace(field.name(), place);  // of a repeated field: its first element
  }

  const std::string original_;
  std::string text_;
  const std::string file_;
  const Descriptor& type_;
  const std::vector<const FieldDescriptor*> fields_;
  std::set<std::pair<size_t, std::string>>
      problems_;  // each once, though every round meets it again
  std::map<std::string, std::string> places_;
};

void AddFields(const Descriptor& type, std::vector<const FieldDescriptor*>& to) {
  for (int i = 0; i < type.field_count(); ++i) {
    to.push_back(type.field(i));
    if (type.field(i)->message_type() != nullptr) AddFields(*type.field(i)->message_type(), to);
  }
}

}  // namespace

TextReading ReadText(std::string_view text, std::string_view file, Message& message) {
  return Reader(text, file, *message.GetDescriptor()).Read(message);
}

std::string WantedValue(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return "a whole number from 0 to 4294967295";
    case FieldDescriptor::CPPTYPE_UINT64:
      return "a whole number from 0 to 18446744073709551615";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_STRING:
      return "a text in quotes";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "fields in braces";
    default:
      return field.cpp_type_name();
  }
}

std::vector<const FieldDescriptor*> AllFields(const Descriptor& type) {
  std::vector<const FieldDescriptor*> fields;
  AddFields(type, fields);
  return fields;
}

}  // namespace thinwire
