"""Either loop from the first step to the last."""

from lexrl.loops import compiled, host
from lexrl.loops.population import make_population


def compiled_run(algorithm, env, order, seeds, steps, *, num_log_points=50, devices=None):
    population = make_population(algorithm, env, order, seeds, devices)
    return compiled.advance(population, compiled.start(population), steps, num_log_points=num_log_points)


def host_run(algorithm, env, order, seeds, steps, *, num_log_points=50):
    population = make_population(algorithm, env, order, seeds)
    return host.advance(population, env, host.start(population, env), steps, num_log_points=num_log_points)
