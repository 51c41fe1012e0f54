"""The tests of the NumPy backend are of that backend, whichever one the run is about."""

import pytest


@pytest.fixture(autouse=True)
def of_numpy(on_numpy: None) -> None:
    """The backend of new arrays is NumPy."""
