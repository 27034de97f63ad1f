"""Singular values of matrices whose rows are alike: what is left of them all but vanishes on the way."""

import numpy as np
import pytest
import tenon


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1.0, 19817816.0])
def test_matrices_of_equal_elements_but_one(dtype, size):
    for rows in range(2, 9):
        for columns in range(2, 9):
            a = np.full((rows, columns), size, dtype)
            a[0, columns - 1] = 0
            want = np.linalg.svd(a.astype(np.float64), compute_uv=False)
            u, s, vh = tenon.linalg.svd(tenon.from_numpy(a), full_matrices=False)
            assert np.abs(s.numpy() - want).max() < 1e-5 * want[0]
            assert np.abs((u * s @ vh).numpy() - a).max() < 1e-5 * want[0]
