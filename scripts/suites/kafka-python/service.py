"""Put into the suite as test/service.py, which the package leaves out: a broker that somebody else has started."""


class ExternalService:
    """The broker at KAFKA_URI, as the suite asks it."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    def open(self) -> None:
        """Nothing: the broker runs."""

    def close(self) -> None:
        """Nothing: the broker goes on."""

    stop = dump_logs = close

    def wait_for(self, pattern: str, timeout: float = 30) -> bool:
        """The broker is ready."""
        return True


class SpawnedService:
    """A broker of the suite's own: those tests skip themselves when KAFKA_URI is set."""
