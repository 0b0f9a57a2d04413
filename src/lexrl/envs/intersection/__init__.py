"""Intersection: turn left through the traffic of a crossing, as in highway-env's `intersection-v0`, but compiled.

`env.py` is the environment; the other modules are the dynamics, written anew after those of highway-env 1.12.1 (MIT
licence, copyright 2018 Edouard Leurent), in the same order of operations, so that both give the same numbers.
"""
