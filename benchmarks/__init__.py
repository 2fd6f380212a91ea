"""Published tables, speed and memory. Each is a program, run from the project's folder: `python -m benchmarks.speed`.

What a program finds goes to benchmarks/results; docs/results.md is made of that (`make docs`).
"""
