"""Tests the report with synthetic results whose findings are known."""

import contextlib
import html.parser
import io
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import claims
import estimates
import figures
import findings
import labels
import measures
import page
import report
import results
from synthetic_results import Results, every_figure

PROGRAM = pathlib.Path(__file__).parent / "report.py"
VOID = {"meta", "link", "br", "hr", "img", "input"}


def two_modes(sync, backup, **description):
    """Results of the modes sync and backup: (seconds, accuracy) at the only two tests, one pair of seeds after the other."""
    files = Results({"mode": ["sync", "backup"]}, target_accuracy=0.8, **description)
    for mode, runs in (("sync", sync), ("backup", backup)):
        for seed, (seconds, accuracy) in enumerate(runs, 1):
            files.run([mode], seed, [(seconds / 2, 0.4), (seconds, accuracy)])
    return files


def claim(measure="accuracy", **fields):
    return {"text": "Backup is better.", "better": ["mode=backup"], "worse": ["mode=sync"], "measure": measure, **fields}


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def read(self, files):
        files.write(self.folder)
        return results.read_experiment(self.folder)

    def judge(self, files):
        experiment = self.read(files)
        return claims.judge(experiment.claims[0], experiment)

    def report(self):
        """Returns the exit code and the messages of the program."""
        with contextlib.redirect_stderr(io.StringIO()) as messages:
            return report.main([str(self.folder)]), messages.getvalue()


