"""Trains a small neural network with JAX on thinwire's servers (docs/python.md).

    bazel build //python //server //cli:thinwire
    bazel-bin/cli/thinwire launch --workers 2 --servers 1 examples/python/jax_regression.py --push fp8_e5m2

Every worker makes its own examples y = sin(x w) + noise, with the same w. The gradients of JAX are NumPy arrays without a copy;
the servers' parameters are arrays that step() changes, so each step gives them to JAX anew. Needs JAX (pip install jax).
"""

import argparse

import jax
import jax.numpy as jnp
import numpy

import thinwire

INPUTS = 8
NOISE = 0.1  # the standard deviation


def make_examples(count, generator, weights):
    x = generator.standard_normal((count, INPUTS), numpy.float32)
    return x, numpy.sin(x @ weights) + NOISE * generator.standard_normal(count, numpy.float32)


def loss(parameters, x, y):
    hidden = jnp.tanh(x @ parameters["w0"] + parameters["b0"])
    return jnp.mean((hidden @ parameters["w1"] + parameters["b1"] - y) ** 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch_size", type=int, default=128, help="examples of one worker in a step")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--push", default="fp32", help="the codec of gradients")
    args = parser.parse_args()

    same = numpy.random.default_rng(1)  # the same in all workers
    weights = same.standard_normal(INPUTS, numpy.float32) / INPUTS**0.5
    first = {"w0": same.standard_normal((INPUTS, 64), numpy.float32) / INPUTS**0.5, "b0": numpy.zeros(64),
             "w1": same.standard_normal(64, numpy.float32) / 8, "b1": 0.0}
    thinwire.init()
    generator = numpy.random.default_rng((2, thinwire.rank()))
    gradient = jax.jit(jax.value_and_grad(loss))
    with thinwire.ArrayOptimizer(first, "adam", lr=args.lr, examples=args.batch_size, push=args.push) as optimizer:
        while optimizer.step_number < args.steps:
            step = optimizer.step_number
            # jnp.array copies: the servers' next parameters must not change those with which JAX computes.
            present = {name: jnp.array(values) for name, values in optimizer.parameters.items()}
            value, gradients = gradient(present, *make_examples(args.batch_size, generator, weights))
            if step % 100 == 0:
                print(f"step {step}, loss {value:.4f}", flush=True)
            optimizer.step(gradients)  # waits for JAX, whose arrays it reads without a copy
        if thinwire.rank() == 0:
            present = {name: jnp.array(values) for name, values in optimizer.parameters.items()}
            test = loss(present, *make_examples(10000, generator, weights))
            print(f"{thinwire.world_size()} workers, loss {test:.4f}, noise {NOISE**2:.4f}")


if __name__ == "__main__":
    main()
