"""Programs of SciPy and scikit-learn on tensors, through the array API: the same calls on NumPy's arrays. Started by array_api_users_test.py in
a process of its own, because SciPy reads SCIPY_ARRAY_API when it is imported.

    python array_api_users.py scipy|sklearn
"""

import json
import os
import sys
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np

import tenon

RANDOM = np.random.default_rng(0)
X, TABLE, OTHER = np.abs(RANDOM.standard_normal(20)) + 0.1, RANDOM.standard_normal((30, 4)), RANDOM.standard_normal((30, 4)) + 0.3
Y, P = np.abs(RANDOM.standard_normal(20)) + 0.2, RANDOM.uniform(0.05, 0.95, 20)
SIGNAL, KERNEL, IMAGE = RANDOM.standard_normal((2, 64)), RANDOM.standard_normal(7), RANDOM.standard_normal((8, 9))
MATRIX = RANDOM.standard_normal((4, 4))
LABELS, TARGET = (TABLE[:, 0] > 0).astype(np.int64), TABLE @ np.arange(4.0) + 0.1 * RANDOM.standard_normal(30)


def scipy_calls():
    import scipy.cluster.hierarchy as hierarchy
    import scipy.cluster.vq as vq
    import scipy.constants
    import scipy.differentiate
    import scipy.fft
    import scipy.integrate
    import scipy.linalg
    import scipy.ndimage
    import scipy.optimize
    import scipy.signal
    import scipy.special
    import scipy.stats
    from scipy.spatial.transform import Rotation

    def of(module, names, *arguments, **options):
        return {f"{module.__name__}.{name}": (getattr(module, name), arguments, options) for name in names.split()}

    b, a = scipy.signal.butter(3, 0.2)
    sections, positive = scipy.signal.butter(4, 0.3, output="sos"), np.abs(TABLE) + 0.1
    return {
        **of(scipy.special, "erf erfc gammaln i0 i0e i1 i1e expit log_ndtr ndtr sinc exp1", X),
        **of(scipy.special, "logit ndtri entr", P),
        **of(scipy.special, "rel_entr xlogy betaln chdtrc gammainc gammaincc kl_div", X, Y),
        **of(scipy.special, "logsumexp softmax log_softmax", TABLE, axis=1),
        **of(
            scipy.stats,
            "skew kurtosis moment variation sem gmean hmean zscore gstd kstat kstatvar skewtest kurtosistest normaltest jarque_bera tmean tvar tmin "
            "tmax tstd tsem circmean circvar circstd rankdata iqr differential_entropy entropy describe lmoment",
            positive,
            axis=0,
        ),
        **of(
            scipy.stats,
            "ttest_ind ttest_rel pearsonr spearmanr mannwhitneyu ks_2samp wilcoxon bartlett levene fligner ansari linregress kruskal f_oneway "
            "alexandergovern cramervonmises_2samp mood epps_singleton_2samp",
            TABLE[:, 0],
            OTHER[:, 0],
        ),
        **of(scipy.stats, "trim_mean", TABLE, 0.1, axis=0),
        **of(scipy.stats, "quantile", TABLE, 0.3, axis=0),
        **of(scipy.stats, "ttest_1samp", TABLE, 0.0),
        **of(scipy.stats, "combine_pvalues false_discovery_control", P),
        **of(scipy.stats, "chisquare power_divergence", np.array([16.0, 18, 16, 14, 12, 20])),
        **of(scipy.signal, "convolve correlate oaconvolve fftconvolve", SIGNAL[0], KERNEL),
        **of(scipy.signal, "lfilter filtfilt", b, a, SIGNAL),
        **of(scipy.signal, "sosfilt sosfiltfilt", sections, SIGNAL),
        **of(scipy.signal, "hilbert detrend", SIGNAL),
        **of(scipy.signal, "resample", SIGNAL, 32, axis=1),
        "resample with a window": (scipy.signal.resample, (SIGNAL[0], 20), {"window": "hamming"}),
        **of(scipy.signal, "resample_poly", SIGNAL, 1, 2, axis=1),
        **of(scipy.signal, "savgol_filter", SIGNAL, 5, 2),
        **of(scipy.signal, "freqz bilinear lfilter_zi", b, a),
        **of(scipy.signal, "medfilt", SIGNAL[0], 3),
        **of(scipy.signal, "convolve2d", SIGNAL, SIGNAL[:, :3].copy()),
        **of(scipy.linalg, "det norm", MATRIX @ MATRIX.T),
        **of(scipy.linalg, "block_diag", MATRIX, MATRIX),
        **of(scipy.fft, "fft ifft rfft irfft hfft ihfft fftn ifftn rfftn irfftn fft2 dct idct dst idst dctn fftshift ifftshift", SIGNAL),
        **of(scipy.ndimage, "gaussian_filter", IMAGE, 1.0),
        **of(scipy.ndimage, "uniform_filter median_filter maximum_filter", IMAGE, 3),
        **of(scipy.ndimage, "sobel laplace", IMAGE),
        **of(scipy.ndimage, "zoom", IMAGE, 2),
        **of(vq, "whiten", TABLE),
        **of(vq, "vq kmeans", TABLE, TABLE[:3].copy()),
        **of(hierarchy, "linkage single", RANDOM.uniform(1, 2, 10)),
        **of(scipy.integrate, "trapezoid cumulative_trapezoid", TABLE, axis=0),
        **of(scipy.optimize, "rosen rosen_der", X),
        **of(scipy.constants, "convert_temperature", X, "C", "K"),
        "differentiate": (lambda x: scipy.differentiate.derivative(lambda q: q**3, x).df, (X,), {}),
        "tanhsinh": (lambda l, u: scipy.integrate.tanhsinh(lambda x: x**2, l, u).integral, (X, Y + 2), {}),
        "cubature": (lambda l, u: scipy.integrate.cubature(lambda x: x[..., 0] ** 2, l, u).estimate, (X[:1], Y[:1] + 2), {}),
        "rotation": (lambda q, v: (Rotation.from_quat(q).inv() * Rotation.from_quat(q)).apply(v), (TABLE, OTHER[:, :3].copy()), {}),
        "euler": (lambda v: Rotation.from_rotvec(v).as_euler("xyz"), (OTHER[:, :3].copy(),), {}),
    }


