// Building blocks of the status pages. Every function escapes its texts and returns HTML.
#ifndef THINWIRE_ADMIN_HTML_H_
#define THINWIRE_ADMIN_HTML_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "admin/curve.h"

namespace thinwire::html {

std::string Escape(const std::string& text);

// Returns a heading.
std::string Heading(const std::string& text);
// Returns a paragraph. NOTABLE highlights it.
std::string Paragraph(const std::string& text, bool notable = false);

// Returns the state of a job as the first line of a page; ALARM: it is not a healthy state.
std::string State(const std::string& text, bool alarm);
// Returns a paragraph about a thing that is wrong.
std::string Problem(const std::string& text);

// Returns links to the status pages at the addresses (host:port), such as {"worker 1", "b:9100"}.
std::string Links(const std::string& name,
                  std::span<const std::pair<std::string, std::string>> pages);

// Returns BODY, which is HTML, behind its SUMMARY until a reader opens it.
std::string Fold(const std::string& summary, const std::string& body);

// Returns figures with their names, such as {"step", "412"}, side by side.
std::string Facts(std::span<const std::pair<std::string, std::string>> facts);

// Returns a table. The first column of a row is its name; the other columns are aligned at the
// right.
std::string Table(std::span<const std::string> columns,
                  std::span<const std::vector<std::string>> rows);

// Returns one horizontal bar per entry of COUNTS, with the value, the number and the share of all.
// At most kMaxBarCount bars: the largest values share the last one.
inline constexpr size_t kMaxBarCount = 16;
std::string Bars(const std::map<uint64_t, uint64_t>& counts);

// Returns a line chart. Its axes have the first and last x, and the smallest and largest y. NAME is
// the name of y, X_NAME that of x.
std::string Chart(const std::string& name, const std::string& x_name,
                  std::span<const Curve::Point> points);

// Returns the whole page, which refreshes BODY once a second if the browser runs scripts.
std::string Page(const std::string& title, const std::string& body);

// Return figures as text for people: "1,234,567", "0.5135" (four digits), "81.2 MB" (1 MB is 10^6
// bytes), "4.1 s", "4.0x".
std::string CountText(uint64_t count);
std::string NumberText(double number);
std::string BytesText(uint64_t bytes);
std::string DurationText(absl::Duration duration);
std::string TimeLeftText(absl::Duration left);  // rounded up: "3m16s", "2h5m"
std::string RatioText(uint64_t raw_bytes, uint64_t encoded_bytes);

}  // namespace thinwire::html

#endif  // THINWIRE_ADMIN_HTML_H_
