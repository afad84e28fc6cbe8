"""Threads on all nodes compute by numpy, whose libraries are opened while the program runs."""
from concurrent.futures import ThreadPoolExecutor

import numpy as np


def work(seed):
    random = np.random.default_rng(seed)
    a, b = random.standard_normal((2, 60, 60))
    try:
        np.linalg.inv(np.zeros((3, 3)))
        singular = "no error"
    except np.linalg.LinAlgError as error:
        singular = str(error)
    residual = np.abs(a @ np.linalg.solve(a, b) - b).max()
    spectrum = np.abs(np.fft.fft(a[0])).sum()
    return round(float((a @ b).sum()), 5), bool(residual < 1e-6), round(float(spectrum), 5), singular


with ThreadPoolExecutor(4) as threads:
    print(*threads.map(work, range(8)), sep="\n")
