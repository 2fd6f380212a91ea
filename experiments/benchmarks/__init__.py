"""Published tables, speed and memory. Each is a program: `python -m experiments.benchmarks.speed` in the repository.

What a program finds goes to experiments/results; docs/results.md is made of that (`make docs`).
"""
