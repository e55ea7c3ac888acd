"""What run.py makes of its host and of what programs print."""

import unittest

import host
import lines
import run

ASKED = {"torch_cuda": "13.0"}


class DeviceTest(unittest.TestCase):
    def test_auto_is_the_first_gpu_or_the_cpu(self):
        self.assertEqual(host.choose_gpu("auto", ASKED, "13.1", ["H100"]), 0)
        self.assertEqual(host.choose_gpu("cuda:1", ASKED, "13.0", ["H100", "H100"]), 1)
        self.assertIsNone(host.choose_gpu("auto", ASKED, None, []))
        self.assertIsNone(host.choose_gpu("cpu", ASKED, "13.1", ["H100"]))

    def test_a_gpu_that_is_not_there_says_what_was_wanted(self):
        for driver, names, message in [
            (None, [], "device cuda:1: want a driver for CUDA 13.0, found no libcuda.so.1"),
            ("12.8", ["A100", "A100"], "want a driver for CUDA 13.0 or newer, found 12.8"),
            ("13.0", ["H100"], "device cuda:1: want one of this machine's GPUs, found 1"),
        ]:
            with self.assertRaises(host.Unfit) as unfit:
                host.choose_gpu("cuda:1", ASKED, driver, names)
            self.assertEqual(str(unfit.exception), message)

    def test_programs_see_the_chosen_gpu_of_those_that_are_shown(self):
        self.assertEqual(host.visible(1, {}), "1")
        self.assertEqual(host.visible(1, {"CUDA_VISIBLE_DEVICES": "4,7"}), "7")

    def test_versions_are_numbers_not_texts(self):
        host.check_at_least("glibc", "2.9", "2.36")
        with self.assertRaises(host.Unfit):
            host.check_at_least("glibc", "2.36", "2.9")


class LinesTest(unittest.TestCase):
    def test_figures_are_the_lines_of_three_words(self):
        text = "# NVIDIA H100\ngb/s gpu.copy 2800\nus gpu.topk_ef.1mi 31.5\nratio gpu.topk_ef.64mi 0.65\nnoise\n"
        figures = {"gpu.copy gb/s": 2800.0, "gpu.topk_ef.1mi us": 31.5, "gpu.topk_ef.64mi ratio": 0.65}
        self.assertEqual(lines.measured(text), figures)
        self.assertEqual(
            lines.figure_rows(figures),
            [
                ("gpu.copy gb/s", "2800", ""),
                ("gpu.topk_ef.1mi us", "31.5", "40 or less: yes"),
                ("gpu.topk_ef.64mi ratio", "0.65", "0.7 or more: NO"),
            ],
        )

    def test_a_selection_stands_beside_torchs(self):
        rows = lines.figure_rows({"gpu.topk_ef.1mi us": 30.0, "torch.topk_ef.1mi us": 120.0})
        self.assertEqual(rows[-1][1], "4.00")

    def test_cases_are_counted_by_what_became_of_them(self):
        cases = [{"result": "COMPLETED"}, {"result": "SKIPPED"}, {"result": "COMPLETED", "failures": [{}]}]
        report = {"testsuites": [{"testsuite": cases}]}
        row, good = lines.tests_row("gpu_test", report, gpu=False)
        self.assertEqual(row, ("gpu_test", "1 passed, 1 failed, 1 skipped", "none failed: NO"))
        self.assertFalse(good)

    def test_with_a_gpu_its_tests_are_not_skipped(self):
        report = {"testsuites": [{"testsuite": [{"result": "COMPLETED"}, {"result": "SKIPPED"}]}]}
        self.assertTrue(lines.tests_row("gpu_test", report, gpu=False)[1])
        row, good = lines.tests_row("gpu_test", report, gpu=True)
        self.assertEqual(row[2], "none failed, most ran: NO")
        self.assertFalse(good)

    def test_a_training_is_good_if_it_learned_and_lost_nobody(self):
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
    def test_flags_for_the_training_come_after_two_dashes(self):
        asked = run.arguments(["--device", "cuda:1", "--", "--push", "topk"])
        self.assertEqual((asked.device, asked.more), ("cuda:1", ["--push", "topk"]))


if __name__ == "__main__":
    unittest.main()
