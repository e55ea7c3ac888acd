#include "common/text/did_you_mean.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

constexpr size_t kLongest = 64;

std::string Lower(std::string_view text) {
  std::string lower(text);
  absl::AsciiStrToLower(&lower);
  return lower;
}

// Returns the edit distance of A and B (Damerau-Levenshtein, with three rows of the table).
size_t EditCount(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string DidYouMean(std::string_view got, std::span<const std::string_view> known) {
  if (got.empty() || got.size() > kLongest) return "";
  const std::string lower_got = Lower(got);
  const size_t near_enough = std::max<size_t>(1, got.size() / 3);
  size_t fewest = near_enough + 1;
  std::string_view nearest;
  for (std::string_view word : known) {
    if (word.size() > kLongest + near_enough) continue;
    const size_t edits = EditCount(lower_got, Lower(word));
    if (edits < fewest && edits < word.size()) {
      fewest = edits;
      nearest = word;
    }
  }
  return std::string(nearest);
}

absl::Status UnknownWord(std::string_view field, std::string_view got,
                         std::span<const std::string_view> known) {
  std::string list;
  for (size_t i = 0; i < known.size(); ++i) {
    if (i > 0) list += i + 1 == known.size() ? " or " : ", ";
    list += known[i];
  }
  const std::string shown = absl::CHexEscape(std::string(got.substr(0, kLongest)));
  const std::string meant = DidYouMean(got, known);
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(field), ": unknown (expected ", list, ", got \"", shown, "\"",
                   meant.empty() ? "" : "; did you mean " + meant + "?", ")"));
}

}  // namespace thinwire