class EstimatesTest(unittest.TestCase):
    def test_t_quantiles_are_those_of_the_tables(self):
        for freedom, quantile in ((1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (7, 2.365), (10, 2.228), (30, 2.042)):
            self.assertAlmostEqual(estimates.t_quantile(freedom), quantile, 3)

    def test_a_paired_difference_ignores_the_spread_that_both_share(self):
        # Differences 1, 2, 3: mean 2, standard deviation 1, half width 4.303 / sqrt(3).
        found = estimates.paired_difference({1: 11, 2: 22, 3: 33}, {1: 10, 2: 20, 3: 30})
        self.assertAlmostEqual(found.estimate, 2)
        self.assertAlmostEqual(found.low, 2 - 4.30265 / math.sqrt(3), 4)
        self.assertAlmostEqual(found.high, 2 + 4.30265 / math.sqrt(3), 4)

    def test_only_common_seeds_are_compared(self):
        self.assertEqual(estimates.paired_difference({1: 5, 2: 7, 9: 100}, {1: 4, 2: 6, 3: 0}).pairs, 2)
        self.assertIsNone(estimates.paired_difference({1: 5}, {2: 5}))

    def test_a_ratio_is_the_geometric_mean_with_the_interval_of_the_logarithms(self):
        found = estimates.paired_ratio({1: 2, 2: 8}, {1: 1, 2: 1})
        self.assertAlmostEqual(found.estimate, 4)
        self.assertAlmostEqual(math.log(found.high / 4), 12.7062 * math.log(2), 3)

    def test_one_pair_has_an_unbounded_interval(self):
        found = estimates.paired_difference({1: 5}, {1: 4})
        self.assertEqual((found.estimate, found.low, found.high), (1, -math.inf, math.inf))
        self.assertEqual(estimates.interval_text(found), "1.00")
        self.assertEqual(estimates.interval_text(estimates.paired_ratio({1: 5}, {1: 4})), "1.25")

    def test_no_more_digits_than_known_are_shown(self):
        self.assertEqual(estimates.with_deviation([91.2345, 91.8345]), "91.5 ± 0.4")
        self.assertEqual(estimates.with_deviation([1234.5, 1534.5]), "1400 ± 200")
        self.assertEqual(estimates.with_deviation([0.10, 0.12]), "0.110 ± 0.014")
        self.assertEqual(estimates.with_deviation([91.2345]), "91.2")
        self.assertEqual(estimates.with_deviation([5, 5]), "5.00")
        self.assertEqual(estimates.with_deviation([17.2618, 17.2619]), "17.3")
        self.assertEqual(estimates.with_deviation([118.20, 118.28]), "118.2 ± 0.1")
        self.assertEqual(estimates.interval_text(estimates.Interval(-0.5, -2.5, 1.5, 3)), "0 (95 % interval −2 to 2)")

    def test_units_follow_the_size(self):
        self.assertEqual(measures.QUANTITIES["bytes"].text([2.5e9, 2.5e9]), "2.50 GB")
        self.assertEqual(measures.MEDIAN_STEP.text([0.0471]), "47.1 ms")
        self.assertEqual(measures.QUANTITIES["accuracy"].text([0.912, 0.918]), "91.5 ± 0.4 %")
        self.assertEqual(measures.QUANTITIES["accuracy"].text([]), "–")


class ResultsTest(Folder):
    def test_the_time_to_an_accuracy_is_interpolated_between_two_tests(self):
        files = Results({"mode": ["sync"]})
        files.run(["sync"], 1, [(10, 0.5), (20, 0.7), (30, 0.9), (40, 0.6)])
        run = self.read(files).cases[0].runs[1]
        self.assertAlmostEqual(run.seconds_to(0.8), 25)
        self.assertAlmostEqual(run.seconds_to(0.7), 20)
        self.assertEqual(run.seconds_to(0.4), 10)
        self.assertIsNone(run.seconds_to(0.95))

    def test_a_band_is_the_mean_and_the_range_of_the_seeds(self):
        files = Results({"mode": ["sync"]})
        files.run(["sync"], 1, [(10, 0.5), (20, 0.8)])
        files.run(["sync"], 2, [(12, 0.6), (24, 0.8)])
        found = figures.band(self.read(files).cases[0], "seconds", "accuracy")
        self.assertEqual([tuple(round(value, 9) for value in point) for point in found], [(11, 55, 50, 60), (22, 80, 80, 80)])

    def test_bins_are_single_values_or_powers_of_two(self):
        self.assertEqual(figures.bins(2), [(0, 0), (1, 1), (2, 2)])
        self.assertEqual(figures.bins(20), [(0, 0), (1, 1), (2, 3), (4, 7), (8, 15), (16, 31)])

    def test_bad_files_are_errors_with_their_place(self):
        def damage(name, old, new):
            def apply():
                text = (self.folder / name).read_text(encoding="utf-8")
                self.assertIn(old, text)
                (self.folder / name).write_text(text.replace(old, new, 1), encoding="utf-8")
            return apply

        cases = (
            (lambda: (self.folder / "runs.csv").unlink(), r"runs\.csv: cannot be read: No such file"),
            (lambda: (self.folder / "experiment.json").write_text("{"), r"experiment\.json: not JSON"),
            (damage("experiment.json", '"claims"', '"clams"'), r"missing key \(expected 'claims', got none\)"),
            (damage("experiment.json", '"kind": "table"', '"kind": "pie"'), r"expected curves or .*, got 'pie'"),
            (damage("runs.csv", "test_accuracy", "accuracy"), r"runs\.csv: unknown column \(expected run, .*, got 'accuracy'\)"),
            (damage("runs.csv", ",busy", ""), r"runs\.csv: column busy: expected once, got 0 times"),
            (damage("runs.csv", "12800", "many"), r"runs\.csv:2: column examples: not a number \(expected int, got 'many'\)"),
            (damage("runs.csv", "sync", "zync"), r"run 0: axis mode: unknown setting \(expected sync, backup, got 'zync'\)"),
            (damage("curves.csv", "\n0,", "\n7,"), r"curves\.csv: unknown run \(expected a run of runs\.csv, got 7\)"),
            (damage("staleness.csv", "\n", "\n0,1\n"), r"staleness\.csv:2: wrong number of cells \(expected 3, got 2\)"),
        )
        for apply, message in cases:
            with self.subTest(message):
                two_modes([(10, 0.9)], [(5, 0.9)], figures=[{"kind": "table"}]).write(self.folder)
                apply()
                code, error = self.report()
                self.assertEqual(code, 78, error)
                self.assertRegex(error, message)
        self.assertFalse((self.folder / "report.html").exists())

    def test_no_runs_and_no_folder_are_errors(self):
        Results({"mode": ["sync"]}).write(self.folder)
        self.assertEqual(self.report()[0], 78)
        self.assertRegex(self.report()[1], r"runs\.csv: no runs \(expected at least one, got only the header\)")
        with contextlib.redirect_stderr(io.StringIO()) as messages:
            self.assertEqual(report.main([]), 64)
        self.assertIn("expected one folder, got none", messages.getvalue())

    def test_a_target_is_required_where_it_is_used(self):
        for description in ({"figures": [{"kind": "time_to_accuracy"}]}, {"claims": [claim("seconds_to_target")]}):
            with self.assertRaisesRegex(results.ResultError, "target_accuracy"):
                self.read(Results({"mode": ["sync", "backup"]}, **description))


class SentValuesTest(Folder):
    def files(self, tree_values, **description):
        files = Results({"method": ["servers", "tree", "dense"]}, **description)
        for method, values in (("servers", 226), ("tree", tree_values)):
            for seed in (1, 2):
                files.run([method], seed, [(10, 0.8 + seed / 100)], density=0.001, sent_values=values)
        files.run(["dense"], 1, [(10, 0.9)], sent_values=215370)
        return files

    def test_cases_with_the_same_density_must_send_equally_many_values(self):
        compared = ({"figures": [{"kind": "curves", "title": "All"}]},
                    {"claims": [{"text": "Better.", "better": ["method=servers"], "worse": ["method=tree"]}]})
        for description in compared:
            self.read(self.files(230, **description))
            with self.assertRaisesRegex(results.ResultError, r"(figure 'All'|claim 'Better.'): run 2: another number of sent values with "
                                        r"density 0\.001 \(expected 226 within 2 %, as in run 0, got 1000\)"):
                self.read(self.files(1000, **description))
        self.assertEqual(self.report()[0], 78)

    def test_other_models_may_send_other_numbers(self):
        files = self.files(226, figures=[{"kind": "curves"}])
        files.run(["tree"], 3, [(10, 0.9)], density=0.001, sent_values=8, model_values=7850)
        self.read(files)

    def test_cases_that_are_not_compared_may_differ(self):
        self.read(self.files(1000, figures=[{"kind": "curves", "only": ["method=tree"]}, {"kind": "table", "only": ["method=servers"]}],
                             claims=[{"text": "Better.", "better": ["method=servers"], "worse": ["method=dense"]}]))

    def test_the_page_states_the_sent_values(self):
        text = page.write(self.read(self.files(226, figures=[{"kind": "table"}])))
        self.assertEqual(text.count("sent values per step"), 2, "in the figure and in the table of all cases")
        self.assertEqual(text.count(">226<"), 4)
        self.assertNotIn("sent values", page.write(self.read(two_modes([(10, 0.9)], [(5, 0.9)]))))


class ClaimsTest(Folder):
    def test_a_clear_difference_is_supported(self):
        found = self.judge(two_modes([(10, 0.80), (10, 0.81), (10, 0.82)], [(10, 0.90), (10, 0.912), (10, 0.92)], claims=[claim()]))
        self.assertEqual(found.verdict, claims.SUPPORTED)
        self.assertRegex(found.comparisons[0].effect, r"difference 10\.\d+ points \(95 % interval 9\.\d+ to 10\.\d+\)")

    def test_pairs_decide_although_seeds_differ_more_than_cases(self):
        found = self.judge(two_modes([(10, 0.70), (10, 0.80), (10, 0.90)], [(10, 0.710), (10, 0.811), (10, 0.910)], claims=[claim()]))
        self.assertEqual(found.verdict, claims.SUPPORTED)

    def test_the_opposite_is_not_supported(self):
        found = self.judge(two_modes([(10, 0.90), (10, 0.912), (10, 0.92)], [(10, 0.80), (10, 0.81), (10, 0.82)], claims=[claim()]))
        self.assertEqual(found.verdict, claims.NOT_SUPPORTED)

    def test_an_interval_around_zero_is_undecided(self):
        found = self.judge(two_modes([(10, 0.80), (10, 0.85), (10, 0.82)], [(10, 0.81), (10, 0.83), (10, 0.84)], claims=[claim()]))
        self.assertEqual(found.verdict, claims.UNDECIDED)
        self.assertIn("Not distinguishable with 3 seeds", found.reason)

    def test_a_claim_may_allow_a_loss_of_standard_deviations(self):
        # Differences -0.01, -0.011 and -0.009; the standard deviation of sync is 0.02.
        runs = [(10, 0.8), (10, 0.82), (10, 0.84)], [(10, 0.79), (10, 0.809), (10, 0.831)]
        self.assertEqual(self.judge(two_modes(*runs, claims=[claim()])).verdict, claims.NOT_SUPPORTED)
        judgement = self.judge(two_modes(*runs, claims=[claim(deviations=1)]))
        self.assertEqual(judgement.verdict, claims.SUPPORTED)
        self.assertIn("above \N{MINUS SIGN}2.00 points", judgement.reason)
        self.assertEqual(self.judge(two_modes(*runs, claims=[claim(deviations=0.2)])).verdict, claims.NOT_SUPPORTED)

    def test_one_seed_decides_nothing(self):
        found = self.judge(two_modes([(10, 0.5)], [(10, 0.9)], claims=[claim()]))
        self.assertEqual((found.verdict, found.reason), (claims.UNDECIDED, "One seed does not show the spread."))

    def test_a_ratio_is_compared_with_the_expected_range(self):
        fast = [(10, 0.9), (10.1, 0.9), (9.9, 0.9)]
        for slow, verdict in (((20, 20.3, 19.7), claims.SUPPORTED), ((30, 30.3, 29.7), claims.NOT_SUPPORTED),
                              ((21.8, 22.4, 22), claims.UNDECIDED)):
            with self.subTest(slow):
                sync = [(seconds, 0.9) for seconds in slow]
                found = self.judge(two_modes(sync, fast, claims=[claim("seconds_to_target", expected_ratio=2)]))
                self.assertEqual(found.verdict, verdict, found.comparisons)
                self.assertEqual(found.expected, "2 within 10 % (1.80 to 2.20)")

    def test_runs_below_the_target_give_a_bound(self):
        below = [(30, 0.7), (31, 0.7), (32, 0.7)]
        reached = [(10, 0.9), (10, 0.9), (10, 0.9)]
        found = self.judge(two_modes(below, reached, claims=[claim("seconds_to_target")]))
        self.assertEqual(found.verdict, claims.SUPPORTED)
        self.assertEqual(found.comparisons[0].worse_text, "not reached")
        self.assertRegex(found.comparisons[0].effect, r"ratio above 3\.\d+")
        # A bound cannot show that the ratio is the expected one.
        found = self.judge(two_modes(below, reached, claims=[claim("seconds_to_target", expected_ratio=3.5)]))
        self.assertEqual(found.verdict, claims.UNDECIDED)
        found = self.judge(two_modes(reached, below, claims=[claim("seconds_to_target")]))
        self.assertEqual(found.verdict, claims.NOT_SUPPORTED)
        found = self.judge(two_modes(below, below, claims=[claim("seconds_to_target")]))
        self.assertEqual(found.verdict, claims.UNDECIDED)

    def test_an_axis_that_is_not_named_is_compared_for_each_setting(self):
        files = Results({"mode": ["sync", "backup"], "times": ["constant", "slow"]}, claims=[claim("median_step")])
        for mode, times, median in (("sync", "constant", 1), ("sync", "slow", 4), ("backup", "constant", 1.2), ("backup", "slow", 2)):
            for seed in (1, 2, 3):
                files.run([mode, times], seed, [(10, 0.5)], median_step_seconds=median + seed / 1000)
        found = self.judge(files)
        self.assertEqual([comparison.verdict for comparison in found.comparisons], [claims.NOT_SUPPORTED, claims.SUPPORTED])
        self.assertEqual(found.verdict, claims.NOT_SUPPORTED)
        self.assertEqual(found.reason, "2 comparisons: 1 supported, 1 not supported.")

    def test_a_larger_part_of_the_time_spent_computing_is_better(self):
        files = Results({"mode": ["sync", "backup"]}, claims=[claim("busy")])
        for mode, busy in (("sync", 0.5), ("backup", 0.75)):
            for seed in (1, 2, 3):
                files.run([mode], seed, [(10, 0.5)], busy=busy + seed / 1000)
        found = self.judge(files)
        self.assertEqual(found.verdict, claims.SUPPORTED)
        self.assertEqual(found.comparisons[0].better_text, "75.20 ± 0.10 %")

    def test_a_claim_without_runs_is_undecided(self):
        files = two_modes([(10, 0.9)], [(10, 0.9)], claims=[claim(better=["mode=ssp"])])
        found = self.judge(files)
        self.assertEqual((found.verdict, found.reason), (claims.UNDECIDED, "The experiment has no runs of both cases."))


class FindingsTest(Folder):
    def test_a_ranking_separates_distinguishable_cases(self):
        files = Results({"mode": ["sync", "backup", "async"]})
        for mode, accuracies in (("sync", (0.90, 0.91, 0.92)), ("backup", (0.905, 0.902, 0.921)), ("async", (0.80, 0.81, 0.82))):
            for seed, accuracy in enumerate(accuracies, 1):
                files.run([mode], seed, [(10, accuracy)])
        text = " ".join(findings.ranking(self.read(files).cases, measures.QUANTITIES["accuracy"]))
        self.assertEqual(text, "With 3 seeds, sync has the highest final test accuracy: 91.0 ± 1.0 %. Not distinguishable from it with 3 seeds: "
                               "backup (90.9 ± 1.0 %). async (81.0 ± 1.0 %) is lower by 10.0 points with every seed.")

    def test_cases_that_do_not_reach_the_target_are_named(self):
        experiment = self.read(two_modes([(10, 0.7), (10, 0.7)], [(10, 0.9), (12, 0.9)]))
        text = " ".join(findings.time_to_target(experiment.cases, measures.time_to(0.8)))
        self.assertIn("backup has the shortest time to 80 %", text)
        self.assertIn("Not reached by sync.", text)

    def test_a_frontier_names_the_cases_that_no_case_beats(self):
        files = Results({"codec": ["fp32", "fp8", "onebit"], "feedback": ["feedback", "no_feedback"]})
        for codec, size, accuracies in (("fp32", 100, (0.91, 0.91)), ("fp8", 25, (0.91, 0.88)), ("onebit", 30, (0.87, 0.60))):
            for feedback, accuracy in zip(("feedback", "no_feedback"), accuracies):
                for seed in (1, 2, 3):
                    files.run([codec, feedback], seed, [(10, accuracy + seed / 1000)], push_bytes=size, pull_bytes=size)
        experiment = self.read(files)
        self.assertEqual(findings.group_axis(experiment.cases), "feedback")
        beaten = findings.dominated(experiment.cases, "accuracy")
        self.assertEqual([case.settings for case in experiment.cases if case not in beaten], [{"codec": "fp8", "feedback": "feedback"}])
        text = " ".join(findings.frontier(experiment.cases, "accuracy"))
        self.assertIn("The accuracy with feedback is higher than with no_feedback for fp8 (by 3.00 points) and onebit (by 27.0 points).", text)
        self.assertIn("The two are not distinguishable for fp32.", text)


class LossTest(Folder):
    """An experiment without accuracies: the loss of a test is 1 minus the number of two_modes."""

    def files(self, sync, backup, **description):
        files = two_modes([(10, 1 - loss) for loss in sync], [(10, 1 - loss) for loss in backup], quality="loss", target_loss=0.3, **description)
        for table in (files.runs, files.curves):
            for row in table:
                row[{len(files.runs[0]): -8, len(files.curves[0]): -2}[len(row)]] = "nan"  # test_accuracy
        return files

    def test_the_lower_loss_is_better(self):
        lower, higher = (0.20, 0.21, 0.22), (0.40, 0.412, 0.42)
        found = self.judge(self.files(higher, lower, claims=[{**claim(), "measure": "loss"}]))
        self.assertEqual(found.verdict, claims.SUPPORTED)
        self.assertRegex(found.comparisons[0].effect, r"difference 0\.20\d+ \(95 % interval 0\.19\d+ to 0\.2\d+\)")
        self.assertEqual(self.judge(self.files(lower, higher, claims=[{**claim(), "measure": "loss"}])).verdict, claims.NOT_SUPPORTED)
        without = {key: value for key, value in claim().items() if key != "measure"}
        self.assertEqual(self.judge(self.files(higher, lower, claims=[without])).measure.name, "test loss")

    def test_the_time_to_a_loss_is_interpolated_and_may_not_exist(self):
        experiment = self.read(self.files((0.5, 0.5), (0.0, 0.2)))
        times = [[run.seconds_to(0.3, "loss") for run in case.runs.values()] for case in experiment.cases]
        self.assertEqual(times[0], [None, None])
        self.assertAlmostEqual(times[1][0], 7.5)  # 0.6 at 5 s, 0 at 10 s
        text = " ".join(findings.time_to_target(experiment.cases, measures.time_to_target(experiment)))
        self.assertIn("backup has the shortest time to 0.3", text)
        self.assertIn("Not reached by sync.", text)

    def test_figures_and_sentences_show_the_loss(self):
        kinds = ("curves", "frontier", "table", "time_to_accuracy")
        figure_list = [*({"kind": kind} for kind in kinds), {"kind": "scan", "x_axis": "mode"},
                       {"kind": "scan", "x_axis": "mode", "y": "busy"}]
        text = page.write(self.read(self.files((0.5, 0.52), (0.2, 0.21), figures=figure_list)))
        self.assertIn("Target loss: 0.3.", text)
        self.assertIn("backup has the lowest final test loss", text)
        self.assertIn("no other case has both fewer bytes and a lower loss than backup", text)
        self.assertIn("time to loss 0.3", text)
        shown = text.split("<h1>")[1].split("How to read")[0]
        self.assertEqual([word for word in ("accurac", "Accurac", ">nan") if word in shown], [])

    def test_an_unknown_quality_is_an_error(self):
        with self.assertRaisesRegex(results.ResultError, "quality: wrong value .expected accuracy or loss, got 'speed'"):
            self.read(Results({"mode": ["sync"]}, quality="speed"))


class LabelsTest(unittest.TestCase):
    def test_labels_of_a_cluster_overlap_nothing(self):
        points = [(300 + 9 * (i % 5), 200 + 7 * (i // 5)) for i in range(20)]
        sizes = [(40, 11)] * len(points)
        obstacles = [(x - 4, y - 4, x + 4, y + 4) for x, y in points]
        corners = labels.place(points, sizes, (0, 0, 700, 400), obstacles)
        boxes = [(x, y, x + 40, y + 11) for x, y in corners] + obstacles
        checked = 0
        for i in range(len(points)):
            self.assertTrue(0 <= boxes[i][0] and boxes[i][2] <= 700 and 0 <= boxes[i][1] and boxes[i][3] <= 400)
            for other in boxes[i + 1:]:
                a = boxes[i]
                self.assertFalse(a[0] < other[2] and other[0] < a[2] and a[1] < other[3] and other[1] < a[3], (a, other))
                checked += 1
        self.assertEqual(checked, 19 * 20 // 2 + 20 * 20)


class Page(html.parser.HTMLParser):
    """Checks that every element is closed in order, that ids are unique, and that references stay within the page."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.ids = []
        self.references = []
        self.texts = io.StringIO()

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href", "data"):
                self.references.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:], self.getpos())
        self.open.pop()

    def handle_data(self, data):
        self.texts.write(data)


class PageTest(Folder):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as name:
            every_figure().write(pathlib.Path(name))
            assert report.main([name]) == 0
            cls.text = (pathlib.Path(name) / "report.html").read_text(encoding="utf-8")

    def test_the_page_is_well_formed_and_complete(self):
        text = self.text
        page = Page()
        page.feed(text)
        page.close()
        self.assertEqual(page.open, [])
        self.assertEqual(text.count("<svg "), len(results.KINDS) - 1 + 4 + 1)  # the table has none; the last figure has no runs
        shown = page.texts.getvalue()
        for kind in results.KINDS:
            self.assertIn(f"The {kind}", shown)
        self.assertIn("Every kind <of> figure", shown)
        self.assertIn("No runs have the settings of this figure.", shown)
        self.assertIn("not reached", shown)
        self.assertIn("late pushes", shown)

    def test_the_page_has_no_outside_reference_and_no_repeated_id(self):
        text = self.text
        page = Page()
        page.feed(text)
        self.assertGreater(len(page.references), 100)
        for reference in page.references + re.findall(r"url\(([^)]*)\)", text):
            self.assertTrue(reference.startswith("#"), reference)
            self.assertIn(reference[1:], page.ids)
        self.assertEqual(len(set(page.ids)), len(page.ids))
        self.assertNotRegex(text, r"https?://|@import|<script|<link|<img")

    def test_equal_results_give_equal_bytes(self):
        every_figure().write(self.folder)
        # Another process has another hash seed.
        subprocess.run([sys.executable, PROGRAM, self.folder], timeout=600, check=True)
        self.assertEqual((self.folder / "report.html").read_text(encoding="utf-8"), self.text)
        self.assertGreater(len(self.text), 100_000)

    def test_decisions_are_a_table_of_all_seeds(self):
        files = two_modes([(10, 0.8), (10, 0.82)], [(10, 0.8), (10, 0.82)])
        self.assertNotIn("Decisions", page.write(self.read(files)))
        for run, predicted in ((2, 0.7), (3, 0.8)):
            files.decisions.append([run, 40, 140, 5.0, 0.6, "fp32", predicted, 0.02, 0.01, 0.001, 0.3, 0.0, int(run == 2), "all"])
            files.decisions.append([run, 40, 140, 5.0, 0.6, "table_1", "nan", "nan", "nan", "nan", 0.1, 3.5, 0, "all"])
            files.decisions.append([run, 140, 240, 9.0, 0.6, "fp32", 0.9, 0.02, 0.01, 0.001, 0.3, "nan", 1, "matrices"])
        text = page.write(self.read(files)).replace("\N{NO-BREAK SPACE}", " ")
        self.assertIn('<td class="name">fp32</td><td>75.0 ± 2.0 %</td><td>300 ms</td><td>0</td><td>1 of 2</td>', text)
        self.assertIn('<td class="name">table_1</td><td>removed</td><td>100 ms</td><td>3.50</td><td>0 of 2</td>', text)
        self.assertIn('<td class="name">matrices</td><td class="name">fp32</td><td>90.0 ± 2.0 %</td><td>300 ms</td><td>not measured</td>', text)

    def test_a_title_is_the_name_if_there_is_none(self):
        files = two_modes([(10, 0.9)], [(5, 0.9)])
        del files.description["title"]
        self.assertEqual(self.read(files).title, "synthetic")
        self.assertEqual(json.loads((self.folder / "experiment.json").read_text())["name"], "synthetic")


if __name__ == "__main__":
    unittest.main(verbosity=2)
