"""Mixed-effects regression: lme4's published numbers, the likelihood written out, coverage, held-out densities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from shannon_game.estimators import documents
from shannon_game.estimators.documents.mixed import held_out_loglik
from shannon_game.estimators.errors import InputError
from tests.oracles import reading_gain as oracle

# reaction times (ms) of 18 people on 10 days without sleep: Belenky et al. (2003), lme4's data set sleepstudy
SLEEP = """
249.5600 258.7047 250.8006 321.4398 356.8519 414.6901 382.2038 290.1486 430.5853 466.3535
222.7339 205.2658 202.9778 204.7070 207.7161 215.9618 213.6303 217.7272 224.2957 237.3142
199.0539 194.3322 234.3200 232.8416 229.3074 220.4579 235.4208 255.7511 261.0125 247.5153
321.5426 300.4002 283.8565 285.1330 285.7973 297.5855 280.2396 318.2613 305.3495 354.0487
287.6079 285.0000 301.8206 320.1153 316.2773 293.3187 290.0750 334.8177 293.7469 371.5811
234.8606 242.8118 272.9613 309.7688 317.4629 309.9976 454.1619 346.8311 330.3003 253.8644
283.8424 289.5550 276.7693 299.8097 297.1710 338.1665 332.0265 348.8399 333.3600 362.0428
265.4731 276.2012 243.3647 254.6723 279.0244 284.1912 305.5248 331.5229 335.7469 377.2990
241.6083 273.9472 254.4907 270.8021 251.4519 254.6362 245.4523 235.3110 235.7541 237.2466
312.3666 313.8058 291.6112 346.1222 365.7324 391.8385 404.2601 416.6923 455.8643 458.9167
236.1032 230.3167 238.9256 254.9220 250.7103 269.7744 281.5648 308.1020 336.2806 351.6451
256.2968 243.4543 256.2046 255.5271 268.9165 329.7247 379.4445 362.9184 394.4872 389.0527
250.5265 300.0576 269.8939 280.5891 271.8274 304.6336 287.7466 266.5955 321.5418 347.5655
221.6771 298.1939 326.8785 346.8555 348.7402 352.8287 354.4266 360.4326 375.6406 388.5417
271.9235 268.4369 257.2424 277.6566 314.8222 317.2135 298.1353 348.1229 340.2800 366.5131
225.2640 234.5235 238.9008 240.4730 267.5373 344.1937 281.1481 347.5855 365.1630 372.2288
269.8804 272.4428 277.8989 281.7895 279.1710 284.5120 259.2658 304.6306 350.7807 369.4692
269.4117 273.4740 297.5968 310.6316 287.1726 329.6076 334.4818 343.2199 369.1417 364.1236
"""


def test_sleepstudy_has_the_numbers_of_lme4() -> None:
    """Bates, Maechler, Bolker and Walker (2015), section 5: lmer(Reaction ~ Days + (Days | Subject))."""
    values = np.array(SLEEP.split(), dtype=float)
    person, day = np.repeat(np.arange(18), 10), np.tile(np.arange(10.0), 18)
    fit = documents.mixed_regression(values, {"days": day}, person, np.arange(180), slope="days")
    assert fit.criterion == pytest.approx(1743.6, abs=0.05)
    np.testing.assert_allclose(fit.coefficient, [251.405, 10.467], atol=5e-4)
    np.testing.assert_allclose(fit.se, [6.825, 1.546], atol=5e-4)
    assert fit.sd_slope == pytest.approx(5.92, abs=0.01)
    assert fit.sd_residual == pytest.approx(25.59, abs=0.01)
    assert np.isnan(fit.sd_word)
    # lme4's reader intercept is at day 0, ours at day 4.5: sd^2 + 2 * 4.5 * covariance + 4.5^2 * slope^2
    assert fit.sd_reader == pytest.approx(np.sqrt(24.74**2 + 9 * 0.066 * 24.74 * 5.92 + 4.5**2 * 5.92**2), rel=1e-3)


def crossed(seed: int, n_readers: int = 8, n_words: int = 15, *, missing: float = 0.2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    reader, word = np.repeat(np.arange(n_readers), n_words), np.tile(np.arange(n_words), n_readers)
    kept = rng.random(reader.size) > missing
    reader, word = reader[kept], word[kept]
    x = rng.gamma(2, 1.5, n_words)[word]
    values = 300 + rng.normal(0, 40, n_readers)[reader] + (5 + rng.normal(0, 4, n_readers)[reader]) * x
    values += rng.normal(0, 15, n_words)[word] + rng.normal(0, 30, reader.size)
    return {"values": values, "x": x, "reader": reader, "word": word}


def covariance(its: dict[str, np.ndarray], theta: np.ndarray) -> np.ndarray:
    """Of all values, written out; theta is word, reader, reader with slope, slope."""
    z = its["x"] - its["x"].mean()
    same = its["reader"][:, None] == its["reader"]
    factor = np.array([[theta[1], 0], [theta[2], theta[3]]])
    between = factor @ factor.T
    design = np.column_stack([np.ones(z.size), z])
    found = same * (design @ between @ design.T) + theta[0] ** 2 * (its["word"][:, None] == its["word"])
    return found + theta[4] ** 2 * np.eye(z.size)


def test_crossed_effects_have_the_restricted_likelihood_written_out() -> None:
    its = crossed(1)
    x = np.column_stack([np.ones(its["x"].size), its["x"]])

    def restricted(theta: np.ndarray) -> float:
        inverse = np.linalg.inv(covariance(its, theta))
        middle = x.T @ inverse @ x
        beta = np.linalg.solve(middle, x.T @ inverse @ its["values"])
        error = its["values"] - x @ beta
        logdet = -np.linalg.slogdet(inverse)[1] + np.linalg.slogdet(middle)[1]
        return float(logdet + error @ inverse @ error + (x.shape[0] - 2) * np.log(2 * np.pi))

    found = minimize(restricted, [15, 40, 0, 4, 30], method="Nelder-Mead", options={"maxiter": 4000, "fatol": 1e-9})
    fit = documents.mixed_regression(its["values"], {"x": its["x"]}, its["reader"], its["word"], slope="x")
    assert fit.criterion == pytest.approx(found.fun, abs=1e-4)
    inverse = np.linalg.inv(covariance(its, found.x))
    middle = np.linalg.inv(x.T @ inverse @ x)
    np.testing.assert_allclose(fit.coefficient, middle @ x.T @ inverse @ its["values"], rtol=1e-3)
    np.testing.assert_allclose(fit.se, np.sqrt(np.diag(middle)), rtol=5e-3)
    sds = [fit.sd_word, fit.sd_reader, np.hypot(*found.x[2:4]), fit.sd_residual]
    np.testing.assert_allclose(sds[:2] + sds[3:], np.abs(found.x[[0, 1, 4]]), rtol=0.02)
    assert fit.sd_slope == pytest.approx(sds[2], rel=0.03)


def test_held_out_densities_are_those_of_the_conditional_distribution() -> None:
    its = crossed(2)
    of, columns = (its["word"] % 3, its["reader"], its["word"]), {"x": its["x"]}
    for slope, at in ((None, None), ("x", 0)):
        found = held_out_loglik(its["values"], columns, *of, slope=slope)
        np.testing.assert_allclose(found, oracle.of_readers(its["values"], [its["x"]], *of, at), atol=2e-4)
    # least squares, one value at a time
    y, x = its["values"][:9], its["x"][:9]
    np.testing.assert_allclose(held_out_loglik(y, {"x": x}, np.arange(9)), oracle.of_means(y, [x], np.arange(9)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reader": np.zeros(20)}, "reader: has 1 reader"),
        ({"slope": "y"}, "slope: is 'y'"),
        ({"columns": {"x": np.ones(20)}}, "x: follows from the other columns"),
        ({"word": np.zeros(3)}, "word: has shape"),
        ({"values": np.full(20, np.nan)}, "values: is nan"),
        ({"values": 2.0 * (np.arange(20) % 7) + np.arange(20) % 4}, "values: are a sum of the columns and effects"),
        ({"values": np.full(20, 3.0)}, "values: are a sum of the columns and effects"),
    ],
)
def test_what_has_no_fit_is_refused(changes: dict[str, object], message: str) -> None:
    given = {"values": np.arange(20.0), "columns": {"x": np.arange(20) % 7}, "reader": np.arange(20) % 4}
    with pytest.raises(InputError, match=message):
        documents.mixed_regression(**{**given, "word": np.arange(20) % 5, **changes})


def test_readers_that_do_not_differ_are_told() -> None:
    rng = np.random.default_rng(0)
    reader, word = np.repeat(np.arange(10), 20), np.tile(np.arange(20), 10)
    x = rng.normal(size=20)[word]
    # every reader's mean is the same: less than chance alone would give
    values = rng.normal(size=200)
    values -= (np.bincount(reader, values) / 20)[reader]
    assert documents.mixed_regression(values + x, {"x": x}, reader, word).singular
