#include "admin/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace thinwire::html {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kHostile[] = "<script>alert('1')</script>&\"";
constexpr char kEscaped[] = "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;";

TEST(HtmlTest, EveryTextIsEscaped) {
  const std::vector<std::pair<std::string, std::string>> facts = {{kHostile, kHostile}};
  const std::vector<std::string> columns = {kHostile, kHostile};
  const std::vector<std::vector<std::string>> rows = {{kHostile, kHostile}};
  const std::vector<Curve::Point> points = {{0, 1}, {1, 2}};
  int count = 0;
  for (const std::string& html :
       {Escape(kHostile), Heading(kHostile), Paragraph(kHostile), Facts(facts), Fold(kHostile, ""),
        Table(columns, rows), Chart(kHostile, kHostile, points), Page(kHostile, "")}) {
    EXPECT_THAT(html, HasSubstr(kEscaped));
    EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
    ++count;
  }
  EXPECT_EQ(count, 8);
}

TEST(HtmlTest, APageHasItsBodyAndNoOutsideAsset) {
  const std::string page = Page("server 0", "<p>body</p>");
  EXPECT_THAT(page, HasSubstr("<title>server 0</title>"));
  EXPECT_THAT(page, HasSubstr("<p>body</p>"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  EXPECT_THAT(page, Not(HasSubstr("http:")));
  EXPECT_THAT(page, Not(HasSubstr("https:")));
  EXPECT_THAT(page, Not(HasSubstr(" src=")));
}

TEST(HtmlTest, TheLargestValuesShareTheLastBar) {
  std::map<uint64_t, uint64_t> counts;
  for (uint64_t i = 0; i < kMaxBarCount + 3; ++i) counts[i] = 10;
  const std::string bars = Bars(counts);
  EXPECT_THAT(bars, HasSubstr("<span>15+</span>"));
  EXPECT_THAT(bars, Not(HasSubstr("<span>16</span>")));
  EXPECT_THAT(bars, HasSubstr("<span>40 (21.1 %)</span>"));
  EXPECT_THAT(bars, HasSubstr("width:100.0%"));
  EXPECT_THAT(bars, HasSubstr("width:25.0%"));
}

TEST(HtmlTest, AChartSpansItsValues) {
  const std::vector<Curve::Point> points = {{10, 2.5}, {20, 0.5}, {30, 1}};
  const std::string chart = Chart("loss", "step", points);
  EXPECT_THAT(chart, HasSubstr("loss: 1 now, lowest 0.5, highest 2.5; step 10 to 30"));
  EXPECT_THAT(chart, HasSubstr("<span class=\"y\"><span>2.5</span><span>0.5</span></span>"));
  EXPECT_THAT(chart,
              HasSubstr("<span class=\"x\"><span>10</span><span>step</span><span>30</span>"));
  EXPECT_THAT(chart, HasSubstr("points=\"0.0,0.0 300.0,160.0 600.0,120.0 \""));
  EXPECT_THAT(Chart("loss", "step", std::span(points).first(1)),
              HasSubstr("fewer than two values"));
}

TEST(HtmlTest, FiguresAreReadable) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1234567), "1,234,567");
  EXPECT_EQ(NumberText(0.51349), "0.5135");
  EXPECT_EQ(NumberText(-12345.6), "-12,346");
  EXPECT_EQ(NumberText(std::nan("")), "nan");
  EXPECT_EQ(TimeLeftText(absl::Seconds(195.2)), "3m16s");
  EXPECT_EQ(TimeLeftText(absl::Seconds(7499)), "2h5m");
  EXPECT_EQ(BytesText(999), "999 bytes");
  EXPECT_EQ(BytesText(81234567), "81.2 MB");
  EXPECT_EQ(DurationText(absl::Milliseconds(4140)), "4.1 s");
  EXPECT_EQ(DurationText(absl::Minutes(5)), "5 min");
  EXPECT_EQ(DurationText(absl::Hours(3)), "3.0 h");
  EXPECT_EQ(RatioText(400, 100), "4.0x");
  EXPECT_EQ(RatioText(400, 0), "-");
}

}  // namespace
}  // namespace thinwire::html
