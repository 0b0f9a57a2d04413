"""Either loop from the first step to the last."""

from lexrl.loops import compiled, host
from lexrl.loops.population import population


def compiled_run(algorithm, env, order, seeds, steps, *, chunks=50, devices=None):
    people = population(algorithm, env, order, seeds, devices)
    return compiled.advance(people, compiled.start(people), steps, chunks=chunks)


def host_run(algorithm, env, order, seeds, steps, *, chunks=50):
    people = population(algorithm, env, order, seeds)
    return host.advance(people, env, host.start(people, env), steps, chunks=chunks)
