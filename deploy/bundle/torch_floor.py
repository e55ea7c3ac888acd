"""Measures torch.topk and a copy on this machine, for comparison with bench_gpu. Prints lines "us torch.topk.64mi 81.0".

    torch.copy       bytes read and written by a copy, in GB/s
    torch.topk       selection of the k = n / 1000 largest magnitudes of n values
    torch.topk_ef    selection with error feedback: adds the gradient to the residual, selects the k values of largest
                     magnitude and removes these values from the residual
"""

import statistics
import sys
import time

import torch

MI = 1 << 20
SAMPLES = 21


def microseconds(run, device):
    """Returns the median time of a call of RUN in microseconds."""
    samples = []
    for sample in range(SAMPLES + 3):
        if device.type == "cuda":
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run()
            end.record()
            end.synchronize()
            taken = begin.elapsed_time(end) * 1e3
        else:
            begin = time.perf_counter()
            run()
            taken = (time.perf_counter() - begin) * 1e6
        if sample >= 3:  # the first three calls are for warm-up
            samples.append(taken)
    return statistics.median(samples)


def measure(name, count, device):
    gradient = torch.randn(count, device=device)
    residual = torch.zeros_like(gradient)
    k = count // 1000

    def top_k_with_feedback():
        residual.add_(gradient)
        indices = torch.topk(residual.abs(), k, sorted=False).indices
        values = residual[indices]
        residual[indices] = 0
        return values

    copied = torch.empty_like(gradient)
    copy = microseconds(lambda: copied.copy_(gradient), device)
    print(f"gb/s torch.copy.{name} {8e-3 * count / copy:.1f}")
    print(f"us torch.topk.{name} {microseconds(lambda: torch.topk(gradient.abs(), k, sorted=False), device):.1f}")
    print(f"us torch.topk_ef.{name} {microseconds(top_k_with_feedback, device):.1f}", flush=True)


def main():
    device = torch.device(sys.argv[1])
    sizes = {"1mi": MI, "64mi": 64 * MI, "256mi": 256 * MI} if device.type == "cuda" else {"1mi": MI}
    print(f"# torch {torch.__version__}, {torch.cuda.get_device_name(device) if device.type == 'cuda' else 'cpu'}")
    for name, count in sizes.items():
        if device.type == "cuda" and torch.cuda.mem_get_info(device)[0] < 8 * 4 * count:
            print(f"# {name}: skipped (expected room for eight arrays of {count * 4 // MI} MiB on the device)")
            continue
        measure(name, count, device)


if __name__ == "__main__":
    main()
