"""A few seconds of chaos; `make chaos` runs it for as long as one likes."""

import pytest
from chaos.run import chaos


@pytest.mark.parametrize("seed", [1, 2])
def test_caps_and_records_survive_faults(tmp_path, seed):
    log: list[str] = []
    assert chaos(tmp_path / "data", seed, 8.0, log=log.append) == [], "\n".join(log)
