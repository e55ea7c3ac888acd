"""Tests for run.py and its modules: checks of the host, and table rows from program output."""

import unittest

import host
import lines
import run

REQUIREMENTS = {"torch_cuda": "13.0"}


class DeviceTest(unittest.TestCase):
    def test_auto_is_the_first_gpu_or_the_cpu(self):
        self.assertEqual(host.choose_gpu("auto", REQUIREMENTS, "13.1", ["H100"]), 0)
        self.assertEqual(host.choose_gpu("cuda:1", REQUIREMENTS, "13.0", ["H100", "H100"]), 1)
        self.assertIsNone(host.choose_gpu("auto", REQUIREMENTS, None, []))
        self.assertIsNone(host.choose_gpu("cpu", REQUIREMENTS, "13.1", ["H100"]))

    def test_missing_gpu_or_driver_is_a_one_line_error(self):
        for driver, names, message in [
            (None, [], "--device cuda:1: no GPU driver (expected one for CUDA 13.0, got no libcuda.so.1)"),
            ("12.8", ["A100", "A100"], "CUDA version of the GPU driver: too old (expected 13.0 or newer, got 12.8)"),
            ("13.0", ["H100"], "--device cuda:1: no such GPU (expected a number below 1, got 1)"),
        ]:
            with self.assertRaises(host.Unfit) as unfit:
                host.choose_gpu("cuda:1", REQUIREMENTS, driver, names)
            self.assertEqual(str(unfit.exception), message)

    def test_chosen_gpu_is_numbered_among_the_visible_ones(self):
        self.assertEqual(host.visible(1, {}), "1")
        self.assertEqual(host.visible(1, {"CUDA_VISIBLE_DEVICES": "4,7"}), "7")

    def test_versions_are_compared_as_numbers(self):
        host.check_at_least("glibc", "2.9", "2.36")
        with self.assertRaises(host.Unfit):
            host.check_at_least("glibc", "2.36", "2.9")


class LinesTest(unittest.TestCase):
    def test_figures_come_from_lines_with_three_words(self):
        text = "# NVIDIA H100\ngb/s gpu.copy 2800\nus gpu.topk_ef.1mi 31.5\nratio gpu.topk_ef.64mi 0.65\nnoise\n"
        figures = {"gpu.copy gb/s": 2800.0, "gpu.topk_ef.1mi us": 31.5, "gpu.topk_ef.64mi ratio": 0.65}
        self.assertEqual(lines.measured(text), figures)
        self.assertEqual(
            lines.figure_rows(figures),
            [
                ("gpu.copy gb/s", "2800", ""),
                ("gpu.topk_ef.1mi us", "31.5", "40 or less: yes"),
                ("gpu.topk_ef.64mi ratio", "0.65", "0.75 or more: NO"),
            ],
        )

    def test_selection_gets_a_row_with_the_speedup_over_torch(self):
        rows = lines.figure_rows({"gpu.topk_ef.1mi us": 30.0, "torch.topk_ef.1mi us": 120.0})
        self.assertEqual(rows[-1][1], "4.00")

    def test_cases_are_counted_by_result(self):
        cases = [{"result": "COMPLETED"}, {"result": "SKIPPED"}, {"result": "COMPLETED", "failures": [{}]}]
        report = {"testsuites": [{"testsuite": cases}]}
        row, good = lines.tests_row("gpu_test", report, gpu=False)
        self.assertEqual(row, ("gpu_test", "1 passed, 1 failed, 1 skipped", "none failed: NO"))
        self.assertFalse(good)

    def test_with_a_gpu_most_cases_must_run(self):
        report = {"testsuites": [{"testsuite": [{"result": "COMPLETED"}, {"result": "SKIPPED"}]}]}
        self.assertTrue(lines.tests_row("gpu_test", report, gpu=False)[1])
        row, good = lines.tests_row("gpu_test", report, gpu=True)
        self.assertEqual(row[2], "none failed, most ran: NO")
        self.assertFalse(good)

    def test_training_passes_if_the_loss_is_finite_and_no_process_was_lost(self):
        report = {
            "final_train_loss": 0.25,
            "final_test_accuracy": 0.9,
            "steps": 469,
            "median_step_seconds": 0.02,
            "seconds": 10.0,
            "push_bytes_encoded": 5_000_000,
            "worker_rows": [{"device": "cuda:0"}, {"device": "cuda:0"}],
            "workers_lost": [],
            "servers_lost": [],
            "interrupted": False,
        }
        row, good = lines.training_row("resnet20 sync", report)
        self.assertTrue(good)
        text = "cuda:0, train loss 0.2500, test accuracy 0.9000, 469 steps, 20.0 ms a step, 10.0 s, 5.0 MB pushed"
        self.assertEqual(row[1], text)
        self.assertFalse(lines.training_row("", {**report, "workers_lost": [{"worker": 1}]})[1])
        self.assertFalse(lines.training_row("", {**report, "final_train_loss": None})[1])


class ArgumentsTest(unittest.TestCase):
    def test_flags_after_two_dashes_go_to_training(self):
        flags = run.arguments(["--device", "cuda:1", "--", "--push", "topk"])
        self.assertEqual((flags.device, flags.more), ("cuda:1", ["--push", "topk"]))


if __name__ == "__main__":
    unittest.main()