def sklearn_calls():
    import sklearn
    import sklearn.preprocessing as preprocessing
    from sklearn import metrics
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import Ridge, RidgeClassifier, RidgeCV
    from sklearn.mixture import GaussianMixture
    from sklearn.model_selection import cross_val_predict, train_test_split
    from sklearn.naive_bayes import GaussianNB

    sklearn.set_config(array_api_dispatch=True)

    def of(names, *arguments):
        return {name: (getattr(metrics, name), arguments, {}) for name in names.split() if hasattr(metrics, name)}

    def pca(solver):
        def call(x):
            fitted = PCA(3, svd_solver=solver, random_state=0).fit(x)
            values = fitted.transform(x)
            return values, fitted.inverse_transform(values), fitted.explained_variance_ratio_, fitted.mean_

        return call, (TABLE,), {}

    scalers = "StandardScaler MinMaxScaler MaxAbsScaler Normalizer Binarizer PolynomialFeatures"
    guessed, chance = np.roll(LABELS, 3), 1 / (1 + np.exp(-TABLE[:, 1]))
    return {
        **{f"PCA {solver}": pca(solver) for solver in ("full", "covariance_eigh", "randomized")},
        "Ridge": (lambda x, y: Ridge(solver="svd").fit(x, y).predict(x), (TABLE, TARGET), {}),
        "RidgeCV": (lambda x, y: RidgeCV().fit(x, y).predict(x), (TABLE, TARGET), {}),
        "RidgeClassifier": (lambda x, y: RidgeClassifier(solver="svd").fit(x, y).predict(x), (TABLE, LABELS), {}),
        "LinearDiscriminantAnalysis": (lambda x, y: (m := LinearDiscriminantAnalysis().fit(x, y)) and (m.predict_proba(x), m.transform(x)), (TABLE, LABELS), {}),
        "GaussianNB": (lambda x, y: GaussianNB().fit(x, y).predict_proba(x), (TABLE, LABELS), {}),
        "GaussianMixture": (lambda x: GaussianMixture(2, random_state=0, init_params="random").fit(x).predict_proba(x), (TABLE,), {}),
        "train_test_split": (lambda x: train_test_split(x, random_state=0), (TABLE,), {}),
        "cross_val_predict": (lambda x, y: cross_val_predict(Ridge(solver="svd"), x, y), (TABLE, TARGET), {}),
        "LabelEncoder": (lambda y: preprocessing.LabelEncoder().fit_transform(y), (LABELS + 3,), {}),
        **{name: (getattr(preprocessing, name)().fit_transform, (TABLE,), {}) for name in scalers.split()},
        **of("accuracy_score zero_one_loss f1_score precision_score recall_score confusion_matrix hamming_loss jaccard_score", LABELS, guessed),
        **of("balanced_accuracy_score cohen_kappa_score multilabel_confusion_matrix", LABELS, guessed),
        **of("log_loss brier_score_loss precision_recall_curve average_precision_score det_curve", LABELS, chance),
        **of("mean_squared_error mean_absolute_error r2_score explained_variance_score max_error median_absolute_error mean_pinball_loss", TARGET, TARGET[::-1].copy()),
        **of("mean_tweedie_deviance mean_squared_log_error mean_poisson_deviance mean_gamma_deviance d2_tweedie_score", np.abs(TARGET) + 1, np.abs(TARGET[::-1]) + 1),
        **{
            name: (getattr(metrics.pairwise, name), (np.abs(TABLE), np.abs(OTHER)), {})
            for name in "euclidean_distances linear_kernel rbf_kernel polynomial_kernel sigmoid_kernel cosine_similarity chi2_kernel paired_cosine_distances".split()
        },
    }  # fmt: skip


def difference(got, want):
    """What differs, or None: kinds of results, shapes, dtypes, values."""
    if isinstance(want, (tuple, list)):
        return next((d for d in map(difference, got, want) if d), None)
    if hasattr(want, "pvalue"):
        return difference(got.statistic, want.statistic) or difference(got.pvalue, want.pvalue)
    if isinstance(want, np.ndarray) and want.ndim and not isinstance(got, tenon.Tensor):
        return f"got {type(got).__name__} for an array"
    ours = np.asarray(got)
    if ours.shape != np.shape(want) or (isinstance(want, np.ndarray) and ours.dtype.kind != want.dtype.kind):
        return f"got {ours.dtype}{ours.shape} for {want.dtype}{want.shape}"
    return None if np.allclose(ours, want, rtol=1e-6, atol=1e-8, equal_nan=True) else f"got {ours.ravel()[:4]} for {np.ravel(want)[:4]}"


def main():
    problems, count = {}, 0
    warnings.simplefilter("ignore")
    for name, (function, arguments, options) in {"scipy": scipy_calls, "sklearn": sklearn_calls}[sys.argv[1]]().items():
        tensors = [tenon.tensor(a) if isinstance(a, np.ndarray) else a for a in arguments]
        count += 1
        try:
            found = difference(function(*tensors, **options), function(*arguments, **options))
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if found:
            problems[name] = found
    print(json.dumps({"problems": problems, "count": count}))


if __name__ == "__main__":
    main()
