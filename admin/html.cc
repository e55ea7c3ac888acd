#include "admin/html.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "admin/page_html.h"

namespace thinwire::html {
namespace {

constexpr double kChartWidth = 600;
constexpr double kChartHeight = 160;

}  // namespace

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string Heading(const std::string& text) {
  return absl::StrCat("<h2>", Escape(text), "</h2>\n");
}

std::string Paragraph(const std::string& text, bool notable) {
  return absl::StrCat(notable ? "<p class=\"notable\">" : "<p>", Escape(text), "</p>\n");
}

std::string State(const std::string& text, bool alarm) {
  return absl::StrCat("<p class=\"state", alarm ? " alarm" : "", "\">", Escape(text), "</p>\n");
}

std::string Problem(const std::string& text) {
  return absl::StrCat("<p class=\"problem\">", Escape(text), "</p>\n");
}

std::string Links(const std::string& name,
                  std::span<const std::pair<std::string, std::string>> pages) {
  std::string text = absl::StrCat("<p>", Escape(name));
  for (const auto& [process, address] : pages) {
    absl::StrAppend(&text, " <a href=\"http://", Escape(address), "/\">", Escape(process), "</a>");
  }
  return absl::StrCat(text, "</p>\n");
}

std::string Fold(const std::string& summary, const std::string& body) {
  return absl::StrCat("<details><summary>", Escape(summary), "</summary>\n", body, "</details>\n");
}

std::string Facts(std::span<const std::pair<std::string, std::string>> facts) {
  std::string html = "<dl>";
  for (const auto& [name, value] : facts) {
    absl::StrAppend(&html, "<div><dt>", Escape(name), "</dt><dd>", Escape(value), "</dd></div>");
  }
  return absl::StrCat(html, "</dl>\n");
}

std::string Table(std::span<const std::string> columns,
                  std::span<const std::vector<std::string>> rows) {
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>";
  for (const std::string& column : columns) {
    absl::StrAppend(&html, "<th scope=\"col\">", Escape(column), "</th>");
  }
  absl::StrAppend(&html, "</tr></thead><tbody>\n");
  for (const std::vector<std::string>& row : rows) {
    absl::StrAppend(&html, "<tr>");
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&html, i == 0 ? "<th scope=\"row\">" : "<td>", Escape(row[i]),
                      i == 0 ? "</th>" : "</td>");
    }
    absl::StrAppend(&html, "</tr>\n");
  }
  return absl::StrCat(html, "</tbody></table></div>\n");
}

std::string Bars(const std::map<uint64_t, uint64_t>& counts) {
  std::vector<std::pair<std::string, uint64_t>> bars;
  uint64_t total = 0;
  uint64_t largest = 0;
  for (const auto& [value, count] : counts) {
    if (bars.size() < kMaxBarCount) {
      bars.emplace_back(absl::StrCat(value), count);
    } else {
      bars.back().second += count;
      if (bars.back().first.back() != '+') bars.back().first += '+';
    }
    total += count;
    largest = std::max(largest, bars.back().second);
  }
  std::string html = "<div class=\"bars\">";
  for (const auto& [label, count] : bars) {
    absl::StrAppendFormat(
        &html,
        "<span>%s</span><span class=\"bar\"><i style=\"width:%.1f%%\"></i></span>"
        "<span>%s (%.1f %%)</span>\n",
        label,
        100.0 * static_cast<double>(count) / static_cast<double>(std::max<uint64_t>(1, largest)),
        CountText(count),
        100.0 * static_cast<double>(count) / static_cast<double>(std::max<uint64_t>(1, total)));
  }
  return absl::StrCat(html, "</div>\n");
}

std::string Chart(const std::string& name, const std::string& x_name,
                  std::span<const Curve::Point> points) {
  if (points.size() < 2) return Paragraph(absl::StrCat(name, ": fewer than two values yet"));
  const auto [low, high] = std::ranges::minmax(points, {}, &Curve::Point::y);
  const double x_span = std::max(points.back().x - points.front().x, 1e-9);
  const double y_span = std::max(high.y - low.y, 1e-9);
  std::string line;
  for (const Curve::Point& point : points) {
    absl::StrAppendFormat(&line, "%.1f,%.1f ", (point.x - points.front().x) / x_span * kChartWidth,
                          (high.y - point.y) / y_span * kChartHeight);
  }
  return absl::StrFormat(
      "<figure><figcaption>%s: %s now, lowest %s, highest %s; %s %.0f to %.0f</figcaption>"
      "<div class=\"chart\"><span class=\"y\"><span>%s</span><span>%s</span></span>"
      "<svg viewBox=\"0 -4 %.0f %.0f\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s\">"
      "<polyline points=\"%s\"/></svg>"
      "<span class=\"x\"><span>%.0f</span><span>%s</span><span>%.0f</span></span></div></figure>\n",
      Escape(name), NumberText(points.back().y), NumberText(low.y), NumberText(high.y),
      Escape(x_name), points.front().x, points.back().x, NumberText(high.y), NumberText(low.y),
      kChartWidth, kChartHeight + 8, Escape(name), line, points.front().x, Escape(x_name),
      points.back().x);
}

std::string Page(const std::string& title, const std::string& body) {
  return absl::StrReplaceAll(kPageHtml, {{"{{title}}", Escape(title)}, {"{{body}}", body}});
}

std::string CountText(uint64_t count) {
  std::string text = absl::StrCat(count);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

std::string NumberText(double number) {
  const double size = std::abs(number);
  if (!(size >= 1e4 && size < 1e15)) return absl::StrFormat("%.4g", number);
  return absl::StrCat(number < 0 ? "-" : "", CountText(static_cast<uint64_t>(std::llround(size))));
}

std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return absl::StrFormat(unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
}

std::string DurationText(absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  if (seconds < 100) return absl::StrFormat("%.1f s", seconds);
  if (seconds < 6000) return absl::StrFormat("%.0f min", seconds / 60);
  return absl::StrFormat("%.1f h", seconds / 3600);
}

std::string TimeLeftText(absl::Duration left) {
  const absl::Duration unit = left < absl::Hours(1) ? absl::Seconds(1) : absl::Minutes(1);
  return absl::FormatDuration(absl::Ceil(left, unit));
}

std::string RatioText(uint64_t raw_bytes, uint64_t encoded_bytes) {
  if (encoded_bytes == 0) return "-";
  return absl::StrFormat("%.1fx",
                         static_cast<double>(raw_bytes) / static_cast<double>(encoded_bytes));
}

}  // namespace thinwire::html
