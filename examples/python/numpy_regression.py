"""Fits a linear regression with NumPy alone, without PyTorch, on thinwire's servers (docs/python.md).

    bazel build //python //server //cli:thinwire
    bazel-bin/cli/thinwire launch --workers 2 --servers 1 examples/python/numpy_regression.py --push fp8_e5m2

Every worker makes its own examples y = x w + b + noise, with the same w and b. The mean squared error of the best parameters is
the variance of the noise.
"""

import argparse

import numpy

import thinwire

INPUTS = 200
NOISE = 0.1  # the standard deviation


def make_examples(count, generator, weights, bias):
    x = generator.standard_normal((count, INPUTS), numpy.float32)
    return x, x @ weights + bias + NOISE * generator.standard_normal(count, numpy.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch_size", type=int, default=256, help="examples of one worker in a step")
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--push", default="fp32", help="the codec of gradients")
    args = parser.parse_args()

    truth = numpy.random.default_rng(1)  # the same in all workers
    weights, bias = truth.standard_normal(INPUTS, numpy.float32) / INPUTS**0.5, numpy.float32(0.5)
    thinwire.init()
    generator = numpy.random.default_rng((2, thinwire.rank()))

    first = {"weights": numpy.zeros(INPUTS), "bias": 0.0}
    with thinwire.ArrayOptimizer(first, "momentum", lr=args.lr, examples=args.batch_size, push=args.push) as optimizer:
        w, b = optimizer.parameters["weights"], optimizer.parameters["bias"]  # step() changes these arrays
        while optimizer.step_number < args.steps:
            step = optimizer.step_number
            x, y = make_examples(args.batch_size, generator, weights, bias)
            error = x @ w + b - y
            if step % 50 == 0:
                print(f"step {step}, loss {numpy.mean(error**2):.4f}", flush=True)
            optimizer.step({"weights": 2 * (error @ x) / len(y), "bias": 2 * error.mean()})
        if thinwire.rank() == 0:
            x, y = make_examples(10000, generator, weights, bias)
            print(f"{thinwire.world_size()} workers, loss {numpy.mean((x @ w + b - y) ** 2):.4f}, noise {NOISE**2:.4f}")


if __name__ == "__main__":
    main()
