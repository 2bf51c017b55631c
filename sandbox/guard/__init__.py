"""The guard: a small stdlib-only program that runs beside the untrusted one, holds its limits and kills it when its caller is gone."""
