"""Functions of SciPy and scikit-learn called with Arrays and with the NumPy arrays of the same values.

Run as a script, `python array_api_libraries.py scipy`: SciPy reads SCIPY_ARRAY_API when it is imported, so
that the calls want a process of their own.  Prints a JSON object: call -> {"type", "problem"}.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings
from typing import Any

import numpy as np

#: Calls for each library; `xp` is the namespace, the other names are those of `values`.
CALLS: dict[str, tuple[str, ...]] = {
    "scipy": (
        "scipy.stats.zscore(a)",
        "scipy.stats.skew(a, axis=1)",
        "scipy.stats.kurtosis(a, bias=False)",
        "scipy.stats.variation(positive)",
        "scipy.stats.trim_mean(a, 0.1)",
        "scipy.stats.gmean(positive)",
        "scipy.stats.rankdata(a, axis=0)",
        "scipy.stats.iqr(a, axis=0)",
        "scipy.stats.entropy(positive)",
        "scipy.stats.ttest_ind(a, b).pvalue",
        "scipy.stats.pearsonr(a, b, axis=0).statistic",
        "scipy.stats.mannwhitneyu(a, b, axis=0).pvalue",
        "scipy.signal.detrend(a, axis=0)",
        "scipy.signal.hilbert(signal)",
        "scipy.signal.fftconvolve(signal, kernel, mode='same')",
        "scipy.signal.lfilter(kernel, kernel[:1] * 0 + 1, signal)",
        "scipy.signal.savgol_filter(signal, 5, 2)",
        "scipy.special.logsumexp(a, axis=1)",
        "scipy.special.softmax(a, axis=0)",
        "scipy.special.expit(a)",
        "scipy.special.gammaln(positive)",
        "scipy.special.xlogy(positive, positive)",
        "scipy.fft.rfft(signal)",
        "scipy.fft.irfft(signal)",
        "scipy.fft.fft2(a)",
        "scipy.fft.fftshift(signal)",
        "scipy.fft.dct(signal)",
        "scipy.cluster.vq.whiten(a)",
        "scipy.cluster.vq.kmeans(a, a[:3])[0]",
        "scipy.integrate.cumulative_trapezoid(a, axis=0)",
        "scipy.integrate.tanhsinh(lambda t: t**2, kernel * 0, xp.abs(kernel)).integral",
        "scipy.differentiate.derivative(lambda t: t**3, kernel).df",
        "scipy.ndimage.gaussian_filter(a, 1.0)",
    ),
    "sklearn": (
        "sklearn.preprocessing.StandardScaler().fit_transform(a)",
        "sklearn.preprocessing.MinMaxScaler().fit_transform(a)",
        "sklearn.preprocessing.MaxAbsScaler().fit_transform(a)",
        "sklearn.preprocessing.Normalizer().fit_transform(a)",
        "sklearn.preprocessing.Binarizer().fit_transform(a)",
        "sklearn.preprocessing.PolynomialFeatures().fit_transform(a)",
        "sklearn.preprocessing.LabelEncoder().fit_transform(labels)",
        "sklearn.decomposition.PCA(2, svd_solver='full').fit_transform(a)",
        "sklearn.decomposition.PCA(2, svd_solver='covariance_eigh').fit_transform(a)",
        "sklearn.linear_model.Ridge(solver='svd').fit(a, target).coef_",
        "sklearn.linear_model.Ridge(solver='svd').fit(a, target).predict(b)",
        "sklearn.linear_model.RidgeCV().fit(a, target).coef_",
        "sklearn.discriminant_analysis.LinearDiscriminantAnalysis().fit(a, labels).predict_proba(b)",
        "sklearn.discriminant_analysis.LinearDiscriminantAnalysis().fit(a, labels).predict(b)",
        "sklearn.naive_bayes.GaussianNB().fit(a, labels).predict_proba(b)",
        "sklearn.model_selection.train_test_split(a, random_state=0)[0]",
        "sklearn.metrics.confusion_matrix(labels, guesses)",
        "sklearn.metrics.f1_score(labels, guesses, average=None)",
        "sklearn.metrics.r2_score(a, b, multioutput='raw_values')",
        "sklearn.metrics.pairwise.euclidean_distances(a, b)",
        "sklearn.metrics.pairwise.cosine_similarity(a, b)",
        "sklearn.metrics.pairwise.rbf_kernel(a, b)",
        # Python numbers, whatever the arrays.
        "sklearn.metrics.accuracy_score(labels, guesses)",
        "sklearn.metrics.mean_squared_error(a, b)",
        "sklearn.metrics.r2_score(a, b)",
    ),
}
#: What gives a Python number for every kind of array.
NUMBERS = CALLS["sklearn"][-3:]


def values() -> dict[str, np.ndarray[Any, Any]]:
    """The NumPy arrays that the calls name."""
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(2, 20, 4))
    labels, guesses = rng.integers(0, 3, (2, 20))
    return {
        **{"a": a, "b": b, "positive": np.abs(a) + 0.1, "labels": labels, "guesses": guesses},
        **{"signal": rng.normal(size=64), "kernel": rng.normal(size=9), "target": rng.normal(size=20)},
    }


def report(call: str, names: dict[str, Any]) -> dict[str, str]:
    """The type of what the call gives for Arrays, and how it differs from what it gives for NumPy arrays."""
    xarr = importlib.import_module("xarr")
    arguments = values()
    wanted = eval(call, {**names, **arguments, "xp": np})
    got = eval(
        call, {**names, **{name: xarr.asarray(value) for name, value in arguments.items()}, "xp": xarr}
    )
    kind = f"{type(got).__module__}.{type(got).__qualname__}"
    try:
        assert np.asarray(got).dtype == np.asarray(wanted).dtype, f"{np.asarray(got).dtype}"
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-10, atol=1e-12)
    except AssertionError as difference:
        return {"type": kind, "problem": str(difference)}
    return {"type": kind, "problem": ""}


def main(library: str) -> None:
    """Report on all calls of a library."""
    os.environ["SCIPY_ARRAY_API"] = "1"
    for call in CALLS[library]:
        importlib.import_module(call.partition("(")[0].rpartition(".")[0])
    names = {library: sys.modules[library]}
    if library == "sklearn":
        names[library].set_config(array_api_dispatch=True)
    # They warn of the mode itself, which is experimental.
    warnings.simplefilter("ignore")
    print(json.dumps({call: report(call, names) for call in CALLS[library]}))


if __name__ == "__main__":
    main(sys.argv[1])
